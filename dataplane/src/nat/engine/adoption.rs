//! Sessions and the fast path: which sessions are offloaded, and how flows of the fast path and sessions of another process become sessions here.

use super::{Arriving, Engine, Mechanism, Probe};
use crate::counters::Counters;
use crate::direction::Direction;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::events::{EventSink, NatEvent};
use crate::nat::inside_key::InsideKey;
use crate::nat::not_adopted::NotAdopted;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage, mark};
use crate::nat::port_ledger::PortLedger;
use crate::nat::protocol::NatProtocol;
use crate::nat::revival::{Revival, SavedSession};
use crate::nat::session_state::{Segment, SessionState};
use crate::nat::sides::{Inside, Outside};
use crate::nat::timeouts::Clock;
use crate::verdict::WorkerId;
use core::time::Duration;
use sixway_wire::Endpoint4;

/// An entry of the fast path that belongs to no session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Its name.
    pub(crate) handle: FlowHandle,
    /// What it carries.
    pub(crate) flow: &'a OffloadedFlow,
    /// What it has seen.
    pub(crate) usage: &'a Usage,
}

impl<I: InsideKey> Engine<I> {
    /// Offloads sessions to this fast path from now on, or to none. `mechanism` is this translator.
    pub(crate) fn set_fast_path(
        &mut self,
        fast_path: Option<Box<dyn FastPath>>,
        mechanism: Identity,
        packets: u32,
    ) {
        self.tables.set_fast_path(fast_path, mechanism, packets);
    }

    /// Records the ports that are bound in this ledger from now on.
    pub(crate) fn set_ledger(&mut self, ledger: Box<dyn PortLedger>) {
        self.tables.bindings.set_ledger(ledger);
    }

    /// Records events from now on.
    pub(crate) fn set_event_sink(&mut self, sink: Box<dyn EventSink>) {
        let in_blocks = self.block_counts().is_some();
        // Blocks of restored bindings are listed, and not given now.
        self.tables.bindings.forget_block_news();
        self.tables.recording.start(sink, in_blocks);
    }

    /// Records an event of the mechanism's own.
    pub(crate) fn record(&mut self, at: Instant, event: NatEvent) {
        self.tables.recording.record(at, event);
    }

    /// A packet that makes its session due for the fast path or withdraws it, or whose session is being moved there or waits for a SYN/ACK.
    /// The state machine has not seen it yet.
    #[cold]
    #[inline(never)]
    pub(super) fn offload_or_reclaim(
        &mut self,
        slot: u32,
        direction: Direction,
        arrival: &impl Arriving,
        probe: &Probe<I>,
        counters: &mut Counters,
    ) {
        let packet = arrival.packet();
        let now = self.clock.now();
        let transport = usize::from(packet.transport_at)..packet.length as usize;
        let earlier = arrival.earlier_mark();
        let octets = || arrival.octets().get(transport).unwrap_or_default();
        let its_mark = || earlier.unwrap_or_else(|| mark(probe.protocol, octets()));
        match Segment::of(probe.flags) {
            Segment::Syn if direction == Direction::Out && self.tables.await_answer(slot, now) => {}
            Segment::Syn | Segment::Fin | Segment::Rst => self.tables.reclaim(slot, counters),
            Segment::Data if self.tables.learn_answer(slot) => {}
            Segment::Data if self.tables.moves(slot, direction, its_mark, now) => {}
            Segment::Data => self.tables.offload(slot, (direction, arrival.segments()), now, counters),
        }
    }

    /// See [`StateTables::take_back_under_way`].
    pub(crate) fn take_back_under_way(&mut self, counters: &mut Counters) {
        self.tables.take_back_under_way(counters);
    }

    /// No packet waits before the engine, and everything decided on has been sent.
    pub(crate) const fn emptied(&mut self, now: Instant) {
        self.tables.emptied(now);
    }

    /// Everything decided on has been sent.
    pub(crate) fn settle_moving(&mut self, now: Instant, counters: &mut Counters) {
        self.tables.settle_moving(now, counters);
    }

