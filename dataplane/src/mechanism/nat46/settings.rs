//! The settings of mappings: for which clients and servers, and how many.

use crate::source_check::is_martian6;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// A mapping is live for this much longer than the TTL of the answer, in seconds: answers take time, and clocks have whole seconds.
pub const MARGIN: u32 = 30;
/// An address rests for its longest TTL and this long before it represents another server, in seconds.
pub const REST: u32 = 120;
/// RFC 5382 REQ-5: a TCP connection without packets, 2 h 4 min, in seconds.
pub const TCP_IDLE: u32 = 7_440;
/// RFC 5382 REQ-5: one that is not established, 4 min, in seconds.
pub const TCP_TRANSITORY: u32 = 240;
/// RFC 4787 REQ-5: UDP, 5 min, in seconds. Also of other protocols.
pub const UDP_IDLE: u32 = 300;
/// RFC 5508 REQ-2: ICMP queries, 60 s.
pub const ICMP_IDLE: u32 = 60;

/// The shortest pool, in bits.
pub const SHORTEST_POOL: u8 = 8;

/// The clients of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The client that queried: another client's server may have the same address.
    #[default]
    Client,
    /// All clients.
    All,
}

/// The settings of the mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingSettings {
    /// Addresses that represent servers. The first and the last are not used if there are more than two.
    pub pool: Prefix4,
    /// Addresses in it that are not used: the gateway's own.
    pub excluded: Vec<Prefix4>,
    /// Mappings that always exist, for all clients.
    pub statics: Vec<(Ipv4Addr, Ipv6Addr)>,
    /// Hosts that may use the translator.
    pub clients: Vec<Prefix4>,
    /// Servers that names may lead to.
    pub servers: Vec<Prefix6>,
    /// Prefixes without servers: those of this gateway's translators.
    pub not_servers: Vec<Prefix6>,
    /// The clients of a mapping.
    pub sharing: Sharing,
    /// Maximum number of mappings, resting ones included.
    pub max_mappings: u32,
    /// Maximum number of those of a client.
    pub max_per_client: u32,
    /// Whether names lead to servers at all: without, only static mappings exist.
    pub by_name: bool,
}

impl MappingSettings {
    /// Whether a host may use the translator.
    #[inline(always)]
    pub fn is_client(&self, address: Ipv4Addr) -> bool {
        self.clients.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether a name may lead to this server.
    pub fn is_server(&self, server: Ipv6Addr) -> bool {
        let holds = |prefix: &Prefix6| prefix.contains(server);
        // IPv4-mapped and IPv4-compatible addresses are no hosts'.
        let is_host = !is_martian6(server) && !server.is_unicast_link_local() && server.to_ipv4().is_none();
        is_host && self.servers.iter().any(holds) && !self.not_servers.iter().any(holds)
    }

    /// The client of a mapping: 0.0.0.0 of one that all share.
    #[inline(always)]
    pub(super) fn key_of(&self, client: Ipv4Addr) -> Ipv4Addr {
        match self.sharing {
            Sharing::Client => client,
            Sharing::All => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// Whether the address with this number may be assigned.
    pub(super) fn gives(&self, number: u32) -> bool {
        let last = pool_size(self.pool) - 1;
        let address = Ipv4Addr::from_bits(self.pool.address().to_bits() + number);
        let is_end = self.pool.length() <= 30 && (number == 0 || number == last);
        !is_end
            && !self.excluded.iter().any(|prefix| prefix.contains(address))
            && !self.statics.iter().any(|(taken, _)| *taken == address)
    }

    /// Why the settings are invalid.
    pub fn fault(&self) -> Option<MappingFault> {
        if self.pool.length() < SHORTEST_POOL {
            return Some(MappingFault::PoolTooShort);
        }
        let outside = self.statics.iter().find(|(address, _)| !self.pool.contains(*address));
        outside.map(|(address, _)| MappingFault::StaticOutsidePool(*address))
    }
}

/// Addresses of a pool.
pub(super) const fn pool_size(pool: Prefix4) -> u32 {
    1 << (32 - if pool.length() < SHORTEST_POOL { SHORTEST_POOL } else { pool.length() })
}

/// Why the settings are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingFault {
    /// The pool's prefix is shorter than [`SHORTEST_POOL`].
    PoolTooShort,
    /// A static mapping's address is not the pool's.
    StaticOutsidePool(Ipv4Addr),
}

impl fmt::Display for MappingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoolTooShort => f.write_str("the pool must be a prefix of 8 bits or more"),
            Self::StaticOutsidePool(address) => {
                write!(f, "the static mapping's {address} is not in the pool")
            }
        }
    }
}

impl std::error::Error for MappingFault {}
