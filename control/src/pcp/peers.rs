//! Nonces of outbound mappings that PEER made or manages (RFC 6887 §12.3). The mappings themselves are the NAT's. Bounded by the quota.

use super::mapping::{Internal, Nonce, Transport};
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;
use std::collections::{BTreeMap, BTreeSet};

/// The five-tuple of an outbound mapping.
pub(super) type Key = (Transport, Internal, Endpoint4);

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    nonces: BTreeMap<Key, (Nonce, Instant)>,
    by_expiry: BTreeSet<(Instant, Key)>,
}

impl Peers {
    /// The nonce of a mapping, and when it is forgotten.
    pub(super) fn get(&self, key: Key) -> Option<(Nonce, Instant)> {
        self.nonces.get(&key).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.nonces.len()
    }

    /// Remembers a nonce until then; whether the mapping is new here.
    pub(super) fn remember(&mut self, key: Key, nonce: Nonce, until: Instant) -> bool {
        let before = self.nonces.insert(key, (nonce, until));
        if let Some((_, before)) = before {
            self.by_expiry.remove(&(before, key));
        }
        self.by_expiry.insert((until, key));
        before.is_none()
    }

    /// When the next one is forgotten.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.by_expiry.first().map(|(at, _)| *at)
    }

    /// Forgets one whose time is over.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Key> {
        let (at, key) = *self.by_expiry.first()?;
        if at > now {
            return None;
        }
        self.by_expiry.remove(&(at, key));
        self.nonces.remove(&key);
        Some(key)
    }
}
