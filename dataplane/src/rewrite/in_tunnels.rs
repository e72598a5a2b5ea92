//! The two common actions of a translator whose hosts are behind tunnels: a packet leaves a tunnel and is renumbered, or is renumbered and enters
//! one. Each is executed in one pass, and nothing is computed twice. All other actions are executed as elsewhere.

use super::ip_in_ip::encap_plain;
use super::plain4::Plain;
use super::rewriter::Rewriter;
use super::work::{Editing, Executed, Renumbering, Work};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::outbox::Outbox;
use crate::tunnel::ecn;
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
            Action { decap: None, edit: Some(edit @ Edit::Renumber4 { .. }), encap: Some(encap), .. } => {
                self.renumber_and_encap(edit, encap, work, frame, (out, effects))
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
        if let Some(executed) = self.decap_plain(tunnel, edit.0, work, frame) {
            return executed;
        }
        if work.decision.next == Next::Leave && !work.pass.reassembled {
            self.refuse_too_big(inner)?;
        }
        self.decap(frame, (work.packet, inner), tunnel, &mut effects.counters)?;
        // What the tunnel did to the TOS is in the octets alone: renumbering leaves it as it is.
        let edited = Work { packet: inner, inner: None, ..*work };
        self.edit::<Renumbering>(edit, &edited, self.writer.limits, frame, (out, effects))
    }

    /// The same of a plain packet, of which the tunnel's header says nothing: it is shortened and renumbered in one step. `None`: it is
    /// another one.
    #[inline(always)]
    fn decap_plain(
        &mut self,
        tunnel: PolicyId,
        edit: Edit,
        work: &Work<'_>,
        frame: &mut Frame,
    ) -> Option<Result<Executed, DropReason>> {
        let (outer, inner) = (work.packet, work.inner?);
        let Edit::Renumber4 { source, destination, keep_ports: false } = edit else { return None };
        let policy = self.tunnels.get(usize::from(tunnel.0))?;
        let plain = Plain::of(inner, frame)?;
        let differs = outer.traffic_class ^ inner.traffic_class;
        let says_nothing =
            outer.traffic_class & ecn::ECN == 0 && (!policy.copies_dscp_out || differs & !ecn::ECN == 0);
        if !says_nothing || inner.length > self.writer.limits.mtu4.into() {
            return None;
        }
        let fresh = plain.may_be_cut && plain.changes_source(source.address);
        let identification = fresh.then(|| self.writer.identifications.reserve(destination.address, 1));
        let hops = inner.hops.saturating_sub(u8::from(work.pass.decrement));
        if let Err(reason) = frame.narrow(outer.transport_at.into(), inner.length as usize) {
            return Some(Err(reason));
        }
        frame.offload.transport = inner.transport_at;
        let done = plain.renumber(frame.bytes_mut(), (source, destination), (hops, identification));
        Some(done.map(|()| Executed::InPlace))
    }

    /// A packet that is renumbered and enters a tunnel: a plain one in one step, any other one step by step.
    #[inline(always)]
    fn renumber_and_encap(
        &mut self,
        edit: Edit,
        encap: Encap,
        work: &Work<'_>,
        frame: &mut Frame,
        (out, effects): (&mut Outbox, &mut Effects),
    ) -> Result<Executed, DropReason> {
        let Work { packet, pass, .. } = *work;
        if let Edit::Renumber4 { source: from, destination: to, keep_ports: false } = edit
            && let Some(plain) = Plain::of(packet, frame)
            && let Some(&Outer::V6 { source, destination }) = effects.outer_at(encap.outer)
            && let Some(policy) = self.tunnels.get(usize::from(encap.policy.0))
        {
            let limit = policy.encapsulation_limit;
            let room = self.writer.room_with_limit(policy, &Outer::V6 { source, destination }, limit, true);
            if room.takes_plain((packet, frame), limit) {
                frame.truncate(packet.length as usize);
                let hops = packet.hops.saturating_sub(u8::from(pass.decrement));
                let fresh = plain.may_be_cut && plain.changes_source(from.address);
                let identification = fresh.then(|| self.writer.identifications.reserve(to.address, 1));
                plain.renumber(frame.bytes_mut(), (from, to), (hops, identification))?;
                return encap_plain((source, destination), (policy, room), frame, (packet, hops));
            }
        }
        let decision = *work.decision;
        self.execute_any(&Work { decision: &decision, ..*work }, frame, out, effects)
    }
}
