//! `[pcp]`: a server of the Port Control Protocol (RFC 6887) and of NAT-PMP (RFC 6886).

use crate::fault::Report;
use crate::host::HostFacts;
use crate::interface_name::{InterfaceList, read_interfaces};
use crate::route::Route;
use crate::section::Reader;
use crate::text;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Why requests do not arrive on the device or the loopback interface.
const NO_CLIENTS: &str =
    "cannot be used: no requests of inside hosts arrive on it; write the interfaces of the inside hosts";

/// A PCP server, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pcp {
    /// Where inside hosts are.
    pub interfaces: Vec<String>,
    /// Where dnsmasq keeps the leases of inside hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_file: Option<PathBuf>,
    /// Whether this host has the anycast addresses.
    pub anycast: bool,
    /// Whether MAP is answered.
    pub map: bool,
    /// Whether PEER is answered.
    pub peer: bool,
    /// Whether NAT-PMP is answered.
    pub nat_pmp: bool,
    /// Clients that may make mappings for others.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub third_party: Vec<Route>,
    /// The shortest lifetime.
    #[serde(serialize_with = "text::as_duration")]
    pub min_lifetime: Duration,
    /// The longest lifetime.
    #[serde(serialize_with = "text::as_duration")]
    pub max_lifetime: Duration,
    /// Ports in mappings, and outbound mappings by PEER.
    pub max_mappings: u32,
    /// The same of a subscriber.
    pub mappings_per_subscriber: u32,
    /// Length of an IPv6 subscriber's prefix.
    pub subscriber_bits: u8,
    /// Ports of one request.
    pub max_port_set: u16,
    /// Requests a second of a subscriber.
    pub requests_per_second: u32,
}

impl Pcp {
    pub(crate) fn read(
        section: &Reader,
        device: Option<&str>,
        host: &HostFacts,
        report: &mut Report,
    ) -> Option<Self> {
        let interfaces = section.value("interfaces", report).and_then(|v| {
            let until = "its hosts get no answers until it appears";
            let place = v.place.clone();
            let list = InterfaceList { device, host, refused: NO_CLIENTS, until };
            let names = read_interfaces(v, list, |_| None, report)?;
            if names.is_empty() {
                report.fault(&place, "is empty; write the interfaces of the inside hosts");
                return None;
            }
            Some(names)
        });
        let lease_file = section.value("lease_file", report).map(|v| v.path(report));
        let mut boolean = |key| section.value(key, report).and_then(|v| v.boolean(report));
        let (map, peer, nat_pmp) = (boolean("map"), boolean("peer"), boolean("nat_pmp"));
        let anycast = boolean("anycast");
        let third_party = match section.value("third_party", report) {
            None => Some(Vec::new()),
            Some(v) => v.items().iter().map(|item| item.network(report)).collect(),
        };
        let least = section.value("min_lifetime", report).and_then(|v| v.duration(report));
        let most = section.value("max_lifetime", report).and_then(|v| {
            let most = v.duration(report)?;
            if least.is_some_and(|least| least > most) {
                report.fault(&v.place, "is shorter than min_lifetime; write a longer one");
                return None;
            }
            Some(most)
        });
        Some(Self {
            interfaces: interfaces?,
            lease_file: lease_file.map_or(Some(None), |path| path.map(Some))?,
            anycast: anycast?,
            map: map?,
            peer: peer?,
            nat_pmp: nat_pmp?,
            third_party: third_party?,
            min_lifetime: least?,
            max_lifetime: most?,
            max_mappings: section.value("max_mappings", report)?.integer(report)?,
            mappings_per_subscriber: section.value("mappings_per_subscriber", report)?.integer(report)?,
            subscriber_bits: section.value("subscriber_bits", report)?.integer(report)?,
            max_port_set: section.value("max_port_set", report)?.integer(report)?,
            requests_per_second: section.value("requests_per_second", report)?.integer(report)?,
        })
    }
}

/// Checks of the PCP server together with the translators.
pub(crate) fn check(has_translator: bool, section: &Reader, report: &mut Report) {
    if !has_translator {
        let what = "has no translator to control; add a [nat44] or a [nat64]";
        report.fault(section.place(), what);
    }
}
