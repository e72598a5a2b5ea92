//! A worker's tunnels: the sockets that some packets come through, and updates from the daemon.

use sixway_dataplane::engine::TunnelConfig;
use sixway_link::Link;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::sync::mpsc::Sender;

/// The tunnels of all engines, and this host's addresses.
#[derive(Clone, Default)]
pub struct TunnelSet {
    /// The tunnels.
    pub tunnels: Vec<TunnelConfig>,
    /// This host's IPv4 addresses.
    pub host4: Vec<Ipv4Addr>,
    /// This host's IPv6 addresses, as far as the gateway knows them.
    pub host6: Vec<Ipv6Addr>,
    /// The gateway's own IPv6 address.
    pub own6: Option<Ipv6Addr>,
}

impl fmt::Debug for TunnelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelSet").field("tunnels", &self.tunnels.len()).finish_non_exhaustive()
    }
}

/// A socket that brings packets for one of this host's addresses. Nothing leaves by it.
pub struct Inlet {
    /// The address.
    pub address: Ipv4Addr,
    /// The socket.
    pub link: Box<dyn Link + Send>,
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where packets go that are for the gateway's own control protocols: whole IPv4 packets.
pub type ControlSender = Sender<Vec<u8>>;
