//! A mapping that a client asked for.

use super::filter::Filter;
use core::net::{IpAddr, SocketAddr};
use sixway_dataplane::Instant;
use sixway_wire::{Endpoint4, protocol};
use std::sync::Arc;

/// A mapping nonce (§11.1). Only a client that knows it can change the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce(pub [u8; 12]);

/// A transport protocol that can be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Tcp, Self::Udp];

    /// The protocol with this number, if it can be mapped.
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            protocol::TCP => Some(Self::Tcp),
            protocol::UDP => Some(Self::Udp),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => protocol::TCP,
            Self::Udp => protocol::UDP,
        }
    }
}

/// An inside endpoint. A host of a NAT64 has an IPv6 address, one of a NAT44 an IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Internal {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// Where a client asked the server. A message without a request leaves from there, so that the client takes it for the server's (§8.3, §14.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedAt {
    /// The interface's name.
    pub interface: Arc<str>,
    /// The server's address; `None`: not known.
    pub address: Option<IpAddr>,
}

/// A mapping, or a set of mappings of consecutive ports (RFC 7753).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The transport protocol.
    pub transport: Transport,
    /// The first inside endpoint.
    pub internal: Internal,
    /// The first outside endpoint.
    pub external: Endpoint4,
    /// Number of ports.
    pub size: u16,
    /// What its owner knows; `None`: it was made by NAT-PMP.
    pub nonce: Option<Nonce>,
    /// When it ends.
    pub expires: Instant,
    /// Remote hosts that may use it; empty: all.
    pub filters: Vec<Filter>,
    /// Where the last request came from.
    pub client: SocketAddr,
    /// Where the last request came to; `None`: not known.
    pub asked_at: Option<AskedAt>,
    /// Whether the client asked for another host.
    pub is_third_party: bool,
    /// Whether the client wants no other external endpoint than this.
    pub prefers_failure: bool,
}

impl Mapping {
    /// The last of its inside ports.
    pub const fn last_port(&self) -> u16 {
        self.internal.port.saturating_add(self.size.saturating_sub(1))
    }

    /// Its inside endpoints, each with its outside endpoint.
    pub fn ports(&self) -> impl Iterator<Item = (Internal, Endpoint4)> + use<> {
        let (internal, external) = (self.internal, self.external);
        (0..self.size).filter_map(move |offset| {
            let inside = Internal { port: internal.port.checked_add(offset)?, ..internal };
            let outside = Endpoint4::new(external.address, external.port.checked_add(offset)?);
            Some((inside, outside))
        })
    }

    /// Whole seconds until it ends.
    pub fn remaining(&self, now: Instant) -> u32 {
        let left = self.expires.since(now).as_nanos().div_ceil(1_000_000_000);
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}
