//! Packets that are processed alone: ICMP errors, fragments, packets for the gateway, further passes of packets whose result belongs to the
//! gateway again, and packets that another worker handed over.

use super::Engine;
use super::bounds::MAX_PASSES;
use super::path::Batch;
use super::slot::Slot;
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::contract::{Arrival, Mechanism};
use crate::mechanism::table::{Row, with_row, with_row_ref};
use crate::parse::{self, Addresses, Packet};
use crate::rewrite::{Executed, Pass, Work, echo, rewrite_tcp};
use crate::verdict::{Decision, MechanismId, Next, Verdict};

/// A packet between two passes.
struct PassState {
    packet: Packet,
    /// The packet inside, of one that came through a tunnel.
    inner: Option<Packet>,
    owner: MechanismId,
    pass: Pass,
    /// The mark with which it came.
    mark: Option<u32>,
}

impl Engine {
    /// A packet that is processed alone, from its owner to its verdict.
    #[cold]
    #[inline(never)]
    pub(super) fn walk_alone(&mut self, slot: &Slot, frame: &mut Frame, batch: &mut Batch<'_>) {
        match self.walk(slot, frame, batch) {
            Ok(verdict) => self.path.conclude(verdict, frame),
            Err(reason) => {
                let errors = batch.out.len();
                self.path.refuse_with(reason, frame, Some((&slot.packet, slot.inner.as_ref())), batch);
                if frame.passes > 0 {
                    self.send_back(errors, batch);
                }
            }
        }
    }

    /// The error about a hairpinned packet that another worker translated: that worker translates it for its host. It would not come back by the
    /// link where the pool is at this host's own address.
    fn send_back(&mut self, place: usize, batch: &mut Batch<'_>) {
        let Some(error) = batch.out.frames().get_mut(place) else { return };
        let Ok(packet) = parse::parse(error.bytes()) else { return };
        let Addresses::V4 { destination, .. } = packet.addresses else { return };
        let Some(id) = self.named4(destination) else { return };
        let id = self.owner_by_port(error, &packet, id);
        if let Some(worker) = self.elsewhere(error, &packet, Owner::Mechanism(id)) {
            (error.passes, error.verdict) = (1, Verdict::HandOver(worker));
            self.path.effects.counters.icmp_errors_handed_over += 1;
        }
    }

    /// A packet whose mechanism has decided that its result does not leave.
    #[cold]
    #[inline(never)]
    pub(super) fn walk_on(&mut self, slot: &Slot, frame: &mut Frame, batch: &mut Batch<'_>) {
        let verdict = match (slot.owner, self.path.aside.take()) {
            (Owner::Mechanism(id), Some(decision)) => {
                let pass = Pass { decrement: self.counts_hop(id), reassembled: false };
                let translated = self.translate_outer(&slot.packet, decision, frame, batch.now);
                translated.and_then(|decision| {
                    self.carry_out((&slot.packet, slot.inner.as_ref()), (id, decision, pass), frame, batch)
                })
            }
            (Owner::Mechanism(_) | Owner::Gateway | Owner::TunnelAddress(_), _) => {
                Err(DropReason::NoMechanism)
            }
        };
        match verdict {
            Ok(verdict) => self.path.conclude(verdict, frame),
            Err(reason) => {
                self.path.refuse_with(reason, frame, Some((&slot.packet, slot.inner.as_ref())), batch);
            }
        }
    }

    fn walk(&mut self, slot: &Slot, frame: &mut Frame, batch: &mut Batch<'_>) -> Result<Verdict, DropReason> {
        let packet = &slot.packet;
        let id = match slot.owner {
            Owner::Gateway if frame.passes > 0 => return Err(DropReason::ToGateway),
            Owner::Gateway => {
                let (limits, counters) = (self.path.rewriter.limits(), &mut self.path.effects.counters);
                let before = batch.out.len();
                let replied = echo::reply(frame, packet, limits, batch.out, counters)?;
                batch.out.follow(frame, before);
                return match replied {
                    Executed::InPlace => Ok(Verdict::Answered),
                    Executed::InPieces => Ok(Verdict::InPieces),
                };
            }
            Owner::TunnelAddress(address) if packet.fragment.is_some() => {
                self.check_fragment(packet, address)?;
                return self.reassemble(packet, slot.owner, frame, batch);
            }
            Owner::TunnelAddress(address) => {
                return self.error_from_inside(frame, packet, address, batch);
            }
            Owner::Mechanism(id) => id,
        };
        if packet.fragment.is_some() && self.is_whole(id) {
            with_row_ref!(self.mechanisms, id.kind, row => row.may_hold(id.index, packet))?;
            return self.reassemble(packet, slot.owner, frame, batch);
        }
        self.pass(id, slot, false, frame, batch)
    }

