//! Bindings, sessions, permits and stored SYNs together: changes that concern several of them are made here.

use super::binding::BindingTable;
use super::binding_kind::BindingKind;
use super::config::Config;
use super::inside_key::InsideKey;
use super::offloading::Offloading;
use super::permit::Permits;
use super::pool::{Pool, PoolSlot};
use super::protocol::NatProtocol;
use super::recording::Recording;
use super::remote_filters::RemoteFilters;
use super::session::{NewSession, Session, SessionTable};
use super::session_links::SessionLinks;
use super::session_state::SessionState;
use super::sides::{Inside, Outside};
use super::slab::NONE;
use super::static_binding::{StaticBinding, StaticBindingError};
use super::stored_syn::{STORED_SYNS, StoredSyns};
use super::subscriber_table::Counted;
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};
use std::collections::VecDeque;

/// Sessions that are ended with the last one that kept their binding. Further ones wait for [`StateTables::expire`].
const ENDED_WITH_BINDING: usize = 16;

/// Sessions that one attempt to make room examines.
const SETTLED_FOR_ROOM: usize = 32;

/// Maximum number of silent sessions that wait to be probed, found while room was made. At this number no further room is made.
const MOST_SILENT: usize = 1_024;

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Its lifetime is over: the sender of its stored SYN gets an ICMP error.
    Lifetime,
    /// The administrator ends it.
    Order,
}

/// An established TCP session whose lifetime is over and which became transitory: one of its ends should be probed
/// (RFC 6146 §3.5.2.2, ESTABLISHED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilentSession<I = Endpoint6> {
    /// The inside end.
    pub inside: Inside<I>,
    /// How the inside end is seen outside.
    pub outside: Outside<Endpoint4>,
    /// The remote endpoint.
    pub remote: Endpoint4,
}

/// What time has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fired<I> {
    /// A stored SYN to be answered.
    Unanswered(Box<[u8]>),
    /// A session to be probed.
    Silent(SilentSession<I>),
}

/// The tables.
pub(crate) struct StateTables<I: InsideKey> {
    pub(crate) sessions: SessionTable<I>,
    pub(crate) bindings: BindingTable<I>,
    pub(crate) permits: Permits,
    stored: StoredSyns,
    pub(super) offloading: Offloading,
    pub(super) recording: Recording,
    /// The remote hosts that may open sessions to explicit bindings.
    pub(super) filters: RemoteFilters,
    /// TCP sessions with this remote port stay out of the fast path, which does not see what packets carry.
    pub(super) kept_here: Option<u16>,
    /// Destinations that sessions do not count to a subscriber's limits with.
    exempt_destinations: Vec<Prefix4>,
    /// To be probed at the next expiry.
    silent: VecDeque<SilentSession<I>>,
    /// Bindings that no session keeps, with sessions that are to be ended.
    ending: VecDeque<u32>,
    /// How often a session had been put into an index at the last expiry, and when what was inserted late was last put into its place.
    seen: u64,
    settled: u64,
}

impl<I: InsideKey> StateTables<I> {
    pub(crate) fn new(config: &Config<I>, pool: Pool, seed: [u64; 2]) -> Self {
        let sessions = config.limits.sessions;
        Self {
            sessions: SessionTable::new(sessions, config.timeouts.lifetimes(), seed),
            bindings: BindingTable::new(config, pool, seed),
            permits: Permits::new(config.filtering, sessions, seed),
            stored: StoredSyns::new(STORED_SYNS.min(sessions)),
            offloading: Offloading::default(),
            recording: Recording::default(),
            filters: RemoteFilters::default(),
            kept_here: None,
            exempt_destinations: config.subscribers.exempt_destinations.clone(),
            silent: VecDeque::new(),
            ending: VecDeque::new(),
            seen: 0,
            settled: 0,
        }
    }

    /// A packet from inside that belongs to no session: makes one, and a binding if there is none. A SYN stored for the
    /// same endpoints is answered by it: the session that waits becomes this one.
    #[inline(always)] // Requests open sessions, too: a packet would pay for a call.
    pub(crate) fn open_from_inside(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        (remote, state): (Endpoint4, SessionState),
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        if self.sessions.is_full() {
            self.make_room(clock, counters);
        }
        // A stored SYN's session may become that of a binding.
        if self.sessions.is_full()
            && (self.stored.is_empty() || self.bindings.find_inside(protocol, inside).is_none())
        {
            return Err(DropReason::SessionTableFull);
        }
        self.sessions.touch_next();
        self.bindings.touch_next();
        let is_free = self.is_free(remote);
        let admitted = match self.admit(protocol, inside, (is_free, clock), counters) {
            Ok(admitted) => Ok(admitted),
            // An expired session takes no room, and no part of a limit. A rate counts each try.
            Err(_) if self.make_room(clock, counters) => {
                self.admit(protocol, inside, (is_free, clock), counters)
            }
            Err(reason) => Err(reason),
        };
        if let Err(DropReason::SubscriberLimit | DropReason::SubscriberShare) = admitted {
            self.bindings.was_refused(inside);
        }
        self.open_or_answer(admitted?, (inside, remote), state, clock, counters)
    }

