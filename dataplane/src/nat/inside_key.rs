//! The key of an inside endpoint. It is chosen at compile time: each mechanism has tables of its own kind.
//!
//! ```text
//!     NAT64     Endpoint6                      an IPv6 address and a port
//!     NAT44     Endpoint4                      an IPv4 address and a port; each realm has a NAT of its own
//!     DS-Lite   Softwire { id, endpoint }      an IPv4 address and a port behind one softwire (RFC 6333 §6.6)
//! ```

use super::keyed::TupleHash;
use super::protocol::NatProtocol;
use super::sides::Inside;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};

/// An inside endpoint, as the tables hold it.
pub trait InsideKey: Copy + Eq + Ord + fmt::Debug + Send + 'static {
    /// The host that the endpoint belongs to.
    type Host: InsideHost;
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

    /// Whether the endpoint's host is one of the network's.
    fn is_in(self, network: Self::Network) -> bool;

    /// The endpoint as everything outside of the NAT knows it: operators, the fast path, another process. An IPv4 address becomes its
    /// IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). `None`: the endpoint cannot be expressed so.
    fn mapped(self) -> Option<Inside6>;

    /// The endpoint again. `None`: it is of another kind.
    fn of_mapped(mapped: Inside6) -> Option<Self>;

    /// The first address of the prefix of this length that holds a host, by its place ([`InsideHost::place`]), as [`InsideKey::mapped`] gives
    /// addresses. `None`: it cannot be expressed so.
    fn mapped_prefix(place: u128, bits: u8) -> Option<Ipv6Addr>;

    /// The hosts of this kind whose addresses, as [`InsideKey::mapped`] gives them, are in this prefix. `None`: no host's is.
    fn network_of_mapped(network: Prefix6) -> Option<Self::Network>;

    /// The tag of a session's inside tuple.
    fn session_tag(self, hash: &TupleHash, remote: Endpoint4, protocol: NatProtocol) -> u32;

    /// The tag of a binding's inside endpoint.
    fn binding_tag(self, hash: &TupleHash, protocol: NatProtocol) -> u32;
}

/// An inside endpoint of any kind, as [`InsideKey::mapped`] gives it.
pub type Inside6 = Inside<Endpoint6>;

/// Bits of the prefix of IPv4-mapped addresses, ::ffff:0:0/96.
const MAPPED_BITS: u8 = 96;

/// An inside host.
pub trait InsideHost: Copy + Eq + Ord + fmt::Debug + Send + 'static {
    /// Bits of the address.
    const BITS: u8;
    /// Bits of the prefix that one subscriber has, unless something else is configured.
    const SUBSCRIBER_BITS: u8;

    /// The tag of the host.
    fn tag(self, hash: &TupleHash) -> u32;

    /// The subscriber that the host belongs to, where subscribers have a prefix of `bits` bits.
    fn subscriber(self, bits: u8) -> Subscriber;

    /// The address in the first bits of a number, behind whatever else tells the host from others: workers are chosen by it.
    fn place(self) -> u128;

    /// The place of a subscriber's first address.
    fn place_of(subscriber: Subscriber) -> u128;

    /// The place of a host, of its address as [`InsideKey::mapped`] gives it.
    fn place_of_mapped(mapped: Ipv6Addr) -> u128;

    /// Bits of [`InsideHost::place`] that differ between subscribers with a prefix of `bits` bits.
    fn place_bits(subscriber_bits: u8) -> u8;
}

/// Who shares a limit, and a worker: the hosts of one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscriber(pub [u64; 2]);

/// Number of a softwire (RFC 6333 §6.6): one of many tunnels, one for each subscriber. It survives decapsulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SoftwireId(pub u32);

/// An inside endpoint behind a softwire. Other softwires may have hosts with the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Softwire {
    /// Which softwire.
    pub id: SoftwireId,
    /// The endpoint.
    pub endpoint: Endpoint4,
}

/// A host behind a softwire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SoftwireHost {
    /// Which softwire.
    pub id: SoftwireId,
    /// The host's address.
    pub address: Ipv4Addr,
}

/// Alignment to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct CacheLine;

impl InsideKey for Endpoint6 {
    type Host = Ipv6Addr;
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

