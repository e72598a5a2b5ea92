//! The two common actions of a translator whose hosts are behind tunnels: a packet leaves a tunnel and is renumbered, or is renumbered and enters
//! one. Each is executed in one pass, and nothing is computed twice. All other actions are executed as elsewhere.

use super::ip_in_ip::encap_plain;
use super::rewriter::Rewriter;
use super::work::{Editing, Executed, Renumbering, Work};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::parse::{Addresses, Transport};
use crate::verdict::{Action, Edit, Encap, Next, Outer, PolicyId};

impl Rewriter {
    /// Executes an action of a translator behind tunnels.
    #[inline(always)]
    pub(super) fn execute_in_tunnels(
        &mut self,
        work: &Work<'_>,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        match work.decision.action {
            Action {
                decap: Some(tunnel),
                edit: Some(edit @ Edit::Renumber4 { .. }),
                policy,
                encap: None,
            } => self.decap_and_renumber(tunnel, (edit, policy), work, frame, (out, effects)),
            Action { decap: None, edit: Some(edit @ Edit::Renumber4 { .. }), policy, encap: Some(encap) } => {
                self.renumber_and_encap((edit, policy), encap, work, frame, (out, effects))
            }
            Action { .. } => {
                // A copy: a decision whose address escapes would have to be in memory on every path.
                let decision = *work.decision;
                self.execute_any(&Work { decision: &decision, ..*work }, frame, out, effects)
            }
        }
    }

    /// Executes any action.
    #[cold]
    #[inline(never)]
    fn execute_any(
        &mut self,
        work: &Work<'_>,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        self.execute::<Editing>(work, frame, out, effects)
    }

    /// A packet that leaves a tunnel and is renumbered.
    #[inline(always)]
    fn decap_and_renumber(
        &mut self,
        tunnel: PolicyId,
        edit: (Edit, PolicyId),
        work: &Work<'_>,
        frame: &mut Frame,
        (out, effects): (&mut Outbox, &mut Effects),
    ) -> Result<Executed, DropReason> {
        let inner = work.inner.ok_or(DropReason::InnerNotIpv6)?;
        if work.decision.next == Next::Leave && !work.pass.reassembled {
            self.refuse_too_big(inner)?;
        }
        self.decap_to_edit(frame, (work.packet, inner), tunnel, &mut effects.counters)?;
        // What the tunnel did to the TOS is in the octets alone: renumbering leaves it as it is.
        let edited = Work { packet: inner, inner: None, ..*work };
        self.edit::<Renumbering>(edit, &edited, self.writer.limits, frame, (out, effects))
    }

    /// A packet that is renumbered and enters a tunnel.
    #[inline(always)]
    fn renumber_and_encap(
        &mut self,
        edit: (Edit, PolicyId),
        encap: Encap,
        work: &Work<'_>,
        frame: &mut Frame,
        (out, effects): (&mut Outbox, &mut Effects),
    ) -> Result<Executed, DropReason> {
        let Work { packet, pass, .. } = *work;
        let outer = effects.outer_at(encap.outer).ok_or(DropReason::NoMechanism)?;
        let is_plain = matches!(packet.addresses, Addresses::V4 { .. })
            && !matches!(packet.transport, Transport::IcmpError { .. })
            && !pass.reassembled
            // Their segments get checksums by the new addresses, which `packet` does not have.
            && frame.offload.segments.is_none();
        let (&Outer::V6 { source, destination }, true) = (outer, is_plain) else {
            let decision = *work.decision;
            return self.execute_any(&Work { decision: &decision, ..*work }, frame, out, effects);
        };
        let outer = Outer::V6 { source, destination };
        let policy = self.tunnels.get(usize::from(encap.policy.0)).ok_or(DropReason::NoMechanism)?;
        let limit = policy.encapsulation_limit;
        let room = self.writer.room_with_limit(policy, &outer, limit, true);
        // RFC 2473 §7.2, RFC 6333 §6.3: an IPv4 packet that may be fragmented is not; its tunnel packet is.
        let mtu4 = if packet.dont_fragment { room.most } else { u16::MAX };
        if !packet.dont_fragment {
            self.refuse_outer_fragments(policy, room, (packet, frame))?;
        }
        let limits = Limits { mtu4, ..self.writer.limits };
        self.edit::<Renumbering>(edit, work, limits, frame, (out, effects))?;
        let hops = packet.hops.saturating_sub(u8::from(pass.decrement));
        let policy = self.tunnels.get(usize::from(encap.policy.0)).ok_or(DropReason::NoMechanism)?;
        if room.takes_plain((packet, frame), limit) {
            return encap_plain((source, destination), (policy, room), frame, (packet, hops));
        }
        let tunnel = (policy, limit, room);
        self.writer.encap_in_room(&outer, tunnel, frame, (packet, hops), (out, &mut effects.counters))
    }
}
