//! The operator's interface: rows of bindings and sessions, ending them, static bindings at run time.

use super::Engine;
use crate::counters::Counters;
use crate::instant::Instant;
use crate::nat::binding_kind::BindingKind;
use crate::nat::draining::{Draining, DrainingRow};
use crate::nat::inside_key::InsideKey;
use crate::nat::protocol::NatProtocol;
use crate::nat::rows::{BindingRow, Selection, SessionRow};
use crate::nat::session_state::SessionState;
use crate::nat::sides::{Inside, Outside};
use crate::nat::static_binding::{StaticBinding, StaticBindingError};
use crate::nat::subscriber_table::SubscriberRow;
use crate::nat::timeouts::Clock;
use crate::verdict::WorkerId;
use core::time::Duration;
use sixway_wire::{Endpoint4, Prefix4, Prefix6};

impl<I: InsideKey> Engine<I> {
    /// Adds the selected sessions to `rows`, looking at `slots` slots from the cursor on. Returns the cursor to continue from;
    /// `None`: the end. Sessions created or ended meanwhile may be missing.
    pub fn sessions(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection<I::Network>,
        now: Instant,
        rows: &mut Vec<SessionRow<I>>,
    ) -> Option<u32> {
        let clock = Clock::at(now);
        let sessions = &self.tables.sessions;
        let end = cursor.saturating_add(slots).min(sessions.slots());
        for slot in cursor..end {
            if sessions.get(slot).state == SessionState::Free {
                continue;
            }
            let present = self.tables.present(slot);
            let session = &present.session;
            let inside = Some(session.inside).filter(|_| session.has_inside());
            if clock.floor >= sessions.ends(session) && session.state != SessionState::Established
                || !selection.holds(session.protocol, (inside, self.names()), session.outside)
                || !selection.holds_remote(session.remote)
            {
                continue;
            }
            let ([packets_out, packets_in], [octets_out, octets_in]) = (present.packets, present.octets);
            rows.push(SessionRow {
                protocol: session.protocol,
                softwire: None,
                inside,
                outside: session.outside,
                remote: session.remote,
                state: session.state.name(),
                idle: Duration::from_secs(clock.floor.saturating_sub(session.last_packet).into()),
                ends_in: Duration::from_secs(sessions.closes(session).saturating_sub(clock.floor).into()),
                packets_out,
                packets_in,
                octets_out,
                octets_in,
                offloaded: present.flow.is_some(),
            });
        }
        (end < sessions.slots()).then_some(end)
    }

    /// Adds the selected bindings to `rows`, as [`Engine::sessions`] does.
    pub fn bindings(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection<I::Network>,
        rows: &mut Vec<BindingRow<I>>,
    ) -> Option<u32> {
        let bindings = &self.tables.bindings;
        let end = cursor.saturating_add(slots).min(bindings.slots());
        for slot in cursor..end {
            let binding = bindings.get(slot);
            if binding.kind() != BindingKind::Free
                && selection.holds(binding.protocol(), (Some(binding.inside), self.names()), binding.outside)
            {
                rows.push(BindingRow {
                    protocol: binding.protocol(),
                    softwire: None,
                    inside: binding.inside,
                    outside: binding.outside,
                    is_static: binding.kind() == BindingKind::Static,
                    is_explicit: binding.is_explicit(),
                    sessions: binding.sessions,
                });
            }
        }
        (end < bindings.slots()).then_some(end)
    }

    /// Adds the subscribers in a prefix, given as [`InsideKey::mapped`] gives addresses, to `rows`, as [`Engine::sessions`] does.
    pub fn subscribers(
        &self,
        cursor: u32,
        slots: u32,
        inside: Option<Prefix6>,
        now: Instant,
        rows: &mut Vec<SubscriberRow>,
    ) -> Option<u32> {
        let (bindings, second) = (&self.tables.bindings, Clock::at(now).floor);
        let end = cursor.saturating_add(slots).min(bindings.subscriber_slots());
        let found = (cursor..end).filter_map(|slot| bindings.subscriber(slot, second));
        rows.extend(found.filter(|row| inside.is_none_or(|prefix| prefix.contains(row.address))));
        (end < bindings.subscriber_slots()).then_some(end)
    }

    /// Ends a session; whether there was one.
    pub fn end_session(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        remote: Endpoint4,
        counters: &mut Counters,
    ) -> bool {
        let found = self.tables.sessions.find_inside(inside, remote, protocol);
        if let Some(slot) = found {
            self.tables.end_session(slot, self.clock, counters);
        }
        found.is_some()
    }

