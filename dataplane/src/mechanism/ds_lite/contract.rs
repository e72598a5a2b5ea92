//! The engine's interface to an AFTR.

use super::{DsLite, DsLiteConfig, Probe};
use crate::classify::Ports4;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{self, Arrival, Build, BuildContext, Claims, Mechanism, Quotes};
use crate::nat::NatProtocol;
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::stateful::Stateful;
use crate::translate::Policy;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::ends::Concentrator;
use crate::verdict::{Decision, PolicyId, WorkerId};
use core::convert::Infallible;
use sixway_wire::Endpoint4;

impl contract::Configured for DsLiteConfig {
    fn claims(&self) -> Claims {
        Claims { ports4: Some(Ports4::of_pool(&self.pool, false)), ..Claims::default() }
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.tunnel
    }

    fn concentrator(&self) -> Option<Concentrator> {
        Some(Concentrator {
            locals: self.addresses.clone(),
            clients: self.clients.clone(),
            most: self.max_softwires,
            subscriber_bits: self.subscribers.bits,
        })
    }
}

impl Build for DsLiteConfig {
    type State = DsLite;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<DsLite, Infallible> {
        let worker = (context.worker, context.workers);
        let mut aftr = DsLite::keyed(self, policy, worker, context.seed, context.worker_key);
        self.in_use.iter().for_each(|in_use| aftr.set_in_use(in_use));
        aftr.set_host4(&context.host4);
        self.draining.iter().for_each(|prefix| aftr.drain(*prefix, true));
        Ok(aftr)
    }
}

impl Mechanism for DsLite {
    const KIND: Kind = Kind::DsLite;
    const WHOLE: bool = true;
    const RENUMBERS_IN_TUNNELS: bool = true;
    const OWNS_SOURCES: bool = true;
    const QUOTES: Quotes = Quotes::Ports;
    const STAGES: usize = 2;
    type Probe = Probe;
    const NO_PROBE: Probe = Probe::EMPTY;

    #[inline(always)]
    fn prepare(&self, packet: &Packet, inner: Option<&Packet>, probe: &mut Probe) {
        self.look(packet, inner, probe);
    }

    #[inline(always)]
    fn warm(&self, stage: usize, probe: &mut Probe) {
        self.look_on(stage, probe);
    }

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        self.answer(arrival, probe, now, effects)
    }

    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }

    fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        match packet.addresses {
            Addresses::V4 { .. } => self.may_hold_from_outside(packet),
            // Of a softwire's packet: any client may have a session.
            Addresses::V6 { .. } => Ok(()),
        }
    }

    fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        self.end_what_is_due(now, budget, effects);
        self.forget_left();
    }

    /// The worker of the B4, or of the outside endpoint. An ICMP error from outside is owned by the packet that it quotes.
    fn worker_of(&self, packet: &Packet, quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        let of_outside = |protocol, endpoint| {
            let protocol = NatProtocol::of(protocol).unwrap_or(NatProtocol::Udp);
            self.ownership().worker_of_outside(protocol, endpoint)
        };
        Some(match (packet.addresses, quoted) {
            (Addresses::V6 { source: b4, .. }, _) => self.ownership().worker_of_inside(b4),
            (Addresses::V4 { .. }, Some(QuotedTuple::V4 { source, protocol, .. })) => {
                of_outside(*protocol, *source)
            }
            (Addresses::V4 { destination, .. }, Some(QuotedTuple::V6 { .. }) | None) => {
                let port = match packet.transport {
                    Transport::Ports { destination, .. } => destination,
                    Transport::IcmpQuery { identifier, .. } => identifier,
                    Transport::IcmpError { .. } | Transport::Opaque => 0,
                };
                of_outside(packet.protocol, Endpoint4::new(destination, port))
            }
        })
    }
}