    fn is_in(self, network: Prefix6) -> bool {
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

    fn is_in(self, network: Prefix4) -> bool {
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

impl InsideKey for Softwire {
    type Host = SoftwireHost;
    type Network = SoftwireId;
    type Alignment = CacheLine;

    const UNSPECIFIED: Self =
        Self { id: SoftwireId(u32::MAX), endpoint: <Endpoint4 as InsideKey>::UNSPECIFIED };

    #[inline]
    fn host(self) -> SoftwireHost {
        SoftwireHost { id: self.id, address: self.endpoint.address }
    }

    #[inline]
    fn port(self) -> u16 {
        self.endpoint.port
    }

    fn is_in(self, network: SoftwireId) -> bool {
        self.id == network
    }

    fn mapped(self) -> Option<Inside6> {
        None
    }

    fn of_mapped(_: Inside6) -> Option<Self> {
        None
    }

    fn mapped_prefix(_: u128, _: u8) -> Option<Ipv6Addr> {
        None
    }

    fn network_of_mapped(_: Prefix6) -> Option<SoftwireId> {
        None
    }

    #[inline]
    fn session_tag(self, hash: &TupleHash, remote: Endpoint4, protocol: NatProtocol) -> u32 {
        let ports = u64::from(self.endpoint.port) << 16 | u64::from(remote.port);
        hash.quad([
            self.host().word(),
            address_word(remote.address) << 32 | ports,
            u64::from(self.id.0),
            protocol as u64,
        ])
    }

    #[inline]
    fn binding_tag(self, hash: &TupleHash, protocol: NatProtocol) -> u32 {
        hash.pair(self.host().word(), u64::from(self.endpoint.port) << 8 | protocol as u64)
    }
}

impl InsideHost for Ipv6Addr {
    const BITS: u8 = 128;
    /// A host may have as many addresses in its /64 as it likes.
    const SUBSCRIBER_BITS: u8 = 64;

    #[inline]
    fn tag(self, hash: &TupleHash) -> u32 {
        let [a, b] = address_words(self);
        hash.pair(a, b)
    }

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

impl InsideHost for Ipv4Addr {
    const BITS: u8 = 32;
    const SUBSCRIBER_BITS: u8 = 32;

    #[inline]
    fn tag(self, hash: &TupleHash) -> u32 {
        hash.pair(address_word(self), 0)
    }

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

impl InsideHost for SoftwireHost {
    const BITS: u8 = 32;
    /// The softwire is the subscriber, whatever addresses are used behind it.
    const SUBSCRIBER_BITS: u8 = 0;

    #[inline]
    fn tag(self, hash: &TupleHash) -> u32 {
        hash.pair(self.word(), 0)
    }

    fn subscriber(self, bits: u8) -> Subscriber {
        let Subscriber([_, prefix]) = self.address.subscriber(bits);
        Subscriber([self.id.0.into(), prefix])
    }

    #[inline]
    fn place(self) -> u128 {
        u128::from(self.id.0) << 96 | u128::from(self.address.to_bits()) << 64
    }

    fn place_of(Subscriber([id, prefix]): Subscriber) -> u128 {
        u128::from(id) << 96 | u128::from(prefix) << 64
    }

    /// Such a host has no address of its own.
    fn place_of_mapped(_: Ipv6Addr) -> u128 {
        0
    }

    fn place_bits(subscriber_bits: u8) -> u8 {
        subscriber_bits.saturating_add(32)
    }
}

impl SoftwireHost {
    /// For hashing only.
    #[inline]
    const fn word(self) -> u64 {
        (self.id.0 as u64) << 32 | address_word(self.address)
    }
}

/// An IPv6 address as two words, in whatever order is cheapest: for hashing only.
#[inline]
const fn address_words(address: Ipv6Addr) -> [u64; 2] {
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
            check(SoftwireHost { id: SoftwireId(7), address }, bits);
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

    #[test]
    fn hosts_with_one_address_behind_two_softwires_are_two_subscribers() {
        let host = |id| SoftwireHost { id: SoftwireId(id), address: Ipv4Addr::new(10, 0, 0, 1) };
        assert_ne!(host(1).subscriber(0), host(2).subscriber(0));
        let other = SoftwireHost { address: Ipv4Addr::new(10, 0, 0, 2), ..host(1) };
        assert_eq!(host(1).subscriber(0), other.subscriber(0));
        assert_ne!(host(1).subscriber(32), other.subscriber(32));
    }

    #[test]
    fn hosts_behind_two_softwires_and_two_hosts_behind_one_have_tags_of_their_own() {
        let host = |id, last| SoftwireHost { id: SoftwireId(id), address: Ipv4Addr::new(10, 0, 0, last) };
        let words = [host(1, 1), host(2, 1), host(1, 2), host(2, 2)].map(SoftwireHost::word);
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{words:?}");
        }
    }
}
