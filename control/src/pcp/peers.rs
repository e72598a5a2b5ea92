//! Outbound mappings that PEER created or manages (RFC 6887 §12.3), with their nonces. The sessions themselves are the NAT's. Bounded by the quota.

use super::mapping::{Internal, Nonce, Transport};
use core::net::{IpAddr, Ipv4Addr};
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;
use std::collections::{BTreeMap, BTreeSet};

/// The five-tuple of an outbound mapping.
pub(super) type Key = (Transport, Internal, Endpoint4);

/// The known data about an outbound mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) nonce: Nonce,
    /// The outside endpoint.
    pub(super) external: Endpoint4,
    /// When it is removed.
    pub(super) expires: Instant,
}

impl Peer {
    /// Whole seconds until it is removed.
    pub(super) fn remaining(&self, now: Instant) -> u32 {
        u32::try_from(self.expires.since(now).as_secs()).unwrap_or(u32::MAX)
    }
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    by_key: BTreeMap<Key, Peer>,
    by_expiry: BTreeSet<(Instant, Key)>,
}

impl Peers {
    pub(super) fn get(&self, key: Key) -> Option<Peer> {
        self.by_key.get(&key).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Peer)> {
        self.by_key.iter()
    }

    /// Those of a host.
    pub(super) fn of_host(&self, transport: Transport, host: IpAddr) -> Vec<Key> {
        let at = |port, remote, remote_port| {
            (transport, Internal { address: host, port }, Endpoint4::new(remote, remote_port))
        };
        let (first, last) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
        let all = self.by_key.range(at(0, first, 0)..=at(u16::MAX, last, u16::MAX));
        all.map(|(key, _)| *key).collect()
    }

    /// Removes a mapping.
    pub(super) fn remove(&mut self, key: Key) {
        if let Some(peer) = self.by_key.remove(&key) {
            self.by_expiry.remove(&(peer.expires, key));
        }
    }

    /// Stores a mapping. Returns whether it is new.
    pub(super) fn remember(&mut self, key: Key, peer: Peer) -> bool {
        let before = self.by_key.insert(key, peer);
        if let Some(before) = before {
            self.by_expiry.remove(&(before.expires, key));
        }
        self.by_expiry.insert((peer.expires, key));
        before.is_none()
    }

    /// When the next one expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.by_expiry.first().map(|(at, _)| *at)
    }

    /// Removes one that has expired.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Key> {
        let (at, key) = *self.by_expiry.first()?;
        if at > now {
            return None;
        }
        self.by_expiry.remove(&(at, key));
        self.by_key.remove(&key);
        Some(key)
    }
}
