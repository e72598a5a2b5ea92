//! One packet's path after classification: it is decided, executed, and counted once, by its verdict or its reason.

use super::original::Original;
use super::softwire_ends::SoftwireEnds;
use super::tunnel_addresses::HostAddresses;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::mechanism::contract::{Arrival, Mechanism};
use crate::outbox::Outbox;
use crate::parse::{Addresses, Packet};
use crate::rewrite::icmp_error::{DroppedPacket, IcmpDetail, IcmpErrors};
use crate::rewrite::{Editing, Edits, Executed, Pass, Renumbering, Rewriter, Translating, Tunnelling, Work};
use crate::verdict::{Decision, Edit, Next, Outer, Verdict};
use sixway_wire::IPV6_MIN_MTU;

/// More than an ICMPv4 error quotes.
const MOST_QUOTED: usize = 576;

/// What the decision and the execution of a packet need.
pub(super) struct Path {
    pub(super) rewriter: Rewriter,
    pub(super) errors: IcmpErrors,
    pub(super) effects: Effects,
    pub(super) original: Original,
    pub(super) host: HostAddresses,
    pub(super) softwires: SoftwireEnds,
    /// The decision on the packet at which a run stopped.
    pub(super) aside: Option<Decision>,
}

/// The time of a batch, and the outbox.
pub(super) struct Batch<'a> {
    pub(super) now: Instant,
    pub(super) out: &'a mut Outbox,
}

/// A packet, and the state of its lookup.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a, P> {
    pub(super) packet: &'a Packet,
    pub(super) inner: Option<&'a Packet>,
    pub(super) probe: &'a P,
}

impl Path {
    /// A packet's path from its mechanism to its verdict; whether it has one. A decision whose result does not leave is set aside, and the packet
    /// is processed alone.
    #[inline(always)]
    pub(super) fn step<M: Mechanism>(
        &mut self,
        mechanism: &mut M,
        subject: Subject<'_, M::Probe>,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> bool {
        let Subject { packet, inner, probe } = subject;
        let arrival = Arrival::new(frame, packet, inner);
        let decided = mechanism.decide(&arrival, probe, batch.now, &mut self.effects);
        let verdict = match &decided {
            Ok(decision) => {
                if decision.next != Next::Leave {
                    let copy = *decision;
                    self.set_aside(&copy);
                    return false;
                }
                let pass = Pass { decrement: M::COUNTS_HOP, reassembled: false };
                let work = Work { decision, packet, inner, pass };
                if M::RENUMBERS_IN_TUNNELS {
                    self.execute::<Tunnelling>(M::KIND, &work, frame, batch)
                } else if M::KEEPS_FAMILY {
                    self.execute::<Renumbering>(M::KIND, &work, frame, batch)
                } else {
                    self.execute::<Translating>(M::KIND, &work, frame, batch)
                }
            }
            Err(reason) => Err(*reason),
        };
        match verdict {
            Ok(verdict) => self.conclude(verdict, frame),
            // The sender of a packet from a softwire is inside; other tunnels send no answers there.
            Err(reason) if M::KIND == Kind::DsLite => {
                self.refuse_with(reason, frame, Some((packet, inner)), batch);
            }
            Err(reason) => self.refuse(reason, frame, Some(packet), batch),
        }
        true
    }

    /// The only place that copies a decision, so that no other decision has to pass through memory.
    #[cold]
    #[inline(never)]
    fn set_aside(&mut self, decision: &Decision) {
        self.aside = Some(*decision);
    }

