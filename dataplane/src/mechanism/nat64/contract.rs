//! The engine's interface to NAT64.

use super::{Nat64, Nat64Config, Probe};
use crate::classify::Ports4;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{self, Arrival, Build, BuildContext, Claims, Mechanism, Quotes};
use crate::parse::{Packet, QuotedTuple};
use crate::stateful::Stateful;
use crate::translate::Policy;
use crate::verdict::{Decision, PolicyId, WorkerId};
use core::convert::Infallible;

impl contract::Configured for Nat64Config {
    fn claims(&self) -> Claims {
        let destinations6 = vec![self.prefix.prefix()];
        Claims { destinations6, ports4: Some(Ports4::of_pool(&self.pool, false)), ..Claims::default() }
    }

    fn policy(&self) -> Policy {
        self.policy
    }
}

impl Build for Nat64Config {
    type State = Nat64;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Nat64, Infallible> {
        let worker = (context.worker, context.workers);
        let mut nat64 = Nat64::keyed(self, policy, worker, context.seed, context.worker_key);
        let own = self.prefix.prefix();
        self.in_use.iter().for_each(|in_use| nat64.set_in_use(in_use));
        nat64.set_host4(&context.host4);
        if self.ftp_alg {
            nat64.assist_ftp(context.seed);
        }
        self.draining.iter().for_each(|prefix| nat64.drain(*prefix, true));
        nat64.refuse_sources(context.translation_prefixes.iter().copied().filter(|prefix| *prefix != own));
        Ok(nat64)
    }
}

impl Mechanism for Nat64 {
    const KIND: Kind = Kind::Nat64;
    const WHOLE: bool = true;
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
        Nat64::warm(self, probe);
    }

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        Nat64::decide(self, arrival, probe, now, effects)
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }

    fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        Nat64::may_hold(self, packet)
    }

    fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        Nat64::expire(self, now, budget, effects);
    }

    fn worker_of(&self, packet: &Packet, quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        Some(super::worker_of(self.ownership(), packet, quoted))
    }
}
