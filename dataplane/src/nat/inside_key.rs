//! The key of an inside endpoint. It is chosen at compile time: each mechanism has tables of its own kind.
//!
//! ```text
//!     NAT64     Endpoint6                      an IPv6 address and a port
//!     NAT44     Endpoint4                      an IPv4 address and a port; each realm has a NAT of its own
//!     DS-Lite   Softwire { id, endpoint }      an IPv4 address and a port behind one softwire (RFC 6333 §6.6; `softwire.rs`)
//! ```
//!
//! Subscribers and workers are distinguished by a host's *site*: its own address, or, behind a softwire, that of the softwire's remote end.

use super::keyed::TupleHash;
use super::protocol::NatProtocol;
use super::sides::Inside;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};

/// An inside endpoint, as the tables hold it.
pub trait InsideKey: Copy + Eq + Ord + fmt::Debug + Send + 'static {
    /// The host that the endpoint belongs to.
    type Host: HostKey;
    /// The address by which a host's subscriber and its worker are known.
    type Site: InsideHost;
    /// What the names of endpoints are kept in, where an endpoint does not say them itself.
    type Names: Default + Send;
    /// A set of hosts, to select rows by.
    type Network: Copy + Eq + fmt::Debug + Send;
    /// Alignment of a session: a cache line, so that none is in two of them.
    type Alignment: Copy + fmt::Debug + Send;

    /// No host's endpoint.
    const UNSPECIFIED: Self;

    /// The host.
    fn host(self) -> Self::Host;

    /// The port or ICMP identifier.
    fn port(self) -> u16;

    /// The site of a host.
    fn site(host: Self::Host, names: &Self::Names) -> Self::Site;

    /// Whether the endpoint's host is one of the network's.
    fn is_in(self, network: Self::Network, names: &Self::Names) -> bool;

    /// The endpoint as the fast path knows it: an IPv4 address becomes its IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). `None`: the
    /// fast path has no sessions of this kind.
    fn mapped(self) -> Option<Inside6>;

    /// The endpoint again. `None`: it is of another kind.
    fn of_mapped(mapped: Inside6) -> Option<Self>;

    /// The endpoint as operators and other processes know it. `None`: it has no name any more.
    fn named(self, _names: &Self::Names) -> Option<Named> {
        self.mapped().map(|inside| Named { softwire: None, inside })
    }

    /// The endpoint of this name, if it is one of this kind.
    fn find_named(named: Named, _names: &Self::Names) -> Option<Self> {
        if named.softwire.is_none() { Self::of_mapped(named.inside) } else { None }
    }

    /// The same, with a new name if there is room. Follow it by [`InsideKey::forget_unused`].
    fn of_named(named: Named, names: &mut Self::Names) -> Option<Self> {
        Self::find_named(named, names)
    }

    /// The endpoint of this name at a worker that does not own it: it may have no name there. Only its address and port are to be asked for.
    fn of_elsewhere(named: Named) -> Option<Self> {
        if named.softwire.is_none() { Self::of_mapped(named.inside) } else { None }
    }

    /// Forgets the name of an endpoint if no host with bindings has it.
    fn forget_unused(self, _names: &mut Self::Names) {}

    /// Whether a host without bindings would be the first of its softwire that has any.
    fn is_first_of_softwire(_host: Self::Host, _names: &Self::Names) -> bool {
        false
    }

    /// A host has its first binding; whether it is the first of its softwire.
    fn joined(_host: Self::Host, _names: &mut Self::Names) -> bool {
        false
    }

    /// A host has no binding any more; whether it was the last of its softwire.
    fn left(_host: Self::Host, _names: &mut Self::Names) -> bool {
        false
    }

    /// The site of an address, as operators and other processes know it. `None`: it is of another kind.
    fn site_of(address: Ipv6Addr) -> Option<Self::Site>;

    /// Whether hosts with bindings have this site, where hosts are known by names.
    fn names_site(_address: Ipv6Addr, _names: &Self::Names) -> bool {
        false
    }

    /// Octets of memory that the names take.
    fn names_memory(_names: &Self::Names) -> usize {
        0
    }

    /// The first address of the prefix of this length that holds a site, by its place ([`InsideHost::place`]), as operators know it. `None`: it
    /// cannot be expressed so.
    fn mapped_prefix(place: u128, bits: u8) -> Option<Ipv6Addr>;

    /// The hosts of this kind whose addresses, as operators know them, are in this prefix. `None`: no host's is.
    fn network_of_mapped(network: Prefix6) -> Option<Self::Network>;

    /// The tag of a session's inside tuple.
    fn session_tag(self, hash: &TupleHash, remote: Endpoint4, protocol: NatProtocol) -> u32;

    /// The tag of a binding's inside endpoint.
    fn binding_tag(self, hash: &TupleHash, protocol: NatProtocol) -> u32;
}

