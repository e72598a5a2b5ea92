//! `ds_lite.static`: static bindings of hosts behind softwires.

use std::net::Ipv6Addr;

use serde::Serialize;
use sixway_dataplane::nat::{self, NatProtocol};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};

use crate::fault::{Place, Report};
use crate::pool::Pool;
use crate::schema::DS_LITE_STATIC;
use crate::section::Reader;
use crate::static_rules::StaticRules;
use crate::text;
use crate::word::{self, Word as _};

/// A static binding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SoftwireStatic {
    /// Its protocol.
    #[serde(serialize_with = "word::serialize")]
    pub protocol: NatProtocol,
    /// The B4.
    #[serde(serialize_with = "text::one")]
    pub softwire: Ipv6Addr,
    /// The host inside and its port.
    #[serde(serialize_with = "text::one")]
    pub inside: Endpoint4,
    /// The address of the pool and the port that represent it.
    #[serde(serialize_with = "text::one")]
    pub outside: Endpoint4,
}

/// The AFTR's configuration that the checks need.
type Known<'a> = (Option<&'a [Prefix6]>, Option<&'a [Prefix4]>, Option<&'a Pool>);

impl SoftwireStatic {
    pub(super) fn read_all(section: &Reader, known: Known<'_>, report: &mut Report) -> Vec<Self> {
        let mut bindings: Vec<(Self, Place)> = Vec::new();
        for row in section.sections("static", &DS_LITE_STATIC, report) {
            let Some(new) = Self::read(&row, known, report) else { continue };
            let is_same = |(other, _): &&(Self, Place)| {
                let one_inside = (other.softwire, other.inside) == (new.softwire, new.inside);
                other.protocol == new.protocol && (other.outside == new.outside || one_inside)
            };
            if let Some((other, place)) = bindings.iter().find(is_same) {
                let what = if other.outside == new.outside { new.outside } else { new.inside };
                let (protocol, there) = (new.protocol.as_str(), place.seen_from(row.place()));
                let what = format!("{protocol} {what} already has a static binding ({there}); remove one");
                report.fault(row.place(), what);
            }
            bindings.push((new, row.place().clone()));
        }
        bindings.into_iter().map(|(binding, _)| binding).collect()
    }

    fn read(row: &Reader, (clients, inside4, pool): Known<'_>, report: &mut Report) -> Option<Self> {
        let protocol = row.value("protocol", report).and_then(|v| v.word::<NatProtocol>(report));
        let is_icmp = protocol == Some(NatProtocol::Icmp);
        let softwire = row.value("softwire", report).and_then(|v| {
            let softwire = v.address6(report)?;
            if clients.is_some_and(|clients| !clients.iter().any(|prefix| prefix.contains(softwire))) {
                report.fault(&v.place, "is not in `clients`; write the address of a B4");
            }
            Some(softwire)
        });
        let inside = row.value("inside", report).and_then(|v| {
            let inside = v.endpoint4(report)?;
            let is_inside =
                inside4.is_none_or(|inside4| inside4.iter().any(|prefix| prefix.contains(inside.address)));
            if !is_inside {
                report.fault(&v.place, "is not in `inside`; write the address of a host behind the softwire");
            }
            StaticRules::port(inside.port, is_icmp).unwrap_or_else(|what| report.fault(&v.place, what));
            Some(inside)
        });
        let outside = row.value("outside", report).and_then(|v| {
            let outside = v.endpoint4(report)?;
            let rules = StaticRules { prefix: None, inside4: None, pool };
            rules.outside(outside).unwrap_or_else(|what| report.fault(&v.place, what));
            StaticRules::port(outside.port, is_icmp).unwrap_or_else(|what| report.fault(&v.place, what));
            Some(outside)
        });
        Some(Self { protocol: protocol?, softwire: softwire?, inside: inside?, outside: outside? })
    }

    pub(super) fn engine(&self) -> nat::StaticBinding {
        let inside = Endpoint6::new(self.inside.address.to_ipv6_mapped(), self.inside.port);
        nat::StaticBinding {
            protocol: self.protocol,
            softwire: Some(self.softwire),
            inside: nat::Inside(inside),
            outside: nat::Outside(self.outside),
        }
    }
}
