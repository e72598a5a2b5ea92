//! The engine's interface to NAT44.

use super::{Nat44, Nat44Config, Probe, ownership};
use crate::classify::Ports4;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::{Ingress, Realm};
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{
    self, Arrival, Build, BuildContext, Claims, InsideClaim, Mechanism, Quotes,
};
use crate::parse::{Packet, QuotedTuple};
use crate::stateful::Stateful;
use crate::translate::Policy;
use crate::tunnel::outer_nat::OuterPacket;
use crate::verdict::{Decision, PolicyId, WorkerId};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::Ipv4Addr;

impl contract::Configured for Nat44Config {
    fn claims(&self) -> Claims {
        let except: Vec<_> = self.inside.iter().chain(&self.except).copied().collect();
        let ingress = (self.realm != Realm(0)).then_some(Ingress::Device(self.realm));
        let claim = |sources| InsideClaim { sources, ingress, except: except.clone() };
        Claims {
            ports4: Some(Ports4::of_pool(
                &self.pool,
                self.portless.sessions > 0 || !self.portless.bindings.is_empty(),
            )),
            inside4: self.inside.iter().copied().map(claim).collect(),
            ..Claims::default()
        }
    }

    fn policy(&self) -> Policy {
        self.policy
    }
}

impl Build for Nat44Config {
    type State = Nat44;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Nat44, Infallible> {
        let worker = (context.worker, context.workers);
        let mut nat44 = Nat44::keyed(self, policy, worker, context.seed, context.worker_key);
        self.in_use.iter().for_each(|in_use| nat44.set_in_use(in_use));
        nat44.set_host4(&context.host4);
        if self.ftp_alg {
            nat44.assist_ftp(context.seed);
        }
        self.draining.iter().for_each(|prefix| nat44.drain(*prefix, true));
        Ok(nat44)
    }
}

impl Mechanism for Nat44 {
    const KIND: Kind = Kind::Nat44;
    const WHOLE: bool = true;
    const KEEPS_FAMILY: bool = true;
    const OWNS_SOURCES: bool = true;
    const QUOTES: Quotes = Quotes::Ports;
    const STAGES: usize = 1;
    type Probe = Probe;
    const NO_PROBE: Probe = Probe::EMPTY;

    #[inline(always)]
    fn prepare(&self, packet: &Packet, _inner: Option<&Packet>, probe: &mut Probe) {
        self.probe(packet, probe);
    }

    #[inline(always)]
    fn warm(&self, _stage: usize, probe: &mut Probe) {
        Nat44::warm(self, probe);
    }

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        Nat44::decide(self, arrival, probe, now, effects)
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }

    fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        Nat44::may_hold(self, packet)
    }

    fn is_from_inside(&self, packet: &Packet) -> bool {
        Nat44::is_from_inside(self, packet)
    }

    fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        Nat44::expire(self, now, budget, effects);
    }

    fn worker_of_remote(&self, remote: Ipv4Addr) -> Option<WorkerId> {
        Some(self.worker_with(remote))
    }

    fn outer_source(
        &mut self,
        outer: OuterPacket,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Ipv4Addr, DropReason> {
        self.of_own_tunnel(outer, now, effects)
    }

    fn worker_of(&self, packet: &Packet, quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        ownership::worker_of((&self.rules, self.ownership()), packet, quoted)
    }
}