    /// Ends a dynamic binding and at most `budget` of its sessions. `None`: there is no such binding; `Some(false)`: it has
    /// more sessions, ask again. A static binding is for [`Engine::remove_static`] to end.
    pub fn end_binding(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool> {
        let slot = self.tables.bindings.find_outside(protocol, outside)?;
        if self.tables.bindings.get(slot).kind() != BindingKind::Dynamic {
            return None;
        }
        Some(self.tables.end_binding(slot, budget, self.clock, counters))
    }

    /// Ends the dynamic bindings of a host and their sessions: looks at `slots` slots from the cursor on, and ends at most `budget` sessions.
    /// Returns the cursor to go on from; `None`: the host has none any more.
    pub(crate) fn end_bindings_of(
        &mut self,
        host: I::Host,
        cursor: u32,
        (slots, budget): (u32, u32),
        now: Instant,
        counters: &mut Counters,
    ) -> Option<u32> {
        self.clock.set(now);
        if !self.has_host(host) {
            return None;
        }
        let all = self.tables.bindings.slots();
        let (mut left, end) = (budget, cursor.saturating_add(slots).min(all));
        for slot in cursor..end {
            let binding = self.tables.bindings.get(slot);
            if binding.kind() != BindingKind::Dynamic || binding.inside.0.host() != host {
                continue;
            }
            let sessions = binding.sessions;
            if !self.tables.end_binding(slot, left as usize, self.clock, counters) {
                return Some(slot);
            }
            left = left.saturating_sub(sessions);
        }
        (end < all).then_some(end)
    }

    /// Drains these addresses of the pool, or gives them to hosts again. Hosts that have bindings there keep the address.
    pub fn drain(&mut self, prefix: Prefix4, drains: bool) {
        self.tables.bindings.drain(prefix, drains);
    }

    /// The addresses that are being drained.
    pub(crate) fn draining(&self) -> &Draining {
        self.tables.bindings.pool().draining()
    }

    /// The remaining use of addresses that are being drained, of this worker: a part of it from a place on, and where to continue. Of each
    /// prefix there is a row.
    pub fn draining_rows(&self, from: u32) -> (Vec<DrainingRow>, Option<u32>) {
        self.tables.bindings.draining_rows(from, |address, protocol| {
            // Their owners count them.
            let at = |port| (protocol, Outside(Endpoint4::new(address, port)));
            self.reserved.range(at(0)..=at(u16::MAX)).count() as u32
        })
    }

    /// Creates a static binding. Every worker is asked: that of the inside host makes it, the others send packets there, and the one in whose
    /// block the outside endpoint lies does not give it.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn add_static(&mut self, binding: &StaticBinding<I>) -> Result<(), StaticBindingError> {
        self.add_static_of(self.worker_of_host(binding.inside.0.host()), binding)
    }

    /// The same for a host of this worker's; at the others its site may have no name.
    pub(crate) fn add_static_of(
        &mut self,
        owner: WorkerId,
        binding: &StaticBinding<I>,
    ) -> Result<(), StaticBindingError> {
        let StaticBinding { protocol, inside, outside, .. } = *binding;
        // Every worker knows all of them, also those whose hosts are another worker's.
        let is_known = self.ownership.is_static(protocol, outside);
        if self.worker == owner {
            if is_known && self.tables.bindings.find_inside(protocol, inside).is_none() {
                return Err(StaticBindingError::OutsideInUse);
            }
            self.tables.bind_static(binding, self.clock)?;
        } else if is_known {
            return Err(StaticBindingError::OutsideInUse);
        } else if self.ownership.giver(outside.0) == self.worker {
            let slot = self.tables.reserve(protocol, outside)?;
            self.reserved.insert((protocol, outside), slot);
        }
        self.ownership.add_static(protocol, outside, owner);
        Ok(())
    }

    /// Removes a static binding and at most `budget` of its sessions; what it returns is as for [`Engine::end_binding`].
    /// Every worker is asked, that of the inside host first.
    pub fn remove_static(
        &mut self,
        binding: &StaticBinding<I>,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool> {
        self.remove_static_of(self.worker_of_host(binding.inside.0.host()), binding, (budget, counters))
    }

    /// The same for a host of this worker's; at the others its site may have no name.
    pub(crate) fn remove_static_of(
        &mut self,
        owner: WorkerId,
        binding: &StaticBinding<I>,
        (budget, counters): (usize, &mut Counters),
    ) -> Option<bool> {
        let StaticBinding { protocol, inside, outside, .. } = *binding;
        if self.worker == owner {
            let slot = self.tables.bindings.find_outside(protocol, outside)?;
            let bound = self.tables.bindings.get(slot);
            if bound.kind() != BindingKind::Static || bound.inside != inside {
                return None;
            }
            if !self.tables.end_binding(slot, budget, self.clock, counters) {
                return Some(false);
            }
        } else if !self.ownership.is_static(protocol, outside) {
            // It was refused here.
            return None;
        } else if let Some(slot) = self.reserved.remove(&(protocol, outside)) {
            self.tables.unreserve(slot, protocol, outside.0.port);
        }
        self.ownership.remove_static(protocol, outside);
        Some(true)
    }
}
