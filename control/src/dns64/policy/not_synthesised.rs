//! IPv4 addresses that no AAAA record is synthesised from.

use super::ranges::Addresses;
use crate::dns64::settings::Settings;
use crate::dns64::special_address::is_no_host;
use sixway_wire::{Prefix4, Prefix6};
use std::net::Ipv4Addr;

/// Private and shared addresses (RFC 1918, RFC 6598), loopback and link-local ones. A name of the Internet that has one is a mistake, or DNS rebinding.
const PRIVATE: [Prefix4; 6] = [
    Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10),
    Prefix4::holding(Ipv4Addr::new(127, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(169, 254, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(172, 16, 0, 0), 12),
    Prefix4::holding(Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// The addresses.
#[derive(Clone, Debug)]
pub(super) struct NotSynthesised {
    /// Whatever the prefix.
    everywhere: Addresses,
    excludes_private: bool,
    reserved_are_hosts: bool,
    /// With this prefix.
    by_prefix: Vec<(Prefix6, Addresses)>,
}

impl NotSynthesised {
    pub(super) fn new(settings: &Settings) -> Self {
        let of_prefix =
            |(prefix, addresses): &(Prefix6, Vec<Prefix4>)| (*prefix, Addresses::new(addresses, &[]));
        let mut new = Self {
            everywhere: Addresses::default(),
            excludes_private: settings.exclude_private,
            reserved_are_hosts: settings.synthesise_reserved,
            by_prefix: settings.exclude4.iter().map(of_prefix).collect(),
        };
        new.set_host4(&settings.access.host4);
        new
    }

    /// This host's addresses are others.
    pub(super) fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        if self.excludes_private {
            let own = host4.iter().map(|own| Prefix4::holding(*own, 32));
            let all: Vec<Prefix4> = PRIVATE.into_iter().chain(own).collect();
            self.everywhere = Addresses::new(&all, &[]);
        }
    }

    /// Whether no host has the address.
    pub(super) fn is_no_host(&self, address: Ipv4Addr) -> bool {
        is_no_host(address, self.reserved_are_hosts)
    }

    /// Whether the address is not embedded in any prefix.
    pub(super) fn everywhere(&self, address: Ipv4Addr) -> bool {
        self.everywhere.contains4(address)
    }

    /// Whether the address is not embedded in this prefix.
    pub(super) fn with(&self, prefix: Prefix6, address: Ipv4Addr) -> bool {
        self.by_prefix.iter().any(|(of, addresses)| *of == prefix && addresses.contains4(address))
    }
}