/// An inside endpoint of any kind, as [`InsideKey::mapped`] gives it.
pub type Inside6 = Inside<Endpoint6>;

/// An inside endpoint as operators and other processes know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The remote end of the softwire that it is behind.
    pub softwire: Option<Ipv6Addr>,
    /// The endpoint; an IPv4 address is its IPv4-mapped address.
    pub inside: Inside6,
}

impl From<Inside6> for Named {
    /// Of a host that is behind no softwire.
    fn from(inside: Inside6) -> Self {
        Self { softwire: None, inside }
    }
}

impl Named {
    /// The address by which the endpoint's subscriber and worker are known: the softwire's remote end, or its own.
    pub const fn site(self) -> Ipv6Addr {
        match self.softwire {
            Some(remote) => remote,
            None => self.inside.0.address,
        }
    }
}

/// Bits of the prefix of IPv4-mapped addresses, ::ffff:0:0/96.
pub(super) const MAPPED_BITS: u8 = 96;

/// An inside host, as the tables hold it.
pub trait HostKey: Copy + Eq + Ord + fmt::Debug + Send + 'static {
    /// The tag of the host.
    fn tag(self, hash: &TupleHash) -> u32;
}

/// An inside host by its address alone, or the site of hosts.
pub trait InsideHost: Copy + Eq + Ord + fmt::Debug + Send + 'static {
    /// Bits of the address.
    const BITS: u8;
    /// Bits of the prefix that one subscriber has, unless something else is configured.
    const SUBSCRIBER_BITS: u8;

    /// The subscriber that the host belongs to, where subscribers have a prefix of `bits` bits.
    fn subscriber(self, bits: u8) -> Subscriber;

    /// The address in the first bits of a number: workers are chosen by it.
    fn place(self) -> u128;

    /// The place of a subscriber's first address.
    fn place_of(subscriber: Subscriber) -> u128;

    /// The place of a site, of its address as operators know it.
    fn place_of_mapped(mapped: Ipv6Addr) -> u128;

    /// Bits of [`InsideHost::place`] that differ between subscribers with a prefix of `bits` bits.
    fn place_bits(subscriber_bits: u8) -> u8;
}

/// Hosts that share a limit, and a worker: those of one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscriber(pub [u64; 2]);

/// Alignment to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct CacheLine;

impl InsideKey for Endpoint6 {
    type Host = Ipv6Addr;
    type Site = Ipv6Addr;
    type Names = ();
    type Network = Prefix6;
    type Alignment = CacheLine;

    const UNSPECIFIED: Self = Self::new(Ipv6Addr::UNSPECIFIED, 0);

    #[inline]
    fn host(self) -> Ipv6Addr {
        self.address
    }

    #[inline]
    fn port(self) -> u16 {
        self.port
    }

    #[inline]
    fn site(host: Ipv6Addr, (): &()) -> Ipv6Addr {
        host
    }

    fn site_of(address: Ipv6Addr) -> Option<Ipv6Addr> {
        Some(address)
    }

    fn is_in(self, network: Prefix6, (): &()) -> bool {
        network.contains(self.address)
    }

    fn mapped(self) -> Option<Inside6> {
        Some(Inside(self))
    }

    fn of_mapped(mapped: Inside6) -> Option<Self> {
        Some(mapped.0)
    }

    fn mapped_prefix(place: u128, bits: u8) -> Option<Ipv6Addr> {
        Some(Prefix6::holding(Ipv6Addr::from_bits(place), bits.min(128)).address())
    }

