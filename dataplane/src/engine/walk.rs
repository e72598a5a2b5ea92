//! One packet's way: the mechanism decides, the rewriter executes, and again if the result is ours.

use super::{Engine, MAX_PASSES};
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::nat64::{Arrival, Outcome, Probe};
use crate::mechanism::table::{Kind, Way};
use crate::nat::NatProtocol;
use crate::offload::mark;
use crate::parse::{self, Addresses, Packet, QuotedTuple, Transport};
use crate::rewrite::{Executed, Pass, echo};
use crate::verdict::{Decision, Next, Outbox, Verdict};

impl Engine {
    /// One packet's way through the gateway. `?` leaves it with a named reason; the caller counts it, once.
    #[inline(always)]
    pub(super) fn walk(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        probe: &Probe,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        if is_error || packet.fragment.is_some() || frame.passes > 0 {
            return self.walk_seldom(frame, packet, owner, probe, now, out);
        }
        match owner {
            Owner::Siit(index) => {
                let decision = self.siit[usize::from(index)].decide(packet, None, false, now)?;
                self.count_siit(packet);
                self.translate_one(frame, packet, owner, &decision, now, out)
            }
            Owner::Nat64(index) => {
                let at = usize::from(packet.transport_at);
                let segments = frame.segment_count(at, packet.length as usize - at);
                let arrival = Arrival { packet, quoted: None, octets: frame.bytes(), segments };
                let outcome = self.nat64[usize::from(index)].decide(&arrival, probe, now, &mut self.counters);
                match &outcome {
                    Ok(Outcome::Translate(decision)) => {
                        self.count_nat64(packet);
                        self.translate_one(frame, packet, owner, decision, now, out)
                    }
                    Ok(Outcome::Stored) => Ok(Verdict::Held),
                    Err(reason) => Err(*reason),
                }
            }
            Owner::Tunnel(_) | Owner::Endpoint(_) => self.walk_one_tunnel(frame, packet, owner, now, out),
            Owner::Gateway => {
                let limits = self.rewriter.limits();
                match echo::reply(frame, packet, limits, out, &mut self.counters)? {
                    Executed::InPlace => Ok(Verdict::Answered),
                    Executed::InPieces => Ok(Verdict::InPieces),
                }
            }
        }
    }

    /// The way of a packet of a tunnel that comes by itself.
    #[inline(never)]
    fn walk_one_tunnel(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        self.walk_tunnel(frame, packet, owner, now, out)
    }

    /// The way of a packet of a tunnel.
    #[inline(always)]
    pub(super) fn walk_tunnel(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        match owner {
            Owner::Tunnel(number) if packet.fragment.is_none() && frame.passes == 0 => {
                self.walk_into_tunnel(frame, packet, number, out)
            }
            Owner::Endpoint(endpoint) if packet.fragment.is_none() && frame.passes == 0 && !is_error => {
                self.out_of_tunnel(frame, packet, endpoint, now)
            }
            Owner::Tunnel(_) | Owner::Endpoint(_) | Owner::Gateway | Owner::Nat64(_) | Owner::Siit(_) => {
                self.walk_seldom(frame, packet, owner, &Probe::EMPTY, now, out)
            }
        }
    }

