//! Who may query the DNS64, and the settings of each of its threads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sixway_control::dns64::{Access, Anchor, Settings};
use sixway_wire::{Prefix4, Prefix6};

use crate::config::Config;
use crate::host::HostAddress;
use crate::surroundings::Surroundings;

impl Config {
    /// The settings of each of the DNS64's threads; memory and waiting queries are divided between them. `access` is
    /// [`Config::dns64_access`], `anchors` the trust anchors at the start: [`Dnssec::anchors`] and later keys.
    pub fn dns64_settings(&self, access: Access, anchors: Vec<Anchor>) -> Option<Settings> {
        self.dns64.as_ref().map(|dns64| dns64.settings(access, anchors))
    }

    /// The clients that may query the DNS64, with the current addresses: as written, else the networks of the listening interfaces,
    /// the prefixes that are advertised there, link-local addresses and this host itself.
    pub fn dns64_access(&self, addresses: &[HostAddress], now: &Surroundings) -> Access {
        let Some(dns64) = &self.dns64 else { return Access::default() };
        // Only if they matter: every thread is notified of a change.
        let mut host4: Vec<Ipv4Addr> = Vec::new();
        if dns64.exclude_private {
            host4.extend(addresses.iter().filter_map(|own| match own.address {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            }));
            host4.sort_unstable();
            host4.dedup();
        }
        if let Some(allow) = &dns64.allow {
            return Access { v4: allow.v4.clone(), v6: allow.v6.clone(), host4 };
        }
        let mut access = Access {
            v4: vec![Prefix4::holding([127, 0, 0, 0].into(), 8)],
            v6: vec![
                Prefix6::holding(Ipv6Addr::LOCALHOST, 128),
                Prefix6::holding(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
            ],
            host4,
        };
        let interfaces = dns64.interfaces(addresses);
        for own in addresses.iter().filter(|own| interfaces.contains(&&*own.interface)) {
            match own.address {
                // A network of length 0 is not known.
                _ if own.length == 0 => {}
                IpAddr::V4(address) => access.v4.push(Prefix4::holding(address, own.length)),
                IpAddr::V6(address) => access.v6.push(Prefix6::holding(address, own.length)),
            }
        }
        for it in &self.router_advertisements {
            if it.interface.as_deref().is_some_and(|name| interfaces.contains(&name)) {
                access.v6.extend(self.advertised(it, now).prefixes.iter().map(|row| row.prefix));
            }
        }
        access.v4.sort_unstable();
        access.v4.dedup();
        access.v6.sort_unstable();
        access.v6.dedup();
        access
    }
}