    fn network_of_mapped(network: Prefix6) -> Option<Prefix6> {
        Some(network)
    }

    #[inline]
    fn session_tag(self, hash: &TupleHash, remote: Endpoint4, protocol: NatProtocol) -> u32 {
        let [a, b] = address_words(self.address);
        let ports = u64::from(self.port) << 16 | u64::from(remote.port);
        hash.quad([a, b, address_word(remote.address) << 32 | ports, protocol as u64])
    }

    #[inline]
    fn binding_tag(self, hash: &TupleHash, protocol: NatProtocol) -> u32 {
        let [a, b] = address_words(self.address);
        hash.quad([a, b, u64::from(self.port), protocol as u64])
    }
}

impl InsideKey for Endpoint4 {
    type Host = Ipv4Addr;
    type Site = Ipv4Addr;
    type Names = ();
    type Network = Prefix4;
    type Alignment = CacheLine;

    const UNSPECIFIED: Self = Self::new(Ipv4Addr::UNSPECIFIED, 0);

    #[inline]
    fn host(self) -> Ipv4Addr {
        self.address
    }

    #[inline]
    fn port(self) -> u16 {
        self.port
    }

    #[inline]
    fn site(host: Ipv4Addr, (): &()) -> Ipv4Addr {
        host
    }

    fn site_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
        address.to_ipv4_mapped()
    }

    fn is_in(self, network: Prefix4, (): &()) -> bool {
        network.contains(self.address)
    }

    fn mapped(self) -> Option<Inside6> {
        Some(Inside(Endpoint6::new(self.address.to_ipv6_mapped(), self.port)))
    }

    fn of_mapped(Inside(mapped): Inside6) -> Option<Self> {
        Some(Self::new(mapped.address.to_ipv4_mapped()?, mapped.port))
    }

    fn mapped_prefix(place: u128, bits: u8) -> Option<Ipv6Addr> {
        let address = Ipv4Addr::from_bits((place >> 96) as u32);
        Some(Prefix4::holding(address, bits.min(32)).address().to_ipv6_mapped())
    }

    fn network_of_mapped(network: Prefix6) -> Option<Prefix4> {
        let Some(length) = network.length().checked_sub(MAPPED_BITS) else {
            return network
                .contains(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped())
                .then_some(Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0));
        };
        Some(Prefix4::holding(network.address().to_ipv4_mapped()?, length))
    }

    #[inline]
    fn session_tag(self, hash: &TupleHash, remote: Endpoint4, protocol: NatProtocol) -> u32 {
        let ports = u64::from(self.port) << 16 | u64::from(remote.port);
        let addresses = address_word(self.address) << 32 | address_word(remote.address);
        hash.pair(addresses, ports << 8 | protocol as u64)
    }

    #[inline]
    fn binding_tag(self, hash: &TupleHash, protocol: NatProtocol) -> u32 {
        hash.pair(address_word(self.address), u64::from(self.port) << 8 | protocol as u64)
    }
}

impl HostKey for Ipv6Addr {
    #[inline]
    fn tag(self, hash: &TupleHash) -> u32 {
        let [a, b] = address_words(self);
        hash.pair(a, b)
    }
}

impl InsideHost for Ipv6Addr {
    const BITS: u8 = 128;
    /// A host may have as many addresses in its /64 as it likes.
    const SUBSCRIBER_BITS: u8 = 64;

    fn subscriber(self, bits: u8) -> Subscriber {
        let prefix = Prefix6::holding(self, bits.min(<Self as InsideHost>::BITS)).address().to_bits();
        Subscriber([(prefix >> 64) as u64, prefix as u64])
    }

    #[inline]
    fn place(self) -> u128 {
        self.to_bits()
    }

    fn place_of(Subscriber([high, low]): Subscriber) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }

    fn place_of_mapped(mapped: Ipv6Addr) -> u128 {
        mapped.to_bits()
    }

    fn place_bits(subscriber_bits: u8) -> u8 {
        subscriber_bits
    }
}

impl HostKey for Ipv4Addr {
    #[inline]
    fn tag(self, hash: &TupleHash) -> u32 {
        hash.pair(address_word(self), 0)
    }
}

