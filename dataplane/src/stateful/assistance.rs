//! The state of a translator's application-level gateway: control connections, and mappings for their data connections.

use crate::alg::{Connections, Ends, Opening, Openings, Sharer, Shares};
use crate::counters::Counters;
use crate::instant::Instant;
use crate::nat::{
    BoundEndpoint, Engine, ExplicitBinding, Inside, InsideKey, NatProtocol, RemoteFilter, WantedOutside,
};
use crate::rates::{Rate, Rates};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Timeout of an expected data connection; RFC 6384 §12 requires at least 30 s.
const EXPECTED_FOR: Duration = Duration::from_secs(60);
/// Maximum expected data connections: two for each control connection, which may end before.
const MOST_EXPECTED: usize = 8_192;
/// Mappings of a subscriber: a client that fetches small files needs one for each, and each takes it some round trips.
const MAPPINGS: Rate = Rate { rate: 32, burst: 128 };
/// Buckets of this rate. Subscribers with the same keyed hash share one.
const BUCKETS: usize = 4_096;

/// The control connections, and the expected data connections.
pub(crate) struct Assistance<I> {
    pub(crate) connections: Connections,
    pub(super) expected: Expected<I>,
}

/// A mapping with a timeout.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    until: Instant,
    connection: Ends,
    subscriber: Sharer,
}

/// Mappings with a timeout. A control connection has one at a time, as it has one data connection (RFC 959 §3.2), and a subscriber no more
/// than its share.
pub(super) struct Expected<I> {
    mappings: BTreeMap<Inside<I>, Mapping>,
    of_connections: BTreeMap<Ends, Inside<I>>,
    order: BTreeSet<(Instant, Inside<I>)>,
    shares: Shares,
    rates: Rates,
}

impl<I> Assistance<I> {
    /// No control connections are read.
    pub(crate) fn off() -> Self {
        Self { connections: Connections::new(false), expected: Expected::new(1, 0) }
    }

    /// They are.
    pub(crate) fn on(seed: u64) -> Self {
        Self { connections: Connections::new(true), expected: Expected::new(BUCKETS, seed) }
    }
}

/// Makes mappings for a host.
pub(super) struct Mapper<'a, I: InsideKey> {
    pub(super) nat: &'a mut Engine<I>,
    pub(super) expected: &'a mut Expected<I>,
    /// The client's end of the control connection, and both ends as they are outside.
    pub(super) inside: Inside<I>,
    pub(super) ends: Ends,
    /// The client's subscriber.
    pub(super) subscriber: Sharer,
    pub(super) now: Instant,
    pub(super) counters: &'a mut Counters,
}

impl<I: InsideKey> Openings for Mapper<'_, I> {
    /// The binding is kept until its timeout, so that the server can open sessions through it; then its sessions keep it.
    fn open(&mut self, Opening { port, remote }: Opening) -> Option<Endpoint4> {
        let host = self.inside.0.mapped()?.0.address;
        let inside = Inside(I::of_mapped(Inside(Endpoint6::new(host, port)))?);
        let known = self.nat.bound_endpoint(NatProtocol::Tcp, inside);
        let is_kept = |bound: &BoundEndpoint| bound.is_static || bound.is_explicit;
        let is_own = self.expected.mappings.contains_key(&inside);
        if let Some(bound) = known.filter(|bound| is_kept(bound) && !is_own) {
            // Of the administrator, or of the host by PCP.
            return Some(bound.outside.0);
        }
        if !self.expected.rates.admit(self.subscriber, self.now) {
            return None;
        }
        if let Some(earlier) = self.expected.other_of(self.ends, inside) {
            self.expected.forget(earlier);
            self.nat.release_explicit(NatProtocol::Tcp, earlier, self.now, self.counters);
        }
        if !is_own && !self.expected.shares.may_have_more(self.subscriber) {
            return None;
        }
        let filters = vec![RemoteFilter { remote: Prefix4::holding(remote, 32), port: 0 }];
        let wanted = WantedOutside::default();
        let binding = ExplicitBinding { protocol: NatProtocol::Tcp, softwire: None, inside, wanted, filters };
        let bound = self.nat.keep_expected(&binding, self.now, self.counters).ok()?;
        self.counters.ftp_mappings_made += 1;
        let until = self.now + EXPECTED_FOR;
        self.expected.add(inside, Mapping { until, connection: self.ends, subscriber: self.subscriber });
        Some(bound.outside.0)
    }
}

impl<I> Expected<I> {
    fn new(buckets: usize, seed: u64) -> Self {
        Self {
            mappings: BTreeMap::new(),
            of_connections: BTreeMap::new(),
            order: BTreeSet::new(),
            shares: Shares::new(MOST_EXPECTED),
            rates: Rates::new(MAPPINGS, buckets, seed),
        }
    }
}

impl<I: InsideKey> Expected<I> {
    fn add(&mut self, inside: Inside<I>, mapping: Mapping) {
        self.forget(inside);
        let Mapping { until, connection, subscriber } = mapping;
        self.mappings.insert(inside, mapping);
        self.of_connections.insert(connection, inside);
        self.order.insert((until, inside));
        self.shares.add(subscriber);
    }

    pub(super) fn forget(&mut self, inside: Inside<I>) {
        let Some(Mapping { until, connection, subscriber }) = self.mappings.remove(&inside) else { return };
        self.of_connections.remove(&connection);
        self.order.remove(&(until, inside));
        self.shares.remove(subscriber);
    }

    /// The mapping that a connection has for another endpoint.
    fn other_of(&self, ends: Ends, inside: Inside<I>) -> Option<Inside<I>> {
        self.of_connections.get(&ends).copied().filter(|earlier| *earlier != inside)
    }

    /// The next mapping whose time is over.
    pub(super) fn next_over(&mut self, now: Instant) -> Option<Inside<I>> {
        let (_, inside) = self.order.first().copied().filter(|(until, _)| *until <= now)?;
        self.forget(inside);
        Some(inside)
    }
}
