//! The actions of a client that the daemon executes.

use super::why::Why;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;
use sixway_wire::teredo::TeredoAddress;

/// A UDP socket of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// The service port, which packets of the tunnel use too.
    Service,
    /// The secondary port (RFC 4380 §2.16), with any number. It is opened when something is sent from it.
    Secondary,
    /// A port with any number that has sent nothing yet, opened when something is sent from it: only such a port shows whether the NAT is a cone NAT.
    Probe,
    /// The Teredo IPv4 Discovery Address 224.0.0.253, port 3544. Datagrams only come from it; those to it leave the service port, with TTL 1.
    Discovery,
}

/// The client is qualified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientState {
    /// Its address, which contains its server and its mapped address and port.
    pub address: TeredoAddress,
    /// Its NAT uses another port for each destination: peers must be found by nonces (RFC 6081 §5.2).
    pub symmetric: bool,
}

/// An action that the daemon executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a datagram.
    Send {
        /// From this port of ours.
        from: Port,
        /// Destination.
        to: Endpoint4,
        /// The payload of UDP.
        octets: Vec<u8>,
    },
    /// Close this port: it is not needed.
    Close(Port),
    /// Use this address, and no other.
    Use(ClientState),
    /// Use no address.
    Stop(Why),
    /// A client of the same link is at this endpoint (RFC 4380 §5.2.8).
    LocalPeer(Ipv6Addr, Endpoint4),
}
