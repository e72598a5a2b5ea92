//! NAT64 and the fast path: which sessions it is given, and how what it carried on alone becomes sessions again.

use super::{Nat64, Probe};
use crate::classify::source_check::{is_martian4, is_martian6};
use crate::counters::Counters;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{
    Clock, Direction, NatProtocol, NotAdopted, Outside, Revival, SavedSession, Segment, SessionState,
    SharedFastPath, SharedLedger,
};
use crate::offload::{FlowHandle, OffloadedFlow, Usage, mark};
use crate::verdict::WorkerId;
use core::time::Duration;
use sixway_wire::Endpoint4;

impl Nat64 {
    /// Gives sessions to this fast path from now on, or to none.
    pub(crate) fn set_fast_path(&mut self, fast_path: Option<SharedFastPath>, packets: u32) {
        self.tables.set_fast_path(fast_path, self.identity(), packets);
    }

    /// Tells this ledger of the ports that are given from now on.
    pub(crate) fn set_ledger(&mut self, ledger: SharedLedger) {
        self.tables.bindings.set_ledger(ledger);
    }

    /// A packet by which its session is ripe for the fast path or comes back from there, or that may be one of a session that moves there.
    /// The state machine has not seen it yet.
    #[cold]
    #[inline(never)]
    pub(super) fn heed(
        &mut self,
        slot: u32,
        way: Direction,
        arrival: &Arrival<'_>,
        probe: &Probe,
        counters: &mut Counters,
    ) {
        let packet = arrival.packet;
        let now = self.clock.now();
        let transport = usize::from(packet.transport_at)..packet.length as usize;
        let came = self.came;
        let octets = || arrival.octets().get(transport).unwrap_or_default();
        let its_mark = || came.unwrap_or_else(|| mark(probe.protocol, octets()));
        if Segment::of(probe.flags) != Segment::Data {
            self.tables.reclaim(slot, counters);
        } else if !self.tables.moves(slot, way, its_mark, now) {
            self.tables.offload(slot, (way, arrival.segments()), now, counters);
        }
    }

    /// The next packet, if any, is a hairpin on its second pass: it came with this mark, and left it at this pass's session too.
    pub(crate) const fn turns(&mut self, came: Option<u32>) {
        self.came = came;
    }

    /// See [`StateTables::take_back_under_way`].
    pub(crate) fn take_back_under_way(&mut self, counters: &mut Counters) {
        self.tables.take_back_under_way(counters);
    }

    /// Nothing waits before the engine now, and what was decided on has been sent.
    pub(crate) const fn emptied(&mut self, now: Instant) {
        self.tables.emptied(now);
    }

    /// What was decided on has been sent.
    pub(crate) fn settle_moving(&mut self, now: Instant, counters: &mut Counters) {
        self.tables.settle_moving(now, counters);
    }

    /// Makes a session of what the fast path carries. On failure nothing is changed, and the entry is the caller's to take out.
    pub(crate) fn adopt(
        &mut self,
        flow: &OffloadedFlow,
        handle: FlowHandle,
        usage: &Usage,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        let state = match flow.protocol {
            NatProtocol::Tcp => SessionState::Established,
            NatProtocol::Udp => SessionState::Udp,
            NatProtocol::Icmp => return Err(NotAdopted::NotCarried),
        };
        let last = usage.iter().filter_map(|half| half.last).max();
        let age = last.map_or(Duration::ZERO, |last| now.since(last));
        let saved = SavedSession {
            protocol: flow.protocol,
            state,
            inside: flow.inside,
            outside: flow.outside,
            remote: flow.remote,
            age,
            idle: age,
            // The entry has them.
            packets: [0; 2],
            octets: [0; 2],
            from_outside: false,
        };
        self.revive(&saved, Some(handle), now, counters)?;
        counters.flows_adopted += 1;
        Ok(())
    }

    /// Carries a session on that another process had.
    pub fn restore(
        &mut self,
        saved: &SavedSession,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        self.revive(saved, None, now, counters)
    }

    /// Adds the sessions that another process is to carry on to `saved`, looking at `slots` slots from the cursor on. Returns the cursor to
    /// go on from; `None`: that was all. Those that the fast path carries are not among them, nor those that wait with a stored SYN, nor
    /// those on their way to the fast path: [`crate::engine::Engine::take_back_under_way`] comes first.
    pub fn export(
        &self,
        cursor: u32,
        slots: u32,
        now: Instant,
        saved: &mut Vec<SavedSession>,
    ) -> Option<u32> {
        let (clock, all) = (Clock::at(now), self.tables.sessions.slots());
        let end = cursor.saturating_add(slots).min(all);
        saved.extend((cursor..end).filter_map(|slot| self.tables.save(slot, clock)));
        (end < all).then_some(end)
    }

    fn revive(
        &mut self,
        saved: &SavedSession,
        flow: Option<FlowHandle>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        if let SessionState::Free | SessionState::V4InitStored = saved.state {
            return Err(NotAdopted::NotCarried);
        }
        if self.worker_of(saved) != Some(self.worker) {
            return Err(NotAdopted::OtherWorker);
        }
        self.check_addresses(saved)?;
        self.clock.set(now);
        let second = |ago: Duration| u32::try_from(ago.as_secs()).unwrap_or(u32::MAX);
        let started = self.clock.ceil.saturating_sub(second(saved.age));
        let last_packet = self.clock.floor.saturating_sub(second(saved.idle));
        if self.clock.floor >= started.saturating_add(self.tables.sessions.longest(saved.state)) {
            return Err(NotAdopted::Expired);
        }
        let revival = Revival { saved: *saved, started, last_packet, flow };
        self.tables.revive(&revival, self.clock, counters)
    }

    /// The worker that owns both endpoints of a session; `None`: no worker does.
    fn worker_of(&self, saved: &SavedSession) -> Option<WorkerId> {
        let inside = self.ownership.worker_of_inside(saved.inside.0.address);
        let outside = self.ownership.worker_of_outside(saved.protocol, saved.outside.0);
        (inside == outside).then_some(inside)
    }

    /// The addresses are ones that a packet may make such a session with.
    fn check_addresses(&self, saved: &SavedSession) -> Result<(), NotAdopted> {
        let (host, remote) = (saved.inside.0.address, saved.remote.address);
        let is_ours =
            self.prefix.contains(host) || self.other_prefixes.iter().any(|prefix| prefix.contains(host));
        if is_ours || is_martian6(host) || is_martian4(remote) {
            return Err(NotAdopted::AddressRefused);
        }
        self.prefix.permit(remote).map_err(|_| NotAdopted::AddressRefused)?;
        if !self.owns_outside(saved.outside.0.address) {
            return Err(NotAdopted::PortNotGiven);
        }
        Ok(())
    }

    /// Keeps a free endpoint of the pool from being given before `until`: after an unclean stop somebody may still send to whom it
    /// belonged. Whether it is kept: it is not if it belongs to a binding, is another worker's or none of the pool's, or if there is no room
    /// ([`crate::nat::MOST_QUARANTINED`]). What is carried on is to be adopted before.
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