    /// Executes a decision, and counts that the packet passed a mechanism of this kind.
    #[inline(always)]
    fn execute<E: Edits>(
        &mut self,
        kind: Kind,
        work: &Work<'_>,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let Work { decision, packet, inner, .. } = *work;
        if let Some(encap) = decision.action.encap
            && let Some(outer) = self.effects.outer_at(encap.outer)
            && match outer {
                Outer::V4 { destination, .. } => self.host.has4(*destination),
                Outer::V6 { destination, .. } => self.host.has6(*destination),
                Outer::Udp4 { destination, .. } => self.host.has4(destination.address),
            }
        {
            return Err(DropReason::TunnelLoop); // RFC 6324 §3.1
        }
        if matches!(kind, Kind::IpInIp | Kind::B4)
            && decision.action.encap.is_some()
            && self.host.encapsulated(packet)
        {
            return Err(DropReason::TunnelLoop);
        }
        if decision.action.decap.is_none() {
            self.effects.counters.pass(kind, way_of(kind, packet, inner, decision));
        }
        let executed = self.rewriter.execute::<E>(work, frame, batch.out, &mut self.effects)?;
        if decision.action.decap.is_some() {
            // Out of a softwire a packet goes out.
            let way = if kind.is_stateful() { Direction::Out } else { Direction::In };
            self.effects.counters.pass(kind, way);
        }
        match executed {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// The same off the path of a batch.
    #[inline(never)]
    pub(super) fn execute_alone(
        &mut self,
        kind: Kind,
        work: &Work<'_>,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        self.execute::<Editing>(kind, work, frame, batch)
    }

    /// Counts a frame that was not dropped.
    #[inline(always)]
    pub(super) fn conclude(&mut self, verdict: Verdict, frame: &mut Frame) {
        frame.verdict = verdict;
        let counters = &mut self.effects.counters;
        match verdict {
            Verdict::Forward => {
                counters.forwarded += 1;
                counters.octets += frame.len() as u64;
                let at = usize::from(frame.offload.transport);
                counters.packets += u64::from(frame.segment_count(at, frame.len().saturating_sub(at)));
            }
            Verdict::InPieces => counters.forwarded += 1,
            Verdict::Answered => counters.answered += 1,
            Verdict::Punted => counters.punted += 1,
            Verdict::Control => counters.to_control += 1,
            Verdict::Held => counters.held += 1,
            Verdict::Absorbed => counters.absorbed += 1,
            Verdict::HandOver(_) => counters.handed_over += 1,
            // Counted where the packet's other fragments are.
            Verdict::Merged | Verdict::Pending | Verdict::Dropped(_) => {}
        }
    }

    /// Counts a drop, and sends the ICMP error of the reason, if it has one: of a packet in its first pass that did not come out of a softwire.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(
        &mut self,
        reason: DropReason,
        frame: &mut Frame,
        packet: Option<&Packet>,
        batch: &mut Batch<'_>,
    ) {
        if let Some(tunnel) = self.count_refused(reason, frame) {
            self.answer(reason, frame, (packet, tunnel), batch);
        }
    }

    /// The same, of any packet: `packet` is with the one inside, if it came through a tunnel.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_with(
        &mut self,
        reason: DropReason,
        frame: &mut Frame,
        packet: Option<(&Packet, Option<&Packet>)>,
        batch: &mut Batch<'_>,
    ) {
        let Some(tunnel) = self.count_refused(reason, frame) else { return };
        let (packet, inner) = (packet.map(|(packet, _)| packet), packet.and_then(|(_, inner)| inner));
        if !self.softwires.is_empty() && self.is_refused_inside(reason, frame, (packet, inner), tunnel, batch)
        {
            self.original.packet = None;
            return;
        }
        self.answer(reason, frame, (packet, tunnel), batch);
    }

    /// Counts a drop; unless it is silent, the MTU of the tunnel for which the packet was too big, if that is why.
    #[inline(always)]
    fn count_refused(&mut self, reason: DropReason, frame: &mut Frame) -> Option<Option<u16>> {
        frame.verdict = Verdict::Dropped(reason);
        self.effects.counters.drop_frames(reason, 1);
        let tunnel = self.rewriter.tunnel_too_small();
        // Most drops are silent, such as those of packets to ports without a binding.
        if reason.is_silent() {
            self.original.packet = None;
            return None;
        }
        Some(tunnel)
    }

