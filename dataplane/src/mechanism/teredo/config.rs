//! The configuration of a relay or a client.

use crate::mechanism::contract::{self, Claims, InsideClaim};
use crate::tunnel::{TunnelMtu, TunnelPolicy};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::teredo::{TEREDO_PREFIX, TeredoAddress};
use sixway_wire::{Endpoint4, IPV6_MIN_MTU, Prefix4, Prefix6};

/// The networks that a relay serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// The source of its bubbles: an IPv6 address that is routed to this host.
    pub address: Ipv6Addr,
    /// Destinations that clients reach through it; empty: all but clients.
    pub serves: Vec<Prefix6>,
}

/// Relay or client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeredoRole {
    /// A relay.
    Relay(RelayConfig),
    /// A client, whose address follows by [`TeredoChange::Client`].
    Client,
}

/// Configuration of a relay or a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeredoConfig {
    /// Which of both.
    pub role: TeredoRole,
    /// Maximum number of peers.
    pub max_peers: u32,
    /// All addresses of a client's servers: advertisements come from there.
    pub servers: Vec<Ipv4Addr>,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

impl TeredoConfig {
    /// Default of [`TeredoConfig::max_peers`].
    pub const MAX_PEERS: u32 = 100_000;

    /// With the defaults.
    pub fn new(role: TeredoRole) -> Self {
        let policy = TunnelPolicy { mtu: TunnelMtu::Static(IPV6_MIN_MTU as u16), ..TunnelPolicy::default() };
        Self { role, max_peers: Self::MAX_PEERS, servers: Vec::new(), policy }
    }
}

/// How the ports follow that a symmetric NAT maps to (RFC 6081 §3.3, §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRule {
    /// The first mapping of a port has its number.
    Preserved,
    /// Each new mapping has one of the next numbers, which solicitations to both addresses of the server find out.
    Sequential {
        /// The second address of the client's server.
        secondary: Ipv4Addr,
    },
}

/// Data by which a client predicts the ports of its NAT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// How they follow; `None`: no prediction is needed.
    pub rule: Option<PortRule>,
    /// Spare UDP ports that are open at the client's address.
    pub ports: Vec<u16>,
}

/// A change while the engine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeredoChange {
    /// The local end of the UDP packets (of the host, not of a NAT in front of it) and the IPv4 networks of this host; `None`: this host has no address, and
    /// nothing is sent.
    Local(Option<Endpoint4>, Vec<Prefix4>),
    /// The client's address; `None`: it has none.
    Client(Option<TeredoAddress>),
    /// A client of the same link, at this endpoint (RFC 4380 §5.2.8).
    LocalPeer(Ipv6Addr, Endpoint4),
    /// The client's spare ports, and how its NAT maps them (RFC 6081 §5.4, §5.5).
    Prediction(Prediction),
}

impl contract::Configured for TeredoConfig {
    fn claims(&self) -> Claims {
        let destinations6 = vec![TEREDO_PREFIX];
        let inside6 = match self.role {
            TeredoRole::Relay(_) => Vec::new(),
            TeredoRole::Client => {
                vec![InsideClaim { sources: TEREDO_PREFIX, ingress: None, except: Vec::new() }]
            }
        };
        Claims { destinations6, inside6, ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }
}
