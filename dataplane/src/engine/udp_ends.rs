//! Where tunnels in UDP end: endpoints of this host (RFC 4380 §5.1.1).

use super::tunnel_addresses::TunnelAt;
use crate::parse::{Packet, Transport};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;
use sixway_wire::protocol::UDP;

/// All of these endpoints.
#[derive(Default)]
pub(super) struct UdpEnds(Vec<(Endpoint4, TunnelAt)>);

impl UdpEnds {
    /// Those of these tunnels.
    pub(super) fn new(ends: impl Iterator<Item = (Endpoint4, TunnelAt)>) -> Self {
        Self(ends.collect())
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tunnel that ends where an IPv4 packet came to.
    #[inline(never)]
    pub(super) fn at(&self, packet: &Packet, destination: Ipv4Addr) -> Option<TunnelAt> {
        let Transport::Ports { destination: port, .. } = packet.transport else { return None };
        let end = Endpoint4::new(destination, port);
        let found = self.0.iter().find(|(one, _)| *one == end).filter(|_| packet.protocol == UDP);
        found.map(|(_, tunnel)| *tunnel)
    }
}
