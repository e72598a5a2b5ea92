//! The B4 of DS-Lite (RFC 6333 §5): IPv4 goes to one AFTR in IPv6, and is not translated here.
//!
//! ```text
//!     192.168.1.0/24 ─── B4 ════ IPv6 ════ AFTR ─── the rest of IPv4
//!     192.0.0.2 (this host)  softwire      192.0.0.1
//! ```
//!
//! It handles the IPv4 destinations that no other mechanism names. Packets from elsewhere than the AFTR are refused.

use super::contract::{self, Arrival, Build, BuildContext, Claims, Mechanism};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::parse::{Addresses, Packet};
use crate::source_check::is_martian6;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::ends::TunnelEnds;
use crate::tunnel::four_in_six::{came_from, came_out};
use crate::verdict::{Decision, Outer, PolicyId};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix4;

/// The rest of IPv4: every other mechanism's prefixes are longer.
const REST: Prefix4 = Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0);

/// Configuration of a B4.
#[derive(Clone, Debug)]
pub struct B4Config {
    /// This end.
    pub local: Ipv6Addr,
    /// The AFTR; `None`: not known yet.
    pub remote: Option<Ipv6Addr>,
    /// Where hosts behind this end are, this one among them.
    pub inside: Vec<Prefix4>,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

impl B4Config {
    fn usable_remote(&self) -> Option<Ipv6Addr> {
        self.remote.filter(|remote| !is_martian6(*remote))
    }
}

/// A B4.
pub struct B4 {
    local: Ipv6Addr,
    /// The AFTR, if it is known.
    remote: Option<Ipv6Addr>,
    policy: PolicyId,
    inside: Vec<Prefix4>,
}

impl B4 {
    #[inline(always)]
    fn is_inside(&self, address: Ipv4Addr) -> bool {
        self.inside.iter().any(|prefix| prefix.contains(address))
    }

    /// A packet of a host behind this end.
    #[inline(always)]
    fn enter(&self, packet: &Packet, effects: &mut Effects) -> Result<Decision, DropReason> {
        match packet.addresses {
            Addresses::V4 { source, .. } if self.is_inside(source) => {}
            // RFC 6333 §11: the AFTR would drop it.
            Addresses::V4 { .. } | Addresses::V6 { .. } => return Err(DropReason::SourceNotOfSite),
        }
        let destination = self.remote.ok_or(DropReason::NoRemote)?;
        let outer = effects.outer(Outer::V6 { source: self.local, destination });
        Ok(Decision::encap(outer, self.policy))
    }

    /// A packet that came through the softwire.
    #[inline(always)]
    fn leave(&self, outer: &Packet, inner: &Packet) -> Result<Decision, DropReason> {
        let (_, destination) = came_out(inner)?;
        if !self.remote.is_some_and(|remote| came_from(outer, remote)) {
            return Err(DropReason::NoTunnel);
        }
        if !self.is_inside(destination) {
            return Err(DropReason::DestinationNotInSite);
        }
        Ok(Decision::decap(self.policy))
    }
}

impl contract::Configured for B4Config {
    fn claims(&self) -> Claims {
        Claims { destinations4: vec![REST], ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn ends(&self) -> Option<TunnelEnds> {
        let (local, remote) = (self.local.into(), self.usable_remote().map(IpAddr::V6));
        Some(TunnelEnds { local, remote, takes_v4: true, takes_v6: false })
    }
}

impl Build for B4Config {
    type State = B4;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, _context: &BuildContext) -> Result<B4, Infallible> {
        Ok(B4 { local: self.local, remote: self.usable_remote(), policy, inside: self.inside.clone() })
    }
}

impl Mechanism for B4 {
    const KIND: Kind = Kind::B4;
    const COUNTS_HOP: bool = false;
    const APART: bool = true;
    type Probe = ();
    const NO_PROBE: () = ();

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        (): &(),
        _now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match arrival.inner {
            None => self.enter(arrival.packet, effects),
            Some(inner) => self.leave(arrival.packet, inner),
        }
    }

    fn carries_to(&self, destination: IpAddr) -> bool {
        destination.is_ipv4()
    }

    fn carries_from(&self, source: IpAddr) -> bool {
        matches!(source, IpAddr::V4(source) if self.is_inside(source))
    }
}
