//! Tunnels of IP in IP: either family in IPv6 (RFC 2473), and IPv4 in IPv4 (RFC 2003). IPv6 in IPv4 is a configured tunnel's (RFC 4213).
//!
//! ```text
//!     10.1.0.0/16 ─── 2001:db8::1 ════ IPv6 ════ 2001:db8:7::1 ─── 10.7.0.0/16
//!                     local                      remote            prefixes4
//! ```
//!
//! A tunnel has two ends. Both are known, and packets from elsewhere are refused.

use super::contract::{self, Arrival, Build, BuildContext, Claims, Mechanism};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::parse::Packet;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::ends::{Pair, TunnelEnds};
use crate::tunnel::outer_nat::OuterNat;
use crate::tunnel::pair::{PairTunnel, usable_remote};
use crate::verdict::{Decision, MechanismId, Next, PolicyId};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use sixway_wire::{Prefix4, Prefix6};

/// Configuration of a tunnel.
#[derive(Clone, Debug)]
pub struct IpInIpConfig {
    /// This end.
    pub local: IpAddr,
    /// The remote end, of the same family; `None`: not known yet.
    pub remote: Option<IpAddr>,
    /// IPv4 destinations behind the remote end, routed into the tunnel.
    pub prefixes4: Vec<Prefix4>,
    /// The same of IPv6; none where the ends are IPv4 addresses.
    pub prefixes6: Vec<Prefix6>,
    /// Only inner sources within the prefixes are taken (strict ingress filtering, as RFC 4213 §3.6 has it).
    pub strict_sources: bool,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

/// Why a tunnel is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpInIpFault {
    /// Both ends have the same address.
    SameEnds,
    /// One end is an IPv4 address, the other an IPv6 address.
    MixedEnds,
    /// IPv6 prefixes with IPv4 ends: a configured tunnel (RFC 4213) carries them.
    SixInFour,
}

impl fmt::Display for IpInIpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameEnds => "both ends of the tunnel have the same address",
            Self::MixedEnds => "one end of the tunnel is an IPv4 address, the other an IPv6 address",
            Self::SixInFour => "IPv6 prefixes need a tunnel of IPv6 in IPv4 (RFC 4213)",
        })
    }
}

impl std::error::Error for IpInIpFault {}

impl IpInIpConfig {
    /// Whether the tunnel is valid.
    pub fn check(&self) -> Result<(), IpInIpFault> {
        if self.remote == Some(self.local) {
            return Err(IpInIpFault::SameEnds);
        }
        if self.remote.is_some_and(|remote| remote.is_ipv4() != self.local.is_ipv4()) {
            return Err(IpInIpFault::MixedEnds);
        }
        if self.local.is_ipv4() && !self.prefixes6.is_empty() {
            return Err(IpInIpFault::SixInFour);
        }
        Ok(())
    }

    /// The remote end, if it is one that a host can have.
    fn usable_remote(&self) -> Option<IpAddr> {
        usable_remote(self.local, self.remote)
    }
}

/// A tunnel.
pub struct IpInIp {
    tunnel: PairTunnel,
    prefixes4: Vec<Prefix4>,
    prefixes6: Vec<Prefix6>,
    strict_sources: bool,
    nat: Option<OuterNat>,
}

impl IpInIp {
    /// A tunnel whose packets follow the policy of this number.
    pub fn new(config: &IpInIpConfig, policy: PolicyId) -> Self {
        Self {
            tunnel: PairTunnel { local: config.local, remote: config.usable_remote(), policy },
            prefixes4: config.prefixes4.clone(),
            prefixes6: config.prefixes6.clone(),
            strict_sources: config.strict_sources,
            nat: None,
        }
    }

    /// A packet that is routed into the tunnel.
    fn enter(&self, packet: &Packet, effects: &mut Effects) -> Result<Decision, DropReason> {
        let decision = self.tunnel.enter(packet, effects)?;
        let next = match (&self.nat, self.tunnel.remote) {
            (Some(nat), Some(IpAddr::V4(destination))) => nat.next(destination),
            (Some(_) | None, _) => Next::Leave,
        };
        Ok(Decision { next, ..decision })
    }

    /// A packet that came through the tunnel.
    fn leave(&self, outer: &Packet, inner: &Packet) -> Result<Decision, DropReason> {
        let inside = self.tunnel.leave(outer, inner)?;
        if self.strict_sources && !self.is_behind(inside.source) {
            return Err(DropReason::SourceNotInTunnel);
        }
        Ok(Decision::decap(self.tunnel.policy))
    }

    fn is_behind(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.prefixes4.iter().any(|prefix| prefix.contains(address)),
            IpAddr::V6(address) => self.prefixes6.iter().any(|prefix| prefix.contains(address)),
        }
    }
}

impl contract::Configured for IpInIpConfig {
    fn claims(&self) -> Claims {
        let (destinations4, destinations6) = (self.prefixes4.clone(), self.prefixes6.clone());
        Claims { destinations4, destinations6, ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn ends(&self) -> Option<TunnelEnds> {
        Some(TunnelEnds {
            local: self.local,
            remote: self.usable_remote(),
            takes_v4: !self.prefixes4.is_empty(),
            takes_v6: !self.prefixes6.is_empty(),
        })
    }
}

impl Build for IpInIpConfig {
    type State = IpInIp;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<IpInIp, Infallible> {
        let nat = match self.local {
            IpAddr::V4(local) => context.outer_nat(local),
            IpAddr::V6(_) => None,
        };
        Ok(IpInIp { nat, ..IpInIp::new(self, policy) })
    }
}

impl Mechanism for IpInIp {
    const KIND: Kind = Kind::IpInIp;
    const COUNTS_HOP: bool = false;
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
            None => self.enter(arrival.packet, effects),
            Some(inner) => self.leave(arrival.packet, inner),
        }
    }

    fn outer_nat(&self, packet: &Packet) -> Option<(MechanismId, Ipv4Addr)> {
        // What comes through the tunnel is addressed to its local end.
        let nat =
            self.nat.as_ref().filter(|_| Pair::of(packet.addresses).destination != self.tunnel.local)?;
        match self.tunnel.remote? {
            IpAddr::V4(remote) if nat.covers(remote) => Some((nat.nat, remote)),
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    fn carries_to(&self, destination: IpAddr) -> bool {
        self.is_behind(destination)
    }
}
