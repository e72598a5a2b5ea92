//! `[[tunnel]]`: configured tunnels of IPv6 in IPv4 (RFC 4213).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use serde::{Serialize, Serializer};
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::Owner;
use crate::domain_name::is_domain_name;
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report};
use crate::host_prefixes::{NO_HOSTS, is_of_hosts, read_prefixes};
use crate::local_address::LocalAddress;
use crate::outer_end;
use crate::section::Reader;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::unicast::is_unicast;

/// The other end of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// It has this address.
    Address(Ipv4Addr),
    /// The DNS knows its address.
    Name(String),
}

impl Serialize for Remote {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Address(address) => serializer.collect_str(address),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl Remote {
    fn read(text: &str, place: &Place, report: &mut Report) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            if !is_unicast(address) {
                report.fault(place, "is not a valid host address; write a unicast address");
                return None;
            }
            return Some(Self::Address(address));
        }
        // A name of digits alone is a mistyped address.
        let named = is_domain_name(text) && text.bytes().any(|b| b.is_ascii_alphabetic());
        if !named {
            report.fault(
                place,
                "is neither an IPv4 address nor a name; write one such as 198.51.100.1 or gw.example",
            );
            return None;
        }
        Some(Self::Name(text.to_owned()))
    }
}

/// A configured tunnel, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfiguredTunnel {
    /// Its name.
    pub name: String,
    /// This end.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// The other end.
    pub remote: Remote,
    /// How often the name is resolved.
    #[serde(serialize_with = "text::as_duration")]
    pub remote_refresh: Duration,
    /// The networks of its address; empty: any.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub remote_within: Vec<Prefix4>,
    /// The prefixes behind the remote end.
    #[serde(serialize_with = "text::many")]
    pub prefixes: Vec<Prefix6>,
    /// Whether inner sources must lie within them.
    pub strict_sources: bool,
    /// An address that this host gets on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address: Option<Ipv6Addr>,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

impl ConfiguredTunnel {
    pub(crate) fn read(section: &Reader, default_name: String, context: TunnelContext) -> Option<Self> {
        let TunnelContext { index, mtu, host, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let local = LocalAddress::read(section, "local", host, report);
        let remote = section.value("remote", report).and_then(|v| {
            let remote = Remote::read(&v.text(report)?, &v.place, report)?;
            let own = local.as_ref().and_then(|(local, _)| local.found);
            let elsewhere =
                |address: Ipv4Addr| host.addresses.iter().find(|it| it.address == IpAddr::V4(address));
            match &remote {
                Remote::Address(address) if own == Some(*address) => {
                    report.fault(&v.place, "is also the local end; write the address of the remote end");
                }
                // RFC 6324 §3: packets to it would return.
                Remote::Address(address) => {
                    outer_end::check(*address, &v.place, host, claims, report);
                    if let Some(held) = elsewhere(*address) {
                        let what = "is this host's own address on";
                        report.fault(
                            &v.place,
                            format!("{what} {}; write the address of the remote end", held.interface),
                        );
                    }
                }
                Remote::Name(_) => {}
            }
            Some(remote)
        });
        let remote_refresh = section.value("remote_refresh", report).and_then(|v| v.duration(report));
        let within = section.value("remote_within", report);
        if let (Some(Remote::Address(_)), Some(v)) = (&remote, &within) {
            report.fault(&v.place, "applies only to a remote that is a name; remove it");
        }
        let remote_within = read_prefixes(within, report);
        let prefixes = section.value("prefixes", report).and_then(|v| {
            let (place, mut whole, mut prefixes) = (v.place.clone(), true, Vec::new());
            for item in v.items() {
                match item.prefix6(report) {
                    Some(prefix) => {
                        if !is_of_hosts(prefix) {
                            report.fault(&item.place, format!("{prefix} {NO_HOSTS}"));
                        }
                        claims.v6(prefix, Owner::Tunnel(index), &item.place);
                        prefixes.push(prefix);
                    }
                    None => whole = false,
                }
            }
            if whole && prefixes.is_empty() {
                report
                    .fault(&place, "is empty; write the prefixes behind the remote end, such as [\"::/0\"]");
            }
            whole.then_some(prefixes)
        });
        let strict_sources = section.value("strict_sources", report).and_then(|v| v.boolean(report));
        let ipv6_address = section.value("ipv6_address", report).map(|v| {
            let address = v.address6(report)?;
            if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
                report.fault(&v.place, "is not a valid host address; write a unicast address");
            }
            Some(address)
        });
        let encapsulation = Encapsulation::read(section, mtu, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            local: local?.0,
            remote: remote?,
            remote_refresh: remote_refresh?,
            remote_within: remote_within?,
            prefixes: prefixes?,
            strict_sources: strict_sources?,
            ipv6_address: ipv6_address.map_or(Some(None), |address| address.map(Some))?,
            encapsulation: encapsulation?,
        })
    }
}
