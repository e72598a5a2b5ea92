//! The tunnels of this gateway whose packets a NAT44 translates: sent packets get an outside address, and packets to it are passed to the
//! tunnel.

use super::portless::PortlessProtocol;
use crate::tunnel::ends::Ends4;
use crate::verdict::Next;
use core::net::Ipv4Addr;

/// The local ends of tunnels.
#[derive(Clone, Debug)]
pub(super) struct OwnTunnels {
    is_on: bool,
    ends: Ends4,
}

impl OwnTunnels {
    /// Without tunnels. `is_on`: what they send is translated.
    pub(super) const fn new(is_on: bool) -> Self {
        Self { is_on, ends: Ends4::NONE }
    }

    /// The tunnels from now on.
    pub(super) fn set_ends(&mut self, ends: &Ends4) {
        if self.is_on {
            self.ends = ends.clone();
        }
    }

    /// Where a packet, or an ICMP error about one, goes that has become one for an inside host.
    pub(super) fn next(&self, inside: Ipv4Addr, protocol: PortlessProtocol) -> Next {
        let ends = match protocol {
            PortlessProtocol::Ipv6 => &self.ends.six_in_four,
            PortlessProtocol::Ipip => &self.ends.four_in_four,
            PortlessProtocol::Gre | PortlessProtocol::Esp => return Next::Leave,
        };
        if ends.contains(&inside) { Next::IntoTunnel } else { Next::Leave }
    }
}