    /// A reassembled packet. It may be fragmented again whatever its size, but not what is in it if only the tunnel packet was in fragments.
    pub(super) fn walk_whole(
        &mut self,
        slot: &mut Slot,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let Some(owner) = self.classify_from(frame.realm(), frame, slot)? else {
            return Ok(Verdict::Punted);
        };
        if let Some(worker) = self.elsewhere(frame, &slot.packet, owner) {
            return Ok(Verdict::HandOver(worker));
        }
        let Owner::Mechanism(id) = owner else {
            slot.owner = owner;
            return self.walk(slot, frame, batch);
        };
        self.pass(id, slot, slot.inner.is_none(), frame, batch)
    }

    /// Asks a packet's mechanism and does what it decides.
    fn pass(
        &mut self,
        id: MechanismId,
        slot: &Slot,
        reassembled: bool,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let (packet, inner, again) = (&slot.packet, slot.inner.as_ref(), frame.passes > 0);
        let pass = Pass { decrement: !again && self.counts_hop(id), reassembled };
        let decision = self.ask(id, (packet, inner), frame, (again, None), batch)?;
        self.carry_out((packet, inner), (id, decision, pass), frame, batch)
    }

    /// Executes a decision, and continues as it says.
    fn carry_out(
        &mut self,
        (packet, inner): (&Packet, Option<&Packet>),
        (owner, decision, pass): (MechanismId, Decision, Pass),
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        match decision.next {
            Next::Leave => {
                self.execute(owner, &Work { decision: &decision, packet, inner, pass }, frame, batch)
            }
            Next::Rewritten => {
                self.carry_out_rewritten((packet, inner), (owner, decision, pass), frame, batch)
            }
            Next::Held => Ok(Verdict::Held),
            Next::Control => Ok(Verdict::Control),
            Next::Absorb => Ok(Verdict::Absorbed),
            Next::Reply => {
                let inner = inner.ok_or(DropReason::NoTunnel)?;
                self.reply_inside((packet, inner), &decision, frame, batch)
            }
            Next::Whole => {
                let inner = inner.ok_or(DropReason::NoTunnel)?;
                self.reassemble_inner((packet, inner), frame, batch)
            }
            Next::Again | Next::To(_) | Next::IntoTunnel => {
                self.path.original.keep(frame, (packet, inner))?;
                let mark = if frame.passes == 0 { Arrival::new(frame, packet, None).mark() } else { None };
                let passing = PassState { packet: *packet, inner: inner.copied(), owner, pass, mark };
                let verdict = self.pass_again(passing, decision, frame, batch)?;
                self.path.original.packet = None;
                Ok(verdict)
            }
        }
    }

    /// Executes a decision on a packet whose TCP segment changes before.
    fn carry_out_rewritten(
        &mut self,
        (packet, inner): (&Packet, Option<&Packet>),
        (owner, decision, pass): (MechanismId, Decision, Pass),
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let rewrite = self.path.effects.take_rewrite().ok_or(DropReason::NoMechanism)?;
        self.path.original.keep(frame, (packet, inner))?;
        rewrite_tcp(frame, packet, &rewrite)?;
        let rewritten = parse::parse(frame.bytes())?;
        let decision = Decision { next: Next::Leave, ..decision };
        let work = Work { decision: &decision, packet: &rewritten, inner, pass };
        let verdict = self.execute(owner, &work, frame, batch)?;
        self.path.original.packet = None;
        Ok(verdict)
    }

