//! The mappings. Those of one host and protocol do not overlap. The number of ports is bounded by the quota.

use super::mapping::{Internal, Mapping, Transport};
use core::net::IpAddr;
use sixway_dataplane::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The key of a mapping: its protocol and first inside endpoint.
pub(super) type Key = (Transport, Internal);

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    by_internal: BTreeMap<Key, Mapping>,
    by_expiry: BTreeSet<(Instant, Key)>,
}

impl Mappings {
    pub(super) fn get(&self, key: Key) -> Option<&Mapping> {
        self.by_internal.get(&key)
    }

    pub(super) fn len(&self) -> usize {
        self.by_internal.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.by_internal.values()
    }

    /// Those that have one of `size` ports from an inside endpoint on.
    pub(super) fn overlapping(&self, transport: Transport, first: Internal, size: u16) -> Vec<Key> {
        let last = first.port.saturating_add(size.saturating_sub(1));
        let at = |port| (transport, Internal { port, ..first });
        let before = self.by_internal.range(at(0)..at(first.port)).next_back();
        let before = before.filter(|(_, mapping)| mapping.last_port() >= first.port);
        let within = self.by_internal.range(at(first.port)..=at(last));
        before.into_iter().chain(within).map(|(key, _)| *key).collect()
    }

    /// Those of a host.
    pub(super) fn of_host(&self, transport: Transport, host: IpAddr) -> Vec<Key> {
        let at = |port| (transport, Internal { address: host, port });
        self.by_internal.range(at(0)..=at(u16::MAX)).map(|(key, _)| *key).collect()
    }

    /// Adds a mapping that overlaps no other.
    pub(super) fn insert(&mut self, mapping: Mapping) {
        let key = (mapping.transport, mapping.internal);
        self.by_expiry.insert((mapping.expires, key));
        self.by_internal.insert(key, mapping);
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Mapping> {
        let mapping = self.by_internal.remove(&key)?;
        self.by_expiry.remove(&(mapping.expires, key));
        Some(mapping)
    }

    /// When the next one ends.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.by_expiry.first().map(|(at, _)| *at)
    }

    /// One that has ended.
    pub(super) fn expired(&self, now: Instant) -> Option<Key> {
        self.by_expiry.first().filter(|(at, _)| *at <= now).map(|(_, key)| *key)
    }
}