impl InsideHost for Ipv4Addr {
    const BITS: u8 = 32;
    const SUBSCRIBER_BITS: u8 = 32;

    fn subscriber(self, bits: u8) -> Subscriber {
        Subscriber([
            0,
            Prefix4::holding(self, bits.min(<Self as InsideHost>::BITS)).address().to_bits().into(),
        ])
    }
    #[inline]
    fn place(self) -> u128 {
        u128::from(self.to_bits()) << 96
    }

    fn place_of(Subscriber([_, prefix]): Subscriber) -> u128 {
        u128::from(prefix) << 96
    }

    fn place_of_mapped(mapped: Ipv6Addr) -> u128 {
        mapped.to_bits() << 96
    }

    fn place_bits(subscriber_bits: u8) -> u8 {
        subscriber_bits
    }
}

/// An IPv6 address as two words, in whatever order is cheapest: for hashing only.
#[inline]
pub(super) const fn address_words(address: Ipv6Addr) -> [u64; 2] {
    let bits = u128::from_ne_bytes(address.octets());
    [bits as u64, (bits >> 64) as u64]
}

/// An IPv4 address as a word: for hashing only.
#[inline]
pub(super) const fn address_word(address: Ipv4Addr) -> u64 {
    u32::from_ne_bytes(address.octets()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_has_a_prefix_of_any_length() {
        let host = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let (one, two) = (host("2001:db8:0:1::1"), host("2001:db8:0:2::1"));
        assert_ne!(one.subscriber(64), two.subscriber(64));
        assert_eq!(one.subscriber(56), two.subscriber(56));
        assert_eq!(one.subscriber(0), host("fd00::1").subscriber(0));
        assert_ne!(one.subscriber(128), host("2001:db8:0:1::2").subscriber(128));
        let host = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        assert_eq!(host("10.0.0.1").subscriber(24), host("10.0.0.2").subscriber(24));
        assert_ne!(host("10.0.0.1").subscriber(32), host("10.0.0.2").subscriber(32));
        assert_eq!(host("10.0.0.1").subscriber(64), host("10.0.0.1").subscriber(32));
    }

    #[test]
    fn the_place_of_a_subscriber_is_that_of_its_hosts_without_their_own_bits() {
        fn check<H: InsideHost>(host: H, bits: u8) {
            let shift = 128 - u32::from(H::place_bits(bits));
            let place = host.place().checked_shr(shift).unwrap_or(0).checked_shl(shift).unwrap_or(0);
            assert_eq!(H::place_of(host.subscriber(bits)), place, "{host:?}/{bits}");
        }
        let address = Ipv4Addr::new(10, 11, 12, 13);
        for bits in 0..=32 {
            check(address, bits);
        }
        let address: Ipv6Addr = "2001:db8:1:2345:6789:abcd:ef01:2345".parse().unwrap();
        (0..=128).for_each(|bits| check(address, bits));
    }

    #[test]
    fn an_ipv4_endpoint_becomes_its_mapped_address() {
        let endpoint = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 1), 4_711);
        let mapped = endpoint.mapped().unwrap();
        assert_eq!(mapped.0.address.to_string(), "::ffff:10.0.0.1");
        assert_eq!(Endpoint4::of_mapped(mapped), Some(endpoint));
        let other = Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), 4_711));
        assert_eq!(Endpoint4::of_mapped(other), None);
    }

    #[test]
    fn a_network_of_ipv4_hosts_is_one_of_their_mapped_addresses() {
        let network = |text: &str| Endpoint4::network_of_mapped(text.parse().unwrap());
        assert_eq!(network("::ffff:10.0.0.0/104"), Some("10.0.0.0/8".parse().unwrap()));
        assert_eq!(network("::ffff:10.0.0.1/128"), Some("10.0.0.1/32".parse().unwrap()));
        assert_eq!(network("::/0"), Some(Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0)));
        assert_eq!(network("::ffff:0:0/96"), Some(Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0)));
        assert_eq!(network("2001:db8::/32"), None);
        assert_eq!(network("2001:db8::1/128"), None);
    }
}