    /// Sends the ICMP error of a drop to the sender of the packet as it came.
    #[inline(always)]
    fn answer(
        &mut self,
        reason: DropReason,
        frame: &Frame,
        (packet, tunnel): (Option<&Packet>, Option<u16>),
        batch: &mut Batch<'_>,
    ) {
        let original = &self.original.packet;
        let mtu = |packet| match tunnel {
            Some(mtu) => mtu.into(),
            None => sender_mtu(packet, self.rewriter.limits(), original.is_some()),
        };
        let (frame, packet) = match original {
            Some(_) => (&self.original.frame, original.as_ref()),
            None => (frame, packet),
        };
        let detail = match packet {
            Some(packet) if reason == DropReason::PacketTooBig => IcmpDetail::Mtu(mtu(packet)),
            Some(_) if reason == DropReason::EncapsulationLimit => {
                self.rewriter.limit_at().map_or(IcmpDetail::None, IcmpDetail::Pointer)
            }
            Some(_) | None => IcmpDetail::None,
        };
        let counters = &mut self.effects.counters;
        let dropped = DroppedPacket { reason, frame, packet, detail };
        let before = batch.out.len();
        self.errors.answer(dropped, batch.now, batch.out, counters);
        batch.out.follow(frame, before);
        self.original.packet = None;
    }
}

impl Path {
    /// Answers about a packet that came out of a softwire. Whether it was one.
    #[cold]
    fn is_refused_inside(
        &mut self,
        reason: DropReason,
        frame: &Frame,
        packet: (Option<&Packet>, Option<&Packet>),
        mtu: Option<u16>,
        batch: &mut Batch<'_>,
    ) -> bool {
        let (frame, packets) = match (self.original.packet, self.original.inner, packet) {
            (Some(outer), Some(inner), _) => (&self.original.frame, (outer, inner)),
            (None, _, (Some(outer), Some(inner))) => (frame, (*outer, *inner)),
            (Some(_), None, _) | (None, _, _) => return false,
        };
        let octets = frame.bytes().get(usize::from(packets.0.transport_at)..).unwrap_or_default();
        let quote = octets[..octets.len().min(MOST_QUOTED)].to_vec();
        self.refuse_inside(reason, (&quote, &packets.0, &packets.1), mtu, batch)
    }
}

/// The direction of a packet through its mechanism.
#[inline(always)]
fn way_of(kind: Kind, packet: &Packet, inner: Option<&Packet>, decision: &Decision) -> Direction {
    if kind.keeps_family() {
        return way_by_destination(packet, decision.action.edit);
    }
    match (packet.addresses, inner) {
        (_, Some(_)) => Direction::In,
        (Addresses::V4 { .. }, None) if kind.is_routed() => Direction::In,
        // Into a tunnel either family goes.
        (Addresses::V4 { .. } | Addresses::V6 { .. }, None) => Direction::Out,
    }
}

/// The direction through a mechanism that keeps the family: inwards the destination changes.
fn way_by_destination(packet: &Packet, edit: Option<Edit>) -> Direction {
    match (packet.addresses, edit) {
        (Addresses::V6 { destination, .. }, Some(Edit::Renumber6 { destination: new, .. }))
            if new != destination =>
        {
            Direction::In
        }
        (Addresses::V4 { destination, .. }, Some(Edit::Renumber4 { destination: new, .. }))
            if new.address != destination =>
        {
            Direction::In
        }
        (Addresses::V6 { .. } | Addresses::V4 { .. }, _) => Direction::Out,
    }
}

/// The largest packet of the sender's family that the next link carries, translated there (RFC 7915 §4.1, §5.1) or, as a
/// hairpin, translated twice.
fn sender_mtu(packet: &Packet, limits: &Limits, hairpinned: bool) -> u32 {
    let (mtu4, mtu6) = (u32::from(limits.mtu4), u32::from(limits.mtu6));
    match (packet.addresses, hairpinned) {
        // A fragment gets a Fragment header.
        (Addresses::V4 { .. }, false) if packet.fragment.is_some() => mtu6.saturating_sub(28),
        (Addresses::V4 { .. }, false) => mtu6.saturating_sub(20),
        (Addresses::V4 { .. }, true) => mtu4,
        (Addresses::V6 { .. }, false) => (mtu4 + 20).max(IPV6_MIN_MTU as u32),
        (Addresses::V6 { .. }, true) => mtu6,
    }
}
