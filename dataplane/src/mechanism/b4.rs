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
use crate::tunnel::TunnelPolicy;
use crate::tunnel::ends::{Pair, TunnelEnds};
use crate::tunnel::pair::{PairTunnel, usable_remote};
use crate::verdict::{Decision, PolicyId};
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
    fn usable_remote(&self) -> Option<IpAddr> {
        usable_remote(self.local.into(), self.remote.map(IpAddr::V6))
    }
}

/// A B4.
pub struct B4 {
    tunnel: PairTunnel,
    inside: Vec<Prefix4>,
}

impl B4 {
    fn is_inside(&self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(address) if self.inside.iter().any(|prefix| prefix.contains(address)))
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
        let (local, remote) = (self.local.into(), self.usable_remote());
        Some(TunnelEnds { local, remote, takes_v4: true, takes_v6: false })
    }
}

impl Build for B4Config {
    type State = B4;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, _context: &BuildContext) -> Result<B4, Infallible> {
        let tunnel = PairTunnel { local: self.local.into(), remote: self.usable_remote(), policy };
        Ok(B4 { tunnel, inside: self.inside.clone() })
    }
}

impl Mechanism for B4 {
    const KIND: Kind = Kind::B4;
    const COUNTS_HOP: bool = false;
    const APART: bool = true;
    type Probe = ();
    const NO_PROBE: () = ();

    #[inline]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        (): &(),
        _now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match arrival.inner {
            // RFC 6333 §11: the AFTR would drop it.
            None if !self.is_inside(Pair::of(arrival.packet.addresses).source) => {
                Err(DropReason::SourceNotOfSite)
            }
            None => self.tunnel.enter(arrival.packet, effects),
            Some(inner) => {
                let ends = self.tunnel.leave(arrival.packet, inner)?;
                if !self.is_inside(ends.destination) {
                    return Err(DropReason::DestinationNotInSite);
                }
                Ok(Decision::decap(self.tunnel.policy))
            }
        }
    }

    fn carries_to(&self, destination: IpAddr) -> bool {
        destination.is_ipv4()
    }

    fn carries_from(&self, source: IpAddr) -> bool {
        self.is_inside(source)
    }
}
