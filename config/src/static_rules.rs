//! Checks of static bindings: the same for those in the file and those made at run time.

use crate::pool::Pool;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The translator of a binding.
#[derive(Clone, Copy, Debug)]
pub struct StaticRules<'p> {
    /// Its prefix, if it is known.
    pub prefix: Option<Prefix6>,
    /// The prefixes of its inside hosts, if these have IPv4 addresses.
    pub inside4: Option<&'p [Prefix4]>,
    /// Its pool, if it is known.
    pub pool: Option<&'p Pool>,
}

impl StaticRules<'_> {
    /// Whether the inside endpoint is a host's. One with an IPv4 address is given by its IPv4-mapped address.
    ///
    /// # Errors
    /// What is wrong.
    pub fn inside(&self, inside: Endpoint6) -> Result<(), String> {
        if let Some(prefixes) = self.inside4 {
            let Some(host) = inside.address.to_ipv4_mapped() else {
                return Err("is not an IPv4 address; write the address of an inside host of [nat44]".into());
            };
            return if prefixes.iter().any(|prefix| prefix.contains(host)) {
                Ok(())
            } else {
                Err("is not in nat44.inside; write the address of an inside host".into())
            };
        }
        if self.prefix.is_some_and(|prefix| prefix.contains(inside.address)) {
            return Err("is within this NAT64's own prefix; write the address of an inside host".into());
        }
        if !is_host(inside.address) {
            return Err("is not an address that a host inside can have; write such an address".into());
        }
        Ok(())
    }

    /// Whether the outside address is one that a host may have for a protocol without ports.
    ///
    /// # Errors
    /// What is wrong.
    pub fn outside_address(&self, outside: Ipv4Addr) -> Result<(), String> {
        if self.pool.is_some_and(|pool| pool.shared) {
            let what = "is not for protocols without ports: this host takes their packets to its own address";
            return Err(format!("{what}; use a pool that is not shared"));
        }
        self.is_in_pool(outside)
    }

    fn is_in_pool(&self, outside: Ipv4Addr) -> Result<(), String> {
        let Some(pool) = self.pool.filter(|pool| !pool.holds(outside)) else { return Ok(()) };
        let such = pool.addresses.first().map(|p| format!(" such as {}", p.address()));
        Err(format!("is not an address of pool {}; write one{}", pool.name, such.unwrap_or_default()))
    }

    /// Whether the outside endpoint belongs to the translator.
    ///
    /// # Errors
    /// What is wrong.
    pub fn outside(&self, outside: Endpoint4) -> Result<(), String> {
        let Some(pool) = self.pool else { return Ok(()) };
        let (name, ports) = (&pool.name, &pool.ports);
        self.is_in_pool(outside.address)?;
        // The others are the host's own, or those of other pools.
        if pool.has_part_of(outside.address) && !ports.contain(outside.port) {
            let kind = if pool.shared { "shared pool" } else { "pool" };
            return Err(format!(
                "is outside the ports of the {kind} {name} ({ports}); write a port in this range"
            ));
        }
        Ok(())
    }

    /// Whether a port is one; `is_icmp`: it is an identifier.
    ///
    /// # Errors
    /// It is not.
    pub fn port(port: u16, is_icmp: bool) -> Result<(), String> {
        if port == 0 && !is_icmp { Err("port 0 is not valid; write 1 to 65535".into()) } else { Ok(()) }
    }
}

/// Whether packets can be routed to a host of this address.
fn is_host(address: Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unicast_link_local()
        || address.to_ipv4_mapped().is_some())
}
