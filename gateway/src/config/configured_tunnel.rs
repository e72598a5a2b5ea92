//! `[[tunnel]]`: configured tunnels of IPv6 in IPv4 (RFC 4213).

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use sixway_wire::{Prefix4, Prefix6};

use super::claims::Owner;
use super::encapsulation::Encapsulation;
use super::fault::{Place, Report};
use super::local_address::LocalAddress;
use super::pool::is_unicast;
use super::section::Reader;
use super::text;
use super::tunnels::Around;

/// A configured tunnel, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfiguredTunnel {
    /// What it is called.
    pub name: String,
    /// This end.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// The other end, if it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Ipv4Addr>,
    /// Where the other end is, if it is followed.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub remote_within: Vec<Prefix4>,
    /// What is behind the other end.
    #[serde(serialize_with = "text::many")]
    pub prefixes: Vec<Prefix6>,
    /// An address that this host gets on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address: Option<Ipv6Addr>,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

impl ConfiguredTunnel {
    pub(super) fn read(section: &Reader, default_name: String, around: Around) -> Option<Self> {
        let Around { index, host, claims, report } = around;
        let name = section.value("name", report).map(|v| v.text(report));
        let local = LocalAddress::read(section, "local", host, report);
        let remote = section.value("remote", report).map(|v| {
            let remote = v.address4(report)?;
            let own = local.as_ref().and_then(|(local, _)| local.found);
            if !is_unicast(remote) {
                report.fault(&v.place, "is no address that a host can have; write a unicast address");
            } else if own == Some(remote) {
                report.fault(&v.place, "is this end too; write the other end's address");
            }
            Some((remote, v.place))
        });
        let remote_within = section.value("remote_within", report).map(|v| (v.place.clone(), v));
        match (&remote, &remote_within) {
            (None, None) => report.fault(
                section.place(),
                "has no other end; write remote = \"198.51.100.1\", or remote_within = [\"198.51.100.0/24\"] for one that changes",
            ),
            (Some(_), Some((place, _))) => report.fault(place, "stands beside remote; leave one"),
            (Some(_), None) | (None, Some(_)) => {}
        }
        let remote_within = match remote_within {
            None => Some(Vec::new()),
            Some((place, v)) => read_remotes(v, &place, report),
        };
        let prefixes = section.value("prefixes", report).and_then(|v| {
            let (place, mut whole, mut prefixes) = (v.place.clone(), true, Vec::new());
            for item in v.items() {
                match item.prefix6(report) {
                    Some(prefix) => {
                        claims.v6(prefix, Owner::Tunnel(index), &item.place);
                        prefixes.push(prefix);
                    }
                    None => whole = false,
                }
            }
            if whole && prefixes.is_empty() {
                report.fault(&place, "is empty; write what is behind the other end, such as [\"::/0\"]");
            }
            whole.then_some(prefixes)
        });
        let ipv6_address = section.value("ipv6_address", report).map(|v| {
            let address = v.address6(report)?;
            if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
                report.fault(&v.place, "is no address that a host can have; write a unicast address");
            }
            Some(address)
        });
        let encapsulation = Encapsulation::read(section, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            local: local?.0,
            remote: remote.map_or(Some(None), |remote| remote.map(|(remote, _)| Some(remote)))?,
            remote_within: remote_within?,
            prefixes: prefixes?,
            ipv6_address: ipv6_address.map_or(Some(None), |address| address.map(Some))?,
            encapsulation: encapsulation?,
        })
    }
}

fn read_remotes(value: super::value::Value, place: &Place, report: &mut Report) -> Option<Vec<Prefix4>> {
    let (mut whole, mut prefixes) = (true, Vec::new());
    for item in value.items() {
        match item.prefix4(report) {
            Some(prefix) => prefixes.push(prefix),
            None => whole = false,
        }
    }
    if whole && prefixes.is_empty() {
        report.fault(place, "is empty; write where the other end is, such as [\"198.51.100.0/24\"]");
        return None;
    }
    whole.then_some(prefixes)
}
