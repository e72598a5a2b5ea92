//! Explicit bindings in the tables: they are kept, and their filters decide which remote hosts may open sessions from outside.

use super::binding::BindingTable;
use super::binding_kind::BindingKind;
use super::explicit_binding::RemoteFilter;
use super::inside_key::InsideKey;
use super::not_adopted::NotAdopted;
use super::protocol::NatProtocol;
use super::quarantine::FormerOwner;
use super::sides::{Inside, Outside};
use super::slab::NONE;
use super::state_tables::StateTables;
use super::subscriber_table::Left;
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use sixway_wire::Endpoint4;

/// Sessions of a binding that are examined for how long they keep it.
const EXAMINED: usize = 64;

impl<I: InsideKey> BindingTable<I> {
    /// Creates a dynamic binding with this outside endpoint, if that is free, or in quarantine after the same subscriber.
    pub(super) fn bind_wanted(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        outside: Outside<Endpoint4>,
        clock: Clock,
    ) -> Result<u32, DropReason> {
        let site = I::site(inside.0.host(), &self.names);
        let owner = FormerOwner::hashed(self.subscribers.tag_of(site));
        let is_anothers = self.quarantine.owner((protocol, outside)).is_some_and(|former| former != owner);
        if self.find_outside(protocol, outside).is_some() || is_anothers {
            return Err(DropReason::PortPoolEmpty);
        }
        if let Some(subscriber) = self.subscriber_of_host(inside.0.host()) {
            // A client that requests certain ports gets no more of them than one that takes any.
            let ports = if self.blocks.is_some() { u32::MAX } else { self.ports_left_to(protocol, inside) };
            let left = Left { ports, bindings: self.bindings.most() - self.bindings.len() };
            self.subscribers.may_bind(subscriber, protocol, left, clock)?;
        }
        self.leave_quarantine(protocol, outside);
        self.give_kept(inside.0.host(), (protocol, outside));
        let bound = self.rebind(protocol, inside, outside);
        if bound.is_err() {
            self.keep_if_companion((protocol, outside));
        }
        bound.map_err(|reason| match reason {
            NotAdopted::SubscriberLimit => DropReason::SubscriberLimit,
            NotAdopted::TableFull => DropReason::BindingTableFull,
            NotAdopted::NoTranslator
            | NotAdopted::NotCarried
            | NotAdopted::OtherWorker
            | NotAdopted::AddressRefused
            | NotAdopted::PortNotGiven
            | NotAdopted::EndpointInUse
            | NotAdopted::SessionExists
            | NotAdopted::Expired => DropReason::PortPoolEmpty,
        })
    }
}

impl<I: InsideKey> StateTables<I> {
    /// Makes a dynamic binding of an inside endpoint without one, with this outside endpoint if that is free.
    pub(super) fn bind_by_request(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        (wanted, exactly): (Option<Outside<Endpoint4>>, bool),
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        let is_known = self.bindings.subscriber_of_host(inside.0.host()).is_some();
        let given = wanted.map(|outside| self.bindings.bind_wanted(protocol, inside, outside, clock));
        let slot = match given {
            Some(Ok(slot)) => slot,
            Some(Err(reason @ (DropReason::SubscriberLimit | DropReason::SubscriberShare))) => {
                self.bindings.was_refused(inside);
                return Err(reason);
            }
            Some(Err(reason)) if exactly => return Err(reason),
            Some(Err(_)) | None => {
                let bound = self.bindings.bind(protocol, inside, clock, counters);
                if let Err(DropReason::SubscriberLimit | DropReason::SubscriberShare) = bound {
                    self.bindings.was_refused(inside);
                }
                bound?
            }
        };
        if !is_known {
            self.bindings.begin(slot, true, clock);
        }
        counters.bindings_made += 1;
        self.record_blocks(clock);
        self.recording.binding_created(self.bindings.get(slot), &self.bindings.names, clock);
        Ok(slot)
    }

    /// Keeps a binding until it is released. A static one is kept in any case, and admits all remote hosts. `is_published`: remote hosts that the
    /// filters do not admit may know its outside endpoint.
    pub(super) fn keep_explicit(&mut self, slot: u32, filters: &[RemoteFilter], is_published: bool) {
        let binding = self.bindings.get_mut(slot);
        if binding.kind() == BindingKind::Static {
            return;
        }
        if is_published {
            binding.marks.set_published();
        }
        if !binding.set_explicit(true) {
            binding.keeping += 1;
        }
        self.filters.set(slot, filters);
    }

    /// Only sessions keep a binding from now on. Without sessions it ends.
    pub(super) fn release_explicit(&mut self, slot: u32, clock: Clock, counters: &mut Counters) {
        self.filters.forget(slot);
        let (protocol, outside) = self.bindings.key_of(slot);
        self.bindings.release_companion(protocol, outside);
        let binding = self.bindings.get_mut(slot);
        if binding.set_explicit(false) {
            binding.keeping -= 1;
            self.end_unkept(slot, clock, counters);
        }
    }

    /// Seconds for which sessions from inside keep a binding without further packets, at least; only some of them are examined.
    pub(super) fn used_for(&self, slot: u32, clock: Clock) -> u32 {
        let (mut next, mut longest) = (self.bindings.get(slot).first, 0);
        for _ in 0..EXAMINED {
            if next == NONE {
                break;
            }
            let links = self.sessions.links(next);
            if !links.from_outside {
                let session = self.sessions.get(next);
                longest = longest.max(self.sessions.closes(session).saturating_sub(clock.floor));
            }
            next = links.next;
        }
        longest
    }

    /// Whether a binding admits a remote endpoint whatever the translator filters; `Some(false)`: its own filters do not.
    #[inline]
    pub(super) fn admits_explicitly(&self, slot: u32, remote: Endpoint4) -> Option<bool> {
        let binding = self.bindings.get(slot);
        if binding.kind() == BindingKind::Static {
            return Some(true);
        }
        binding.is_explicit().then(|| self.filters.admit(slot, remote).unwrap_or(true))
    }
}