    /// Creates the session of a flow in the fast path. On failure nothing is changed, and the caller removes the entry.
    pub(crate) fn adopt(
        &mut self,
        entry: &Entry,
        mechanism: &impl Mechanism<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        let flow = entry.flow;
        let inside = I::of_mapped(flow.inside).ok_or(NotAdopted::NotCarried)?;
        let state = match flow.protocol {
            NatProtocol::Tcp => SessionState::Established,
            NatProtocol::Udp => SessionState::Udp,
            NatProtocol::Icmp if flow.remote.port == 0 => SessionState::Icmp,
            NatProtocol::Icmp => return Err(NotAdopted::NotCarried),
        };
        let last = entry.usage.iter().filter_map(|half| half.last).max();
        let age = last.map_or(Duration::ZERO, |last| now.since(last));
        let saved = SavedSession {
            protocol: flow.protocol,
            state,
            softwire: None,
            local: None,
            inside: Inside(inside),
            outside: flow.outside,
            remote: flow.remote,
            age,
            idle: age,
            // The entry has them.
            packets: [0; 2],
            octets: [0; 2],
            from_outside: false,
        };
        self.revive(&saved, Some(entry.handle), mechanism, now, counters)?;
        counters.flows_adopted += 1;
        Ok(())
    }

    /// Restores a session of another process.
    ///
    /// # Errors
    /// Why it is not restored; nothing is changed.
    pub fn restore(
        &mut self,
        saved: &SavedSession<I>,
        mechanism: &impl Mechanism<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        self.revive(saved, None, mechanism, now, counters)
    }

    /// Adds the sessions that another process is to carry on to `saved`, looking at `slots` slots from the cursor on. Returns the cursor to
    /// continue from; `None`: the end. Sessions in the fast path are not among them, nor those that wait with a stored SYN, nor those on
    /// their way to the fast path: [`crate::engine::Engine::take_back_under_way`] comes first.
    pub fn export(
        &mut self,
        cursor: u32,
        slots: u32,
        now: Instant,
        saved: &mut Vec<SavedSession<I>>,
    ) -> Option<u32> {
        let (clock, all) = (Clock::at(now), self.tables.sessions.slots());
        let end = cursor.saturating_add(slots).min(all);
        let tables = &mut self.tables;
        saved.extend((cursor..end).filter_map(|slot| tables.save(slot, clock)));
        (end < all).then_some(end)
    }

    fn revive(
        &mut self,
        saved: &SavedSession<I>,
        flow: Option<FlowHandle>,
        mechanism: &impl Mechanism<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        if let SessionState::Free | SessionState::OutsideInitStored = saved.state {
            return Err(NotAdopted::NotCarried);
        }
        if self.worker_of(saved) != Some(self.worker) {
            return Err(NotAdopted::OtherWorker);
        }
        if !mechanism.may_go_on(saved.inside, saved.remote.address) {
            return Err(NotAdopted::AddressRefused);
        }
        if !self.owns_outside(saved.outside.0.address) {
            return Err(NotAdopted::PortNotGiven);
        }
        self.clock.set(now);
        let second = |ago: Duration| u32::try_from(ago.as_secs()).unwrap_or(u32::MAX);
        let started = self.clock.ceil.saturating_sub(second(saved.age));
        let last_packet = self.clock.floor.saturating_sub(second(saved.idle));
        if self.clock.floor
            >= started.saturating_add(self.tables.sessions.longest(saved.state, saved.remote.port))
        {
            return Err(NotAdopted::Expired);
        }
        let revival = Revival { saved: *saved, started, last_packet, flow };
        self.tables.revive(&revival, self.clock, counters)
    }

    /// The worker that owns both endpoints of a session; `None`: no worker does.
    fn worker_of(&self, saved: &SavedSession<I>) -> Option<WorkerId> {
        let inside = self.worker_of_host(saved.inside.0.host());
        let outside = self.ownership.worker_of_outside(saved.protocol, saved.outside.0);
        (inside == outside).then_some(inside)
    }

    /// Quarantines a free endpoint of the pool until `until`: after an unclean stop someone may still send to whom it
    /// belonged. Whether it is kept: it is not if it belongs to a binding, is another worker's or none of the pool's, or if there is no room
    /// ([`crate::nat::StateLimits::quarantined_ports`]). Restore sessions first.
    pub fn quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, until: Instant) -> bool {
        self.owns_outside(outside.0.address)
            && self.ownership.worker_of_outside(protocol, outside.0) == self.worker
            && self.tables.bindings.quarantine(protocol, outside, Clock::at(until).ceil)
    }

    /// Endpoints in quarantine.
    pub fn quarantined(&self) -> usize {
        self.tables.bindings.quarantined()
    }
}