    /// The binding of an inside endpoint, if its subscriber may have one more session.
    fn admit(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        (is_free, clock): (bool, Clock),
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        let is_known = self.bindings.may_open(inside, (self.sessions.left(), is_free), clock)?;
        if let Some(binding) = self.bindings.find_inside(protocol, inside) {
            return Ok(binding);
        }
        let binding = self.bindings.bind(protocol, inside, clock, counters)?;
        if !is_known {
            self.bindings.begin(binding, is_free, clock);
        }
        counters.bindings_made += 1;
        self.record_blocks(clock);
        self.recording.binding_created(self.bindings.get(binding), &self.bindings.names, clock);
        Ok(binding)
    }

    /// Records the port blocks that were given or returned.
    #[inline]
    pub(super) fn record_blocks(&mut self, clock: Clock) {
        if !self.bindings.block_news().is_empty() {
            self.recording.blocks(self.bindings.block_news(), clock);
            self.bindings.forget_block_news();
        }
    }

    /// A packet from inside makes a session of a binding, or answers the one that waits for it.
    fn open_or_answer(
        &mut self,
        binding: u32,
        (inside, remote): (Inside<I>, Endpoint4),
        state: SessionState,
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        let Some(waiting) = self.waiting_for(binding, remote, clock, counters) else {
            return self.open(binding, remote, (state, Direction::Out), clock, counters);
        };
        self.sessions.set_inside(waiting, inside);
        self.link(waiting, binding, clock);
        self.sessions.set_state(waiting, SessionState::Established, clock.ceil);
        self.answered_from_inside(waiting, counters);
        self.recording.session_created(self.sessions.get(waiting), &self.bindings.names, clock);
        Ok(waiting)
    }

    /// Whether sessions with this remote endpoint do not count to a subscriber's limits.
    fn is_free(&self, remote: Endpoint4) -> bool {
        self.exempt_destinations.iter().any(|prefix| prefix.contains(remote.address))
    }

    /// The session without inside endpoint that waits for a SYN of this binding.
    fn waiting_for(
        &mut self,
        binding: u32,
        remote: Endpoint4,
        clock: Clock,
        counters: &mut Counters,
    ) -> Option<u32> {
        if self.stored.is_empty() {
            return None;
        }
        let binding = self.bindings.get(binding);
        let waiting = self.sessions.find_outside(binding.outside, remote, binding.protocol())?;
        self.settle(waiting, clock, counters).then_some(waiting)
    }

    /// A packet from outside belongs to no session: if there is no room for one, what is overdue ends, a bounded amount of
    /// it. Bindings may end with it.
    #[inline]
    pub(crate) fn make_room_for_outside(&mut self, clock: Clock, counters: &mut Counters) {
        if self.sessions.is_full() || self.sessions.is_full_for_outside() {
            self.make_room(clock, counters);
        }
    }

    /// Ends what is overdue and was not come by yet, a bounded amount of it; what must be sent waits for
    /// [`StateTables::expire`]. Whether there was any.
    #[cold]
    fn make_room(&mut self, clock: Clock, counters: &mut Counters) -> bool {
        let mut is_any = false;
        for _ in 0..SETTLED_FOR_ROOM {
            if self.silent.len() >= MOST_SILENT {
                break;
            }
            let Some(slot) = self.sessions.fire(clock) else { break };
            is_any = true;
            if let Some(silent) = self.fired(slot, clock, counters) {
                self.silent.push_back(silent);
            }
        }
        is_any
    }

