//! An interface to inside hosts, and its addresses.

use super::facts::SiteFacts;
use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface to inside hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lan {
    /// Its name.
    pub interface: String,
    /// Its IPv4 networks.
    pub networks: Vec<Prefix4>,
    /// This host's address in each of them.
    pub own: Vec<Ipv4Addr>,
    /// Its IPv6 networks with addresses that are not link-local.
    pub prefixes: Vec<Prefix6>,
    /// This host's addresses in them.
    pub addresses: Vec<Ipv6Addr>,
    /// Whether an earlier configuration of the site advertised it to hosts: then prefixes that have ended are deprecated (RFC 9096 §3.5).
    pub was_advertised: bool,
}

impl Lan {
    /// The interface of this name, with the host's networks there.
    pub(super) fn of(name: &str, facts: &SiteFacts) -> Self {
        let mut lan = Self {
            interface: name.into(),
            networks: Vec::new(),
            own: Vec::new(),
            prefixes: Vec::new(),
            addresses: Vec::new(),
            was_advertised: false,
        };
        for own in facts.host.addresses.iter().filter(|own| own.interface == name) {
            match own.address {
                IpAddr::V4(address) => {
                    let network = Prefix4::holding(address, own.length);
                    if own.length < 32 && !lan.networks.contains(&network) {
                        lan.networks.push(network);
                        lan.own.push(address);
                    }
                }
                IpAddr::V6(address) => {
                    let prefix = Prefix6::holding(address, own.length);
                    if own.length == 64 && !address.is_unicast_link_local() && !lan.prefixes.contains(&prefix)
                    {
                        lan.prefixes.push(prefix);
                        lan.addresses.push(address);
                    }
                }
            }
        }
        lan
    }
}