    /// The rest of a translated packet's way. It is part of each arm above, so that the decision need not pass through memory.
    #[inline(always)]
    fn translate_one(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        decision: &Decision,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let pass = Pass { decrement: true, reassembled: false };
        if decision.next == Next::Again {
            return self.walk_again(frame, packet, owner, *decision, pass, now, out);
        }
        match self.rewriter.execute(decision, frame, packet, pass, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// The way of ICMP errors, fragments, and what another worker handed over.
    #[cold]
    #[inline(never)]
    pub(super) fn walk_seldom(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        probe: &Probe,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        if matches!(owner, Owner::Nat64(_) | Owner::Endpoint(_)) && packet.fragment.is_some() {
            self.check_fragment(packet, owner)?;
            return self.reassemble(frame, packet, owner, now, out);
        }
        if let Owner::Endpoint(endpoint) = owner {
            return self.out_of_tunnel(frame, packet, endpoint, now);
        }
        let hairpinned = frame.passes > 0;
        let decision = match self.decide(frame, packet, owner, probe, hairpinned, now)? {
            Outcome::Translate(decision) => decision,
            Outcome::Stored => return Ok(Verdict::Held),
        };
        let pass = Pass { decrement: !hairpinned, reassembled: false };
        if decision.next == Next::Again {
            return self.walk_again(frame, packet, owner, decision, pass, now, out);
        }
        match self.rewriter.execute(&decision, frame, packet, pass, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    #[inline(always)]
    pub(super) const fn count_siit(&mut self, packet: &Packet) {
        match packet.addresses {
            Addresses::V4 { .. } => self.counters.pass(Kind::Siit, Way::In),
            Addresses::V6 { .. } => self.counters.pass(Kind::Siit, Way::Out),
        }
    }

    #[inline(always)]
    pub(super) const fn count_nat64(&mut self, packet: &Packet) {
        match packet.addresses {
            Addresses::V4 { .. } => self.counters.pass(Kind::Nat64, Way::In),
            Addresses::V6 { .. } => self.counters.pass(Kind::Nat64, Way::Out),
        }
    }

    /// The rest of the way of a packet whose result is ours again.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "the state of a packet between two passes")]
    pub(super) fn walk_again(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        mut owner: Owner,
        mut decision: Decision,
        mut pass: Pass,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        self.original.keep(frame, packet)?;
        let came = (frame.passes == 0).then(|| mark_of(frame, packet)).flatten();
        let mut current = *packet;
        while usize::from(frame.passes) < MAX_PASSES {
            let executed =
                self.rewriter.execute(&decision, frame, &current, pass, out, &mut self.counters)?;
            frame.passes += 1;
            pass.decrement = false;
            if decision.next == Next::Leave || executed == Executed::InPieces {
                self.original.packet = None;
                return Ok(if executed == Executed::InPlace { Verdict::Forward } else { Verdict::InPieces });
            }
            current = parse::parse(frame.bytes())?;
            owner = self.owner_again(&current, owner)?;
            if let Some(worker) = self.elsewhere(frame, &current, owner) {
                self.original.packet = None;
                return Ok(Verdict::HandOver(worker));
            }
            self.turns(owner, came);
            let decided = self.decide_later(frame, &current, owner, now);
            self.turns(owner, None);
            decision = match decided? {
                Outcome::Translate(decision) => decision,
                Outcome::Stored => {
                    self.original.packet = None;
                    return Ok(Verdict::Held);
                }
            };
        }
        Err(DropReason::NestingLimit)
    }

    /// Tells a stateful translator with which mark the packet came that it is about to decide on again.
    fn turns(&mut self, owner: Owner, came: Option<u32>) {
        if let Owner::Nat64(index) = owner {
            self.nat64[usize::from(index)].turns(came);
        }
    }

    /// Asks the mechanism, off the batch's path.
    #[cold]
    pub(super) fn decide_later(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
    ) -> Result<Outcome, DropReason> {
        let mut probe = Probe::EMPTY;
        if let Owner::Nat64(index) = owner {
            self.nat64[usize::from(index)].probe(packet, &mut probe);
            self.nat64[usize::from(index)].warm(&mut probe);
        }
        self.decide(frame, packet, owner, &probe, true, now)
    }

    /// Asks the mechanism about any packet.
    pub(super) fn decide(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        probe: &Probe,
        hairpinned: bool,
        now: Instant,
    ) -> Result<Outcome, DropReason> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        match owner {
            Owner::Siit(index) => {
                let quoted = if is_error { Some(quoted_stateless(frame, packet)?) } else { None };
                let siit = &mut self.siit[usize::from(index)];
                let decision = siit.decide(packet, quoted.as_ref(), hairpinned, now)?;
                self.count_siit(packet);
                Ok(Outcome::Translate(decision))
            }
            Owner::Nat64(index) => {
                let quoted = if is_error { Some(quoted_stateful(frame, packet)?) } else { None };
                let at = usize::from(packet.transport_at);
                let segments = frame.segment_count(at, packet.length as usize - at);
                let arrival = Arrival { packet, quoted, octets: frame.bytes(), segments };
                let nat64 = &mut self.nat64[usize::from(index)];
                let outcome = nat64.decide(&arrival, probe, now, &mut self.counters)?;
                if let Outcome::Translate(_) = outcome {
                    self.count_nat64(packet);
                }
                Ok(outcome)
            }
            Owner::Tunnel(number) => self.decide_into_tunnel(number, packet).map(Outcome::Translate),
            // A tunnel in a tunnel: one mechanism's result is not another's outer packet.
            Owner::Endpoint(_) => Err(DropReason::NestingLimit),
            Owner::Gateway => Err(DropReason::ToGateway),
        }
    }
}

/// The mark that a TCP or UDP packet leaves at an armed entry.
fn mark_of(frame: &Frame, packet: &Packet) -> Option<u32> {
    let protocol = NatProtocol::of(packet.protocol).filter(|protocol| *protocol != NatProtocol::Icmp)?;
    let octets = frame.bytes().get(usize::from(packet.transport_at)..packet.length as usize)?;
    Some(mark(protocol, octets))
}

/// The five-tuple that an ICMP error quotes, for a translator that asks for addresses alone.
pub(super) fn quoted_stateless(frame: &Frame, packet: &Packet) -> Result<QuotedTuple, DropReason> {
    parse::quoted::quoted_stateless(
        quote_of(frame, packet)?,
        matches!(packet.addresses, Addresses::V4 { .. }),
    )
}

/// The five-tuple that an ICMP error quotes, ports included.
pub(super) fn quoted_stateful(frame: &Frame, packet: &Packet) -> Result<QuotedTuple, DropReason> {
    parse::quoted::quoted(quote_of(frame, packet)?, matches!(packet.addresses, Addresses::V4 { .. }))
}

fn quote_of<'a>(frame: &'a Frame, packet: &Packet) -> Result<&'a [u8], DropReason> {
    if frame.offload.segments.is_some() {
        return Err(DropReason::BadSuperFrame);
    }
    let from = usize::from(packet.transport_at) + parse::ICMP_HEADER;
    frame.bytes().get(from..packet.length as usize).ok_or(DropReason::QuoteUnusable)
}
