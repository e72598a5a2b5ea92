//! The configuration of a client, and its local endpoint.

use crate::teredo_server::ClientKey;
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_wire::{Endpoint4, Prefix4};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAddresses {
    /// The address that clients' addresses contain.
    pub primary: Ipv4Addr,
    /// Its second address; `None`: symmetric NATs are not recognised.
    pub secondary: Option<Ipv4Addr>,
}

/// The client's identifier and secret for secure qualification (RFC 4380 §5.2.2).
#[derive(Clone, Debug)]
pub struct Secret {
    /// The client identifier, of 255 octets at most.
    pub client: Vec<u8>,
    /// HMAC-SHA1 with the shared secret.
    pub key: ClientKey,
}

/// The operator's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The servers, in the order in which they are tried.
    pub servers: Vec<ServerAddresses>,
    /// Secure qualification; `None`: an answer is recognised only by its nonce.
    pub secret: Option<Secret>,
    /// Whether to work behind a symmetric NAT (RFC 6081 §5.2).
    pub symmetric: bool,
    /// Teredo Refresh Interval (RFC 4380 §2.15).
    pub interval: Duration,
    /// Whether a longer interval is sought (RFC 4380 §5.2.7).
    pub learn_interval: bool,
    /// Whether clients of the same link are sought (RFC 4380 §5.2.8).
    pub local_discovery: bool,
    /// Whether to test if the NAT is a cone NAT; only for display.
    pub probe_cone: bool,
}

impl Settings {
    /// RFC 6081 §5.1.1: the default is 30 s.
    pub const INTERVAL: Duration = Duration::from_secs(30);

    /// Those of the configuration file's defaults.
    pub const fn new(servers: Vec<ServerAddresses>) -> Self {
        Self {
            servers,
            secret: None,
            symmetric: true,
            interval: Self::INTERVAL,
            learn_interval: false,
            local_discovery: false,
            probe_cone: true,
        }
    }
}

/// The route to a server: the interface, and the router there; `None`: the server is on the link.
pub type Way = (String, Option<Ipv4Addr>);

/// The local endpoint of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The service port, with the address of this host from which its datagrams leave.
    pub endpoint: Endpoint4,
    /// Networks this host is attached to.
    pub subnets: Vec<Prefix4>,
}

impl Local {
    /// Whether an address is a broadcast address of a network of this host.
    pub(super) fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        let of = |subnet: &Prefix4| {
            subnet.length() < 31 && subnet.contains(address) && {
                address == subnet.last() || address == subnet.address()
            }
        };
        self.subnets.iter().any(of)
    }
}