    /// Creates a session for a packet from outside with a binding. Refused where the table, or its part for sessions from outside, is full.
    pub(crate) fn open_from_outside(
        &mut self,
        binding: u32,
        remote: Endpoint4,
        state: SessionState,
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        if self.sessions.is_full_for_outside() && !self.sessions.is_full() {
            return Err(DropReason::OutsideSessionsFull);
        }
        let bound = self.bindings.get(binding);
        if bound.kind() == BindingKind::Dynamic && bound.keeping == 0 {
            return Err(DropReason::NoBinding);
        }
        let left = (self.sessions.left(), self.sessions.left_for_outside());
        self.bindings.may_open_from_outside(binding, left)?;
        self.open(binding, remote, (state, Direction::In), clock, counters)
    }

    /// Makes a session of a binding.
    fn open(
        &mut self,
        binding: u32,
        remote: Endpoint4,
        (state, opened): (SessionState, Direction),
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        let bound = self.bindings.get(binding);
        let (protocol, outside) = (bound.protocol(), bound.outside);
        let new = NewSession { inside: Some(bound.inside), outside, remote, protocol, state, opened };
        let slot = self.sessions.insert(new, clock).ok_or(DropReason::SessionTableFull)?;
        counters.sessions_made += 1;
        self.recording.session_created(self.sessions.get(slot), &self.bindings.names, clock);
        self.link(slot, binding, clock);
        if state != SessionState::OutsideInitStored {
            self.permits.add(protocol, outside, remote.address);
        }
        Ok(slot)
    }

