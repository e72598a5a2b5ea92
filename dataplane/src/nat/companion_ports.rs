//! Endpoints of bindings with companions: found, kept and given ([`Companions`](super::companions::Companions)).

use super::binding::BindingTable;
use super::companions::companion;
use super::inside_key::InsideKey;
use super::protocol::NatProtocol;
use super::quarantine::{FormerOwner, Key};
use super::sides::{Inside, Outside};
use sixway_wire::Endpoint4;

/// Ports that are tried to find one whose companion is free.
const TRIES: usize = 16;

/// A new endpoint with its companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Both are free, or the companion is the host's.
    Both(Outside<Endpoint4>),
    /// No port was found whose companion is free.
    NoCompanion,
    /// No port is free at all, or subscribers have blocks.
    NoPort,
}

impl<I: InsideKey> BindingTable<I> {
    /// An endpoint for a new binding of a host: the wanted one, or another one, whose companion can be kept.
    pub(super) fn endpoint_with_companion(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        (wanted, exactly): (Option<Outside<Endpoint4>>, bool),
    ) -> Found {
        if self.blocks.is_some() {
            return Found::NoPort;
        }
        let host = inside.0.host();
        if let Some(outside) = wanted
            && self.is_free_for(host, (protocol, outside))
            && self.has_companion(host, (protocol, outside))
        {
            return Found::Both(outside);
        }
        if exactly {
            return Found::NoCompanion;
        }
        let paired = self.paired_address(Inside(host)).and_then(|address| self.pool.slot_of(address));
        let (mut drawn, mut found) = (Vec::new(), Found::NoPort);
        for _ in 0..TRIES {
            let Some((slot, outside)) = self.pool.allocate(paired, protocol, inside.0.port()) else { break };
            drawn.push((slot, outside));
            found = Found::NoCompanion;
            if self.has_companion(host, (protocol, outside)) {
                found = Found::Both(outside);
                break;
            }
        }
        for (slot, outside) in drawn {
            self.pool.release(slot, protocol, outside.0.port);
        }
        found
    }

    /// Whether an endpoint can be kept as a host's companion: the host has it, or no host has.
    fn has_companion(&mut self, host: I::Host, key: Key) -> bool {
        let Some((protocol, outside)) = companion(key) else { return true };
        match self.find_outside(protocol, outside) {
            Some(slot) => self.get(slot).inside.0.host() == host,
            None => self.is_free_for(host, (protocol, outside)),
        }
    }

    /// Whether an endpoint without a binding is free, or was this subscriber's, or is kept for this host.
    fn is_free_for(&mut self, host: I::Host, key: Key) -> bool {
        let owner = FormerOwner::hashed(self.subscribers.tag_of(I::site(host, &self.names)));
        if self.find_outside(key.0, key.1).is_some() {
            return false;
        }
        match self.quarantine.owner(key) {
            Some(former) => former == owner,
            None if self.is_kept_for(host, key) => true,
            None => match self.pool.take(key.0, key.1) {
                Some(slot) => {
                    self.pool.release(slot, key.0, key.1.0.port);
                    true
                }
                None => false,
            },
        }
    }

    /// Whether an endpoint is kept for this host.
    fn is_kept_for(&self, host: I::Host, key: Key) -> bool {
        let other = companion(key).filter(|_| self.companions.is_unused(key));
        let slot = other.and_then(|(protocol, outside)| self.find_outside(protocol, outside));
        slot.is_some_and(|slot| self.get(slot).inside.0.host() == host)
    }

    /// Keeps the companion of a binding's endpoint from now on, if it is the host's, or of no host.
    pub(super) fn keep_companion(&mut self, binding: u32) {
        let (host, key) = (self.get(binding).inside.0.host(), self.key_of(binding));
        let Some(other) = companion(key).filter(|_| self.blocks.is_none()) else { return };
        if self.companions.has(other) || !self.has_companion(host, key) {
            return;
        }
        self.leave_quarantine(other.0, other.1);
        let slot = match self.find_outside(other.0, other.1) {
            Some(_) => None,
            None => self.pool.take(other.0, other.1),
        };
        self.companions.keep(other, slot);
    }

    /// The companion of an endpoint is kept no longer.
    pub(super) fn release_companion(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(other) = companion((protocol, outside)) {
            self.give_up_companion(other);
        }
    }

    /// An endpoint is kept no longer: its binding ends, or the administrator gives it to somebody.
    pub(super) fn give_up_companion(&mut self, key: Key) {
        if let Some(slot) = self.companions.forget(key) {
            self.pool.release(slot, key.0, key.1.0.port);
        }
    }

    /// An endpoint that is kept for this host is the host's from now on.
    pub(super) fn give_kept(&mut self, host: I::Host, key: Key) {
        if self.is_kept_for(host, key)
            && let Some(slot) = self.companions.keep(key, None)
        {
            self.pool.release(slot, key.0, key.1.0.port);
        }
    }

    /// An endpoint is free: if it is the companion of a binding, its host has released it or did not get it, and it is reserved again.
    pub(super) fn keep_if_companion(&mut self, key: Key) {
        if self.companions.has(key) && !self.companions.is_unused(key) {
            let slot = self.pool.take(key.0, key.1);
            self.companions.keep(key, slot);
        }
    }

    /// The protocol and outside endpoint of a binding.
    pub(super) fn key_of(&self, binding: u32) -> Key {
        let binding = self.get(binding);
        (binding.protocol(), binding.outside)
    }
}