    /// The further passes of a packet whose result is ours again.
    fn pass_again(
        &mut self,
        mut passing: PassState,
        mut decision: Decision,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        while usize::from(frame.passes) < MAX_PASSES {
            let PassState { packet, inner, owner, pass, mark } = &mut passing;
            let of_inner = inner.take();
            let work = Work { decision: &decision, packet, inner: of_inner.as_ref(), pass: *pass };
            let verdict = self.execute(*owner, &work, frame, batch)?;
            frame.passes += 1;
            pass.decrement = false;
            if decision.next == Next::Leave || verdict != Verdict::Forward {
                return Ok(verdict);
            }
            *packet = parse::parse(frame.bytes())?;
            let next = match decision.next {
                Next::To(id) => Owner::Mechanism(id),
                Next::IntoTunnel => return self.through_tunnel(packet, *pass, frame, batch),
                Next::Again
                | Next::Leave
                | Next::Held
                | Next::Absorb
                | Next::Control
                | Next::Reply
                | Next::Rewritten
                | Next::Whole => self.owner_again(frame, packet, *owner)?,
            };
            if let Some(worker) = self.elsewhere(frame, packet, next) {
                return Ok(Verdict::HandOver(worker));
            }
            *owner = match next {
                Owner::Mechanism(id) => id,
                // A tunnel in a tunnel: the result of one mechanism is not decapsulated by another.
                Owner::TunnelAddress(_) => return Err(DropReason::NestingLimit),
                Owner::Gateway => return Err(DropReason::ToGateway),
            };
            decision = self.ask(*owner, (packet, None), frame, (true, *mark), batch)?;
            match decision.next {
                Next::Held => return Ok(Verdict::Held),
                Next::Control => return Ok(Verdict::Control),
                // Of what comes through a tunnel alone.
                Next::Reply | Next::Whole | Next::Absorb | Next::Rewritten => {
                    return Err(DropReason::NoTunnel);
                }
                Next::Leave | Next::Again | Next::To(_) | Next::IntoTunnel => {}
            }
        }
        Err(DropReason::NestingLimit)
    }

    /// Asks a mechanism about any packet, off the path of a batch.
    pub(super) fn ask(
        &mut self,
        id: MechanismId,
        (packet, inner): (&Packet, Option<&Packet>),
        frame: &Frame,
        (again, earlier_mark): (bool, Option<u32>),
        batch: &Batch<'_>,
    ) -> Result<Decision, DropReason> {
        let arrival = Arrival { again, earlier_mark, alone: true, ..Arrival::new(frame, packet, inner) };
        let effects = &mut self.path.effects;
        let decision =
            with_row!(self.mechanisms, id.kind, row => row.ask(id.index, arrival, batch.now, effects))?;
        self.translate_outer(packet, decision, frame, batch.now)
    }

    /// Whether a mechanism's packets are reassembled.
    fn is_whole(&self, id: MechanismId) -> bool {
        with_row_ref!(self.mechanisms, id.kind, row => row.is_whole())
    }

    /// Whether the gateway decrements the hop limit for a mechanism.
    fn counts_hop(&self, id: MechanismId) -> bool {
        with_row_ref!(self.mechanisms, id.kind, row => row.counts_hop())
    }

    pub(super) fn execute(
        &mut self,
        id: MechanismId,
        work: &Work<'_>,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let before = batch.out.len();
        let verdict = self.path.execute_alone(id.kind, work, frame, batch)?;
        if let Some(realm) = self.realms.of(id) {
            frame.ingress = realm.beyond(frame.realm());
            batch.out.follow(frame, before);
        }
        Ok(verdict)
    }
}

impl<M: Mechanism> Row<M> {
    const fn is_whole(&self) -> bool {
        M::WHOLE
    }

    pub(super) fn may_hold(&self, index: u16, packet: &Packet) -> Result<(), DropReason> {
        self.all[usize::from(index)].may_hold(packet)
    }

    const fn counts_hop(&self) -> bool {
        M::COUNTS_HOP
    }

    /// Asks one of the mechanisms, all stages of its lookup included.
    fn ask(
        &mut self,
        index: u16,
        arrival: Arrival<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let mechanism = &mut self.all[usize::from(index)];
        let quoted = M::QUOTES.read(arrival.frame, arrival.packet)?;
        let mut probe = M::NO_PROBE;
        mechanism.prepare(arrival.packet, arrival.inner, &mut probe);
        (0..M::STAGES).for_each(|stage| mechanism.warm(stage, &mut probe));
        mechanism.decide(&Arrival { quoted, ..arrival }, &probe, now, effects)
    }
}
