//! What tunnels and advertisements depend on, and what may change while they run: this host's addresses, and those of remote ends.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sixway_wire::{Prefix4, Prefix6};

use crate::host::HostAddress;
use crate::unicast::is_unicast;

/// This host's addresses, and what was learnt from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Addresses by interface, with their networks, in the kernel's order.
    addresses: Vec<(String, Ipv4Addr, Prefix4)>,
    /// IPv6 addresses by interface, in the kernel's order.
    addresses6: Vec<(String, Ipv6Addr)>,
    /// Interface indices of those that have addresses. An interface that is deleted and created again gets another index.
    numbers: BTreeMap<String, u32>,
    /// The addresses of remote ends with names, by tunnel.
    pub remotes: BTreeMap<String, Ipv4Addr>,
    /// The AFTRs of B4s that are names or come from a lease, by the B4's name.
    pub aftrs: BTreeMap<String, Ipv6Addr>,
    /// Prefixes that ISATAP hosts have learnt, by interface.
    pub learnt: BTreeMap<String, Learnt>,
    /// Addresses that this host leases over IPv6, by tunnel.
    pub leases: BTreeMap<String, HostLease>,
    /// The address of a Teredo client.
    pub teredo: Option<Ipv6Addr>,
}

/// An address that this host leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLease {
    /// The address.
    pub ipv4: Ipv4Addr,
    /// Whether the lease is held; else the address was leased before, and is requested again.
    pub is_held: bool,
}

/// Prefixes that an ISATAP host has learnt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// The prefixes of its addresses.
    pub prefixes: Vec<Prefix6>,
    /// The router in use.
    pub router: Option<Ipv4Addr>,
}

impl Surroundings {
    /// With these addresses of this host.
    pub fn of(addresses: &[HostAddress]) -> Self {
        let own = addresses.iter().filter_map(|own| match own.address {
            IpAddr::V4(address) => {
                Some((own.interface.clone(), address, Prefix4::holding(address, own.length)))
            }
            IpAddr::V6(_) => None,
        });
        let own6 = addresses.iter().filter_map(|own| match own.address {
            IpAddr::V6(address) => Some((own.interface.clone(), address)),
            IpAddr::V4(_) => None,
        });
        Self { addresses: own.collect(), addresses6: own6.collect(), ..Self::default() }
    }

    /// The same with these addresses, and the kernel's numbers of the interfaces that have them.
    pub fn with_addresses(self, addresses: &[HostAddress], numbers: BTreeMap<String, u32>) -> Self {
        let Self { addresses, addresses6, .. } = Self::of(addresses);
        Self { addresses, addresses6, numbers, ..self }
    }

    /// The kernel's number of an interface with an IPv4 address.
    pub fn number_of(&self, interface: &str) -> Option<u32> {
        self.numbers.get(interface).copied()
    }

    /// The IPv4 address of an interface that a tunnel there uses: the first that is reachable from outside.
    pub fn ipv4_of(&self, interface: &str) -> Option<Ipv4Addr> {
        let link_local = Prefix4::holding(Ipv4Addr::new(169, 254, 0, 0), 16);
        let usable = |address: &Ipv4Addr| is_unicast(*address) && !link_local.contains(*address);
        let own = self.addresses.iter().filter(|(name, ..)| name == interface);
        own.map(|(_, address, _)| *address).find(usable)
    }

    /// The IPv6 addresses of an interface.
    pub fn ipv6_of(&self, interface: &str) -> impl Iterator<Item = Ipv6Addr> {
        self.addresses6.iter().filter(move |(name, _)| name == interface).map(|(_, address)| *address)
    }

    /// The IPv6 address of an interface whose prefix a B4 uses: the newest global one, which the kernel lists first; else one of a site's own
    /// (RFC 4193).
    pub fn global_ipv6_of(&self, interface: &str) -> Option<Ipv6Addr> {
        let is_global = |address: &Ipv6Addr| address.to_bits() >> 125 == 1;
        let is_unique_local = |address: &Ipv6Addr| address.to_bits() >> 121 == 0xfc >> 1;
        let own = || self.ipv6_of(interface);
        own().find(is_global).or_else(|| own().find(is_unique_local))
    }

    /// The interface that has an address.
    pub fn holder(&self, address: Ipv4Addr) -> Option<&str> {
        self.addresses.iter().find(|(_, own, _)| *own == address).map(|(name, ..)| &**name)
    }

    /// The interfaces with an address in one of these prefixes.
    pub(crate) fn holders_in<'a>(&'a self, prefixes: &'a [Prefix4]) -> impl Iterator<Item = &'a str> {
        let is_there = |own: &Ipv4Addr| prefixes.iter().any(|prefix| prefix.contains(*own));
        self.addresses.iter().filter(move |(_, own, _)| is_there(own)).map(|(name, ..)| &**name)
    }

    /// The interface with a network in which others resolve the address; that of the longest prefix.
    pub fn link_of(&self, address: Ipv4Addr) -> Option<&str> {
        let networks = self.addresses.iter().filter(|(_, own, network)| {
            network.length() < 31 && network.contains(address) && *own != address && !own.is_loopback()
        });
        networks.max_by_key(|(.., network)| network.length()).map(|(name, ..)| &**name)
    }

    /// The interface that has an address of either family.
    pub fn holder_of(&self, address: IpAddr) -> Option<&str> {
        match address {
            IpAddr::V4(address) => self.holder(address),
            IpAddr::V6(address) => {
                self.addresses6.iter().find(|(_, own)| *own == address).map(|(name, _)| &**name)
            }
        }
    }

    /// All IPv4 addresses of this host.
    pub fn host4(&self) -> Vec<Ipv4Addr> {
        self.addresses.iter().map(|(_, address, _)| *address).collect()
    }

    /// The IPv4 networks that this host is attached to.
    pub fn subnets(&self) -> Vec<Prefix4> {
        self.addresses.iter().map(|(_, _, subnet)| *subnet).collect()
    }

    /// The names of all interfaces with an IPv4 address.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.addresses.iter().map(|(name, ..)| &**name)
    }
}
