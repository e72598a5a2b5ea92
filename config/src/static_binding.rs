//! Bindings that are always there, of a NAT64 or a NAT44.

use std::fmt::Display;

use serde::Serialize;
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Endpoint6};

use crate::fault::{Place, Report};
use crate::schema::Section;
use crate::section::Reader;
use crate::static_rules::StaticRules;
use crate::text;
use crate::value::Value;
use crate::word::{self, Word as _, words_of};

words_of! {
    NatProtocol {
        Tcp = "tcp",
        Udp = "udp",
        Icmp = "icmp",
    }
}

/// A binding that is always there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(bound = "E: Display")]
pub struct Static<E = Endpoint6> {
    /// Its protocol.
    #[serde(serialize_with = "word::serialize")]
    pub protocol: NatProtocol,
    /// The host inside and its port.
    #[serde(serialize_with = "text::one")]
    pub inside: E,
    /// The address of the pool and the port that represent it.
    #[serde(serialize_with = "text::one")]
    pub outside: Endpoint4,
}

/// An inside endpoint of either family.
pub(crate) trait InsideEndpoint: Copy + Display + PartialEq {
    fn read(value: &Value, report: &mut Report) -> Option<Self>;
    fn port(self) -> u16;
    /// As an IPv6 endpoint; one of IPv4 by its IPv4-mapped address.
    fn mapped(self) -> Endpoint6;
}

impl InsideEndpoint for Endpoint6 {
    fn read(value: &Value, report: &mut Report) -> Option<Self> {
        value.endpoint6(report)
    }
    fn port(self) -> u16 {
        self.port
    }
    fn mapped(self) -> Endpoint6 {
        self
    }
}

impl InsideEndpoint for Endpoint4 {
    fn read(value: &Value, report: &mut Report) -> Option<Self> {
        value.endpoint4(report)
    }
    fn port(self) -> u16 {
        self.port
    }
    fn mapped(self) -> Endpoint6 {
        Endpoint6::new(self.address.to_ipv6_mapped(), self.port)
    }
}

/// Reads the rows of a section, in which no endpoint may have two bindings of a protocol.
pub(crate) fn read_static<E: InsideEndpoint>(
    section: &Reader,
    schema: &'static Section,
    rules: &StaticRules<'_>,
    report: &mut Report,
) -> Vec<Static<E>> {
    let mut bindings = Vec::new();
    for row in section.sections("static", schema, report) {
        let protocol = row.value("protocol", report).and_then(|v| v.word(report));
        read_row(&row, protocol, rules, &mut bindings, report);
    }
    without_places(bindings)
}

/// The bindings alone.
pub(crate) fn without_places<B>(bindings: Vec<(B, Place)>) -> Vec<B> {
    bindings.into_iter().map(|(binding, _)| binding).collect()
}

/// Reads a row; the other ones before it are `bindings`.
pub(crate) fn read_row<E: InsideEndpoint>(
    row: &Reader,
    protocol: Option<NatProtocol>,
    rules: &StaticRules<'_>,
    bindings: &mut Vec<(Static<E>, Place)>,
    report: &mut Report,
) {
    let inside = row.value("inside", report).and_then(|v| {
        let inside = E::read(&v, report)?;
        rules.inside(inside.mapped()).unwrap_or_else(|what| report.fault(&v.place, what));
        Some((inside, v.place))
    });
    let outside = row.value("outside", report).and_then(|v| {
        let outside = v.endpoint4(report)?;
        rules.outside(outside).unwrap_or_else(|what| report.fault(&v.place, what));
        Some((outside, v.place))
    });
    let ports = [inside.as_ref().map(|(e, p)| (e.port(), p)), outside.as_ref().map(|(e, p)| (e.port, p))];
    let is_icmp = protocol == Some(NatProtocol::Icmp);
    for (port, place) in ports.into_iter().flatten() {
        StaticRules::port(port, is_icmp).unwrap_or_else(|what| report.fault(place, what));
    }
    let (Some(protocol), Some((inside, _)), Some((outside, _))) = (protocol, inside, outside) else {
        return;
    };
    let same = bindings.iter().find(|(other, _)| {
        other.protocol == protocol && (other.outside == outside || other.inside == inside)
    });
    if let Some((other, place)) = same {
        let what = if other.outside == outside { outside.to_string() } else { inside.to_string() };
        let (protocol, there) = (protocol.as_str(), place.seen_from(row.place()));
        report.fault(
            row.place(),
            format!("{protocol} {what} already has a static binding ({there}); remove one"),
        );
    }
    bindings.push((Static { protocol, inside, outside }, row.place().clone()));
}