    /// An inbound SYN that must wait for one from inside: makes its session and stores it. For want of room it is dropped without an answer,
    /// which would come too early (RFC 5382 REQ-4).
    pub(crate) fn store(
        &mut self,
        binding: Option<u32>,
        (outside, remote): (Outside<Endpoint4>, Endpoint4),
        packet: &[u8],
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<(), DropReason> {
        if self.stored.is_full() || self.sessions.is_full() || self.sessions.is_full_for_outside() {
            return Err(DropReason::StoredSynsFull);
        }
        let state = SessionState::OutsideInitStored;
        let slot = match binding {
            Some(binding) => self.open(binding, remote, (state, Direction::In), clock, counters)?,
            None => {
                let (protocol, opened) = (NatProtocol::Tcp, Direction::In);
                let new = NewSession { inside: None, outside, remote, protocol, state, opened };
                let slot = self.sessions.insert(new, clock).ok_or(DropReason::StoredSynsFull)?;
                counters.sessions_made += 1;
                slot
            }
        };
        let stored = self.stored.insert(packet);
        self.sessions.links_mut(slot).set_stored(stored);
        Ok(())
    }

    /// A packet from inside has changed the state of a session.
    #[cold]
    pub(crate) fn changed_from_inside(&mut self, slot: u32, before: SessionState, counters: &mut Counters) {
        let state = self.sessions.get(slot).state;
        if !matches!(state, SessionState::Established | SessionState::Udp | SessionState::Icmp) {
            return;
        }
        if before == SessionState::OutsideInitStored {
            self.answered_from_inside(slot, counters);
        }
        let SessionLinks { binding, is_exempt, .. } = *self.sessions.links(slot);
        if self.sessions.forget_outside(slot) && binding != NONE {
            self.bindings.get_mut(binding).keeping += 1;
            let (subscribers, subscriber) = self.bindings.subscribers_mut(binding);
            subscribers.has_answered(subscriber, Counted { is_exempt, from_outside: true });
        }
    }

    /// A SYN from inside came for a session that waited for it: the stored one is silently dropped (RFC 5382 REQ-4).
    pub(crate) fn answered_from_inside(&mut self, slot: u32, counters: &mut Counters) {
        let stored = self.sessions.links(slot).stored();
        self.sessions.links_mut(slot).set_stored(None);
        if let Some(stored) = stored {
            self.stored.discard(stored);
            let session = self.sessions.get(slot);
            self.permits.add(session.protocol, session.outside, session.remote.address);
            stored_packet_dropped(counters);
        }
    }

    pub(super) fn link(&mut self, slot: u32, binding: u32, clock: Clock) {
        let is_exempt = self.is_free(self.sessions.get(slot).remote);

        let bound = self.bindings.get_mut(binding);
        let next = std::mem::replace(&mut bound.first, slot);
        bound.sessions += 1;
        let links = self.sessions.links_mut(slot);
        bound.keeping += u32::from(!links.from_outside);
        (links.binding, links.next, links.previous) = (binding, next, NONE);
        links.is_exempt = is_exempt;
        let from_outside = links.from_outside;
        if next != NONE {
            self.sessions.links_mut(next).previous = slot;
        }
        let (subscribers, subscriber) = self.bindings.subscribers_mut(binding);
        subscribers.has_opened(subscriber, Counted { is_exempt, from_outside }, clock.floor);
    }

    /// Applies what time has changed to a session. Whether it still exists.
    pub(crate) fn settle(&mut self, slot: u32, clock: Clock, counters: &mut Counters) -> bool {
        while self.sessions.is_overdue(slot, clock) && !self.lives_elsewhere(slot, clock, counters) {
            if self.sessions.get(slot).state != SessionState::Established {
                self.end(slot, Ending::Lifetime, clock, counters);
                return false;
            }
            let ended = self.sessions.ends(self.sessions.get(slot));
            self.sessions.set_state(slot, SessionState::Trans, ended);
        }
        true
    }

    fn end(&mut self, slot: u32, why: Ending, clock: Clock, counters: &mut Counters) {
        if let Some(binding) = self.take_out(slot, why, clock, counters) {
            self.end_unkept(binding, clock, counters);
        }
    }

    /// Ends a dynamic binding that no session keeps any more, and a bounded number of its sessions before it.
    pub(super) fn end_unkept(&mut self, slot: u32, clock: Clock, counters: &mut Counters) {
        let binding = self.bindings.get(slot);
        if binding.keeping > 0 || binding.kind() != BindingKind::Dynamic {
            return;
        }
        for _ in 0..ENDED_WITH_BINDING {
            let first = self.bindings.get(slot).first;
            if first == NONE {
                self.unbind(slot, clock, counters);
                return;
            }
            if self.sessions.links(first).stored().is_none() {
                self.take_out(first, Ending::Lifetime, clock, counters);
            } else {
                // The SYN waits as one to an endpoint without a binding.
                self.recording.session_deleted(self.sessions.get(first), &self.bindings.names, clock);
                let links = *self.sessions.links(first);
                self.unlink(&links, first);
                self.sessions.forget_inside(first);
            }
        }
        if !self.bindings.get_mut(slot).set_ending(true) {
            self.ending.push_back(slot);
        }
    }

    /// Ends a restored binding at the next expiry, unless a session that keeps it is restored before.
    pub(super) fn end_unless_kept(&mut self, slot: u32) {
        let binding = self.bindings.get_mut(slot);
        let is_unkept = binding.keeping == 0 && binding.kind() == BindingKind::Dynamic;
        if is_unkept && !binding.set_ending(true) {
            self.ending.push_back(slot);
        }
    }

    /// Goes on with the bindings whose sessions were too numerous, if no packet from inside has come meanwhile.
    fn end_more(&mut self, budget: usize, clock: Clock, counters: &mut Counters) {
        for _ in 0..budget.div_ceil(ENDED_WITH_BINDING) {
            let Some(slot) = self.ending.pop_front() else { break };
            if self.bindings.get_mut(slot).set_ending(false) {
                self.end_unkept(slot, clock, counters);
            }
        }
    }

    /// Takes a session out of its binding's list.
    fn unlink(&mut self, links: &SessionLinks, slot: u32) {
        let (subscribers, subscriber) = self.bindings.subscribers_mut(links.binding);
        let SessionLinks { is_exempt, from_outside, .. } = *links;
        subscribers.has_closed(subscriber, Counted { is_exempt, from_outside });
        if links.next != NONE {
            self.sessions.links_mut(links.next).previous = links.previous;
        }
        if links.previous != NONE {
            self.sessions.links_mut(links.previous).next = links.next;
        }
        let binding = self.bindings.get_mut(links.binding);
        if binding.first == slot {
            binding.first = links.next;
        }
        binding.sessions -= 1;
    }

    /// Ends a session, and returns its binding.
    fn take_out(&mut self, slot: u32, why: Ending, clock: Clock, counters: &mut Counters) -> Option<u32> {
        // No packet may go by its entry when its port is another's.
        self.forget_opening(slot);
        self.take_back(slot);
        let links = *self.sessions.links(slot);
        let session = self.sessions.remove(slot);
        counters.sessions_ended += 1;
        self.recording.session_deleted(&session, &self.bindings.names, clock);
        if let Some(stored) = links.stored() {
            match why {
                Ending::Lifetime => self.stored.give_up(stored),
                Ending::Order => self.stored.discard(stored),
            }
            stored_packet_dropped(counters);
        } else if links.binding != NONE {
            self.permits.remove(session.protocol, session.outside, session.remote.address);
        }
        if links.binding == NONE {
            return None;
        }
        self.bindings.get_mut(links.binding).keeping -= u32::from(!links.from_outside);
        self.unlink(&links, slot);
        Some(links.binding)
    }

    /// Removes a binding without sessions.
    fn unbind(&mut self, binding: u32, clock: Clock, counters: &mut Counters) {
        self.recording.binding_deleted(self.bindings.get(binding), &self.bindings.names, clock);
        self.filters.forget(binding);
        self.bindings.remove(binding, clock.ceil, counters);
        counters.bindings_ended += 1;
    }

    /// Ends a session by order.
    pub(crate) fn end_session(&mut self, slot: u32, clock: Clock, counters: &mut Counters) {
        self.end(slot, Ending::Order, clock, counters);
    }

    /// Ends a binding by order, and its sessions before it, at most `budget` of them. Whether it was removed: else the rest
    /// waits for the next call.
    pub(crate) fn end_binding(
        &mut self,
        slot: u32,
        budget: usize,
        clock: Clock,
        counters: &mut Counters,
    ) -> bool {
        for _ in 0..budget {
            let first = self.bindings.get(slot).first;
            if first == NONE {
                break;
            }
            self.take_out(first, Ending::Order, clock, counters);
        }
        if self.bindings.get(slot).sessions > 0 {
            self.end_unless_kept(slot);
            return false;
        }
        self.unbind(slot, clock, counters);
        true
    }

    /// Creates a static binding.
    pub(crate) fn bind_static(
        &mut self,
        new: &StaticBinding<I>,
        clock: Clock,
    ) -> Result<(), StaticBindingError> {
        let slot = self.bindings.bind_static(new)?;
        self.recording.binding_created(self.bindings.get(slot), &self.bindings.names, clock);
        Ok(())
    }

    /// Keeps the endpoint of another worker's static binding from being allocated here.
    pub(crate) fn reserve(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
    ) -> Result<PoolSlot, StaticBindingError> {
        self.bindings.reserve(protocol, outside)
    }

    /// Undoes [`StateTables::reserve`].
    pub(crate) fn unreserve(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        self.bindings.release(slot, protocol, port);
    }

    /// Ends what is due and reports what must be sent, examining no more than `budget` sessions.
    pub(crate) fn expire(
        &mut self,
        clock: Clock,
        budget: usize,
        counters: &mut Counters,
        mut tell: impl FnMut(Fired<I>),
    ) {
        for _ in 0..budget {
            let Some(silent) = self.silent.pop_front() else { break };
            tell(Fired::Silent(silent));
        }
        for _ in 0..budget {
            let Some(slot) = self.sessions.fire(clock) else { break };
            if let Some(silent) = self.fired(slot, clock, counters) {
                tell(Fired::Silent(silent));
            }
        }
        self.end_more(budget, clock, counters);
        for _ in 0..budget {
            if !self.bindings.end_quarantine(clock.floor) {
                break;
            }
        }
        for _ in 0..budget {
            if !self.bindings.end_idle_block(clock.floor) {
                break;
            }
        }
        self.record_blocks(clock);
        if self.sessions.added() != self.settled {
            self.settle_if_quiet();
        }
        for _ in 0..budget {
            let Some(packet) = self.stored.next_unanswered() else { break };
            tell(Fired::Unanswered(packet));
        }
    }

    /// While no session is added, what was inserted late does not wait for others: every scanned port would be compared with it.
    fn settle_if_quiet(&mut self) {
        let added = self.sessions.added();
        if added == self.seen {
            self.sessions.settle();
            self.bindings.settle();
            self.settled = added;
        }
        self.seen = added;
    }

    /// The wheel says that this session may be due: it ends, is parked again, or, if it was established, is to be probed.
    fn fired(&mut self, slot: u32, clock: Clock, counters: &mut Counters) -> Option<SilentSession<I>> {
        let Session { inside, outside, remote, .. } = *self.sessions.get(slot);
        if !self.sessions.is_overdue(slot, clock) || self.lives_elsewhere(slot, clock, counters) {
            self.touch(slot);
            self.sessions.park_again(slot);
            return None;
        }
        self.settle(slot, clock, counters).then_some(SilentSession { inside, outside, remote })
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        let silent = self.silent.capacity() * size_of::<SilentSession<I>>() + self.ending.capacity() * 4;
        self.sessions.memory()
            + self.bindings.memory()
            + self.permits.memory()
            + self.stored.memory()
            + silent
    }
}

/// A stored SYN is counted as held until it is dropped, whether an ICMP error is sent or not.
fn stored_packet_dropped(counters: &mut Counters) {
    counters.drop_held(DropReason::InboundSyn, 1);
}
