//! Static bindings of a NAT44: of an address and a port, or for protocols without ports of an address alone.

use std::fmt::Display;
use std::net::Ipv4Addr;

use serde::Serialize;
use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Endpoint6};

use crate::fault::{Place, Report};
use crate::schema::NAT44_STATIC;
use crate::section::Reader;
use crate::static_binding::{Static, read_row, without_places};
use crate::static_rules::StaticRules;
use crate::text;
use crate::word::{self, Word, words_of};

words_of! {
    PortlessProtocol {
        Gre = "gre",
        Esp = "esp",
        Ipv6 = "ipv6",
        Ipip = "ipip",
    }
}

/// The protocol of a static binding.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StaticProtocol {
    WithPorts(NatProtocol),
    Portless(PortlessProtocol),
}

words_of! {
    StaticProtocol {
        TCP = "tcp",
        UDP = "udp",
        ICMP = "icmp",
        GRE = "gre",
        ESP = "esp",
        IPV6 = "ipv6",
        IPIP = "ipip",
    }
}

impl StaticProtocol {
    const TCP: Self = Self::WithPorts(NatProtocol::Tcp);
    const UDP: Self = Self::WithPorts(NatProtocol::Udp);
    const ICMP: Self = Self::WithPorts(NatProtocol::Icmp);
    const GRE: Self = Self::Portless(PortlessProtocol::Gre);
    const ESP: Self = Self::Portless(PortlessProtocol::Esp);
    const IPV6: Self = Self::Portless(PortlessProtocol::Ipv6);
    const IPIP: Self = Self::Portless(PortlessProtocol::Ipip);
}

/// An inside host that has an outside address for a protocol without ports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PortlessStatic {
    /// Its protocol.
    #[serde(serialize_with = "word::serialize")]
    pub protocol: PortlessProtocol,
    /// The host inside.
    #[serde(serialize_with = "text::one")]
    pub inside: Ipv4Addr,
    /// The address of the pool that represents it.
    #[serde(serialize_with = "text::one")]
    pub outside: Ipv4Addr,
}

/// The static bindings, in two lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nat44Statics {
    /// Of an address and a port.
    pub with_ports: Vec<Static<Endpoint4>>,
    /// Of an address alone.
    pub portless: Vec<PortlessStatic>,
}

impl Nat44Statics {
    /// Their number.
    pub fn count(&self) -> usize {
        self.with_ports.len() + self.portless.len()
    }

    /// Reads the rows of a section.
    pub(crate) fn read(section: &Reader, rules: &StaticRules<'_>, report: &mut Report) -> Self {
        let (mut with_ports, mut portless) = (Vec::new(), Vec::new());
        for row in section.sections("static", &NAT44_STATIC, report) {
            match row.value("protocol", report).and_then(|v| v.word(report)) {
                Some(StaticProtocol::Portless(protocol)) => {
                    read_portless(&row, protocol, rules, &mut portless, report);
                }
                Some(StaticProtocol::WithPorts(protocol)) => {
                    read_row(&row, Some(protocol), rules, &mut with_ports, report);
                }
                None => read_row(&row, None, rules, &mut with_ports, report),
            }
        }
        Self { with_ports: without_places(with_ports), portless: without_places(portless) }
    }
}

/// As one list: that of the configuration.
impl Serialize for Nat44Statics {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Row<'r> {
            WithPorts(&'r Static<Endpoint4>),
            Portless(&'r PortlessStatic),
        }
        let with_ports = self.with_ports.iter().map(Row::WithPorts);
        serializer.collect_seq(with_ports.chain(self.portless.iter().map(Row::Portless)))
    }
}

fn read_portless(
    row: &Reader,
    protocol: PortlessProtocol,
    rules: &StaticRules<'_>,
    bindings: &mut Vec<(PortlessStatic, Place)>,
    report: &mut Report,
) {
    let mut address = |key: &str, refuse: &dyn Fn(Ipv4Addr) -> Result<(), String>| {
        let value = row.value(key, report)?;
        let address = value.address4(report)?;
        refuse(address).unwrap_or_else(|what| report.fault(&value.place, what));
        Some(address)
    };
    let inside = address("inside", &|address| rules.inside(Endpoint6::new(address.to_ipv6_mapped(), 0)));
    let outside = address("outside", &|address| rules.outside_address(address));
    let (Some(inside), Some(outside)) = (inside, outside) else { return };
    let same = bindings.iter().find(|(other, _)| {
        other.protocol == protocol && (other.outside == outside || other.inside == inside)
    });
    if let Some((other, place)) = same {
        let what: &dyn Display = if other.outside == outside { &outside } else { &inside };
        let (name, there) = (protocol.as_str(), place.seen_from(row.place()));
        report
            .fault(row.place(), format!("{name} {what} already has a static binding ({there}); remove one"));
    }
    bindings.push((PortlessStatic { protocol, inside, outside }, row.place().clone()));
}
