//! The times at which live hosts may be released: a ring of buckets, each a chain of hosts that were due at its time when they were
//! inserted. Touching a host does not move it; it is put into its true bucket when its old one comes up.

use super::hosts::{HostId, Hosts, NONE};

/// Most buckets; a lifetime that would need more makes buckets of several seconds.
const MAX_BUCKETS: u32 = 1 << 14;

/// The ring.
pub(super) struct ReleaseWheel {
    heads: Vec<HostId>,
    /// A bucket spans two to the power of this many seconds.
    shift: u32,
    /// The last bucket that was opened, by its time.
    opened: u32,
    /// What is left of it.
    open: HostId,
    lifetime: u32,
    /// How many hosts are in it.
    hosts: u32,
}

impl ReleaseWheel {
    /// For hosts that are released after `lifetime` seconds.
    pub(super) fn new(lifetime: u32) -> Self {
        let mut shift = 0;
        while (lifetime >> shift) + 2 > MAX_BUCKETS {
            shift += 1;
        }
        let buckets = ((lifetime >> shift) + 2).next_power_of_two();
        Self { heads: vec![NONE; buckets as usize], shift, opened: 0, open: NONE, lifetime, hosts: 0 }
    }

    /// The time of the bucket in which a host that was heard at `seen` is due.
    fn due(&self, seen: u32) -> u32 {
        let mask = (1u64 << self.shift) - 1;
        ((u64::from(seen) + u64::from(self.lifetime) + mask) >> self.shift) as u32
    }

    /// Puts a live host in that is in no chain.
    pub(super) fn insert(&mut self, id: HostId, hosts: &mut Hosts) {
        if self.hosts == 0 {
            self.opened = self.opened.max(hosts.seen(id) >> self.shift);
        }
        self.hosts += 1;
        let bucket = self.due(hosts.seen(id)) as usize & (self.heads.len() - 1);
        hosts.chain(id, self.heads[bucket]);
        self.heads[bucket] = id;
    }

    /// Takes out the next host that is due at `second`, in the order of their times; looks at no more than `budget` hosts,
    /// and takes that off it.
    pub(super) fn pop(&mut self, second: u32, hosts: &mut Hosts, budget: &mut usize) -> Option<HostId> {
        while *budget > 0 {
            if self.open == NONE {
                self.open_next(second >> self.shift)?;
            }
            *budget -= 1;
            self.hosts -= 1;
            let id = self.open;
            self.open = hosts.next(id);
            if self.due(hosts.seen(id)) <= self.opened {
                return Some(id);
            }
            self.insert(id, hosts);
        }
        None
    }

    /// Opens the next bucket that is not empty, up to the time given; `None` if there is none.
    fn open_next(&mut self, until: u32) -> Option<()> {
        while self.hosts > 0 && self.opened < until {
            self.opened += 1;
            let bucket = self.opened as usize & (self.heads.len() - 1);
            self.open = core::mem::replace(&mut self.heads[bucket], NONE);
            if self.open != NONE {
                return Some(());
            }
        }
        self.opened = self.opened.max(until);
        None
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        self.heads.capacity() * 4
    }
}
