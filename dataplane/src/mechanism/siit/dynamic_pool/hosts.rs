//! The hosts' records: 32 octets each, in a slab, chained as their state wants it.
//!
//! A live host is in one bucket of the release wheel. A remembered one is in a list whose head has been silent longest.

/// Index of a record.
pub(super) type HostId = u32;

/// No record.
pub(super) const NONE: HostId = u32::MAX;

/// In place of a predecessor: the host is live.
const LIVE: u32 = u32::MAX - 1;
/// In place of a predecessor: there is no host in this record.
const VACANT: u32 = u32::MAX - 2;

struct Host {
    address6: [u64; 2],
    /// Number of its IPv4 address in the worker's part of the pool.
    number: u32,
    /// When it was heard last, in seconds.
    seen: u32,
    next: HostId,
    /// The predecessor in the list of remembered hosts, `NONE` for its head; or `LIVE`, or `VACANT`.
    prev: u32,
}

/// The records.
pub(super) struct Hosts {
    records: Vec<Host>,
    max: usize,
    vacant: HostId,
    oldest: HostId,
    newest: HostId,
    live: u32,
    remembered: u32,
}

impl Hosts {
    /// Room for `most` hosts, allocated as needed.
    pub(super) fn new(max: u32) -> Self {
        Self {
            records: Vec::with_capacity(max as usize),
            max: max as usize,
            vacant: NONE,
            oldest: NONE,
            newest: NONE,
            live: 0,
            remembered: 0,
        }
    }

    pub(super) const fn live(&self) -> u32 {
        self.live
    }

    pub(super) const fn remembered(&self) -> u32 {
        self.remembered
    }

    /// Whether there is room for another host.
    pub(super) fn has_room(&self) -> bool {
        self.vacant != NONE || self.records.len() < self.max
    }

    /// How many records there are, vacant ones included.
    pub(super) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    #[inline]
    pub(super) fn address6(&self, id: HostId) -> u128 {
        let [high, low] = self.records[id as usize].address6;
        u128::from(high) << 64 | u128::from(low)
    }

    #[inline]
    pub(super) fn number(&self, id: HostId) -> u32 {
        self.records[id as usize].number
    }

    #[inline]
    pub(super) fn seen(&self, id: HostId) -> u32 {
        self.records[id as usize].seen
    }

    #[inline]
    pub(super) fn is_live(&self, id: HostId) -> bool {
        self.records[id as usize].prev == LIVE
    }

    pub(super) fn is_vacant(&self, id: HostId) -> bool {
        self.records[id as usize].prev == VACANT
    }

    /// The host was heard; it is live, or becomes it by [`Self::revive`].
    #[inline]
    pub(super) fn touch(&mut self, id: HostId, second: u32) {
        self.records[id as usize].seen = second;
    }

    /// The next record in the wheel's bucket.
    pub(super) fn next(&self, id: HostId) -> HostId {
        self.records[id as usize].next
    }

    /// Chains a live record before another in the wheel's bucket.
    pub(super) fn chain(&mut self, id: HostId, next: HostId) {
        self.records[id as usize].next = next;
    }

    /// Makes a record, live, in no chain. The caller has asked [`Self::has_room`].
    pub(super) fn add(&mut self, address6: u128, number: u32, seen: u32) -> HostId {
        let host = Host {
            address6: [(address6 >> 64) as u64, address6 as u64],
            number,
            seen,
            next: NONE,
            prev: LIVE,
        };
        self.live += 1;
        if self.vacant == NONE {
            self.records.push(host);
            return self.records.len() as u32 - 1;
        }
        let id = self.vacant;
        self.vacant = self.records[id as usize].next;
        self.records[id as usize] = host;
        id
    }

    /// A live host, taken from the wheel, is remembered from here on, as the one silent for the shortest time.
    pub(super) fn remember(&mut self, id: HostId) {
        self.live -= 1;
        self.remembered += 1;
        let newest = self.newest;
        let record = &mut self.records[id as usize];
        record.prev = newest;
        record.next = NONE;
        self.newest = id;
        if newest == NONE {
            self.oldest = id;
        } else {
            self.records[newest as usize].next = id;
        }
    }

    /// A remembered host is live again, in no chain.
    pub(super) fn revive(&mut self, id: HostId) {
        let (prev, next) = (self.records[id as usize].prev, self.records[id as usize].next);
        if prev == NONE {
            self.oldest = next;
        } else {
            self.records[prev as usize].next = next;
        }
        if next == NONE {
            self.newest = prev;
        } else {
            self.records[next as usize].prev = prev;
        }
        self.records[id as usize].prev = LIVE;
        self.remembered -= 1;
        self.live += 1;
    }

    /// The remembered host that has been silent longest.
    pub(super) fn oldest(&self) -> Option<HostId> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Removes the record of a remembered host.
    pub(super) fn forget(&mut self, id: HostId) {
        self.revive(id);
        self.live -= 1;
        let vacant = self.vacant;
        let record = &mut self.records[id as usize];
        record.prev = VACANT;
        record.next = vacant;
        self.vacant = id;
    }

    /// Octets of memory, when all of it has been touched.
    pub(super) fn memory(&self) -> usize {
        self.records.capacity() * size_of::<Host>()
    }
}
