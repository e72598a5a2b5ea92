//! Quarantined ports (RFC 6888 REQ-8): a port that was an inside host's is not another subscriber's for a while, so that late answers
//! do not reach the wrong host.
//!
//! ```text
//!     first to leave                              last to leave
//!     udp   ──▶ ■ ──▶ ■ ──▶ ■ ──▶ ■               by time, for each protocol and range of ports
//!               │           │
//!     192.0.2.1 ■ ────────▶ ■                     the same entries, for each outside address
//! ```
//!
//! The pool takes a quarantined port for one in use. When no port is left, a quarantined one is given early: one of the same subscriber if there
//! is one among the first, else the first.

use super::growing_index::GrowingIndex;
use super::inside_key::address_word;
use super::keyed::{Purpose, TupleHash};
use super::pool::PoolSlot;
use super::port_plane::PortRange;
use super::protocol::NatProtocol;
use super::sides::Outside;
use super::slab::{NONE, Slab};
use sixway_wire::Endpoint4;

/// Entries that are examined for one of the same subscriber.
const EXAMINED: usize = 64;

/// The same with those at addresses that are being drained.
const EXAMINED_WITH_BARRED: usize = 1_024;

/// The subscriber of the port.
pub(super) type Key = (NatProtocol, Outside<Endpoint4>);

/// The subscriber that had the port, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FormerOwner(u32);

impl FormerOwner {
    /// Of a port of an earlier process.
    pub(super) const UNKNOWN: Self = Self(0);

    /// The subscriber with this hash.
    pub(super) const fn hashed(tag: u32) -> Self {
        Self(if tag == 0 { 1 } else { tag })
    }
}

/// A port that may be given early, for a host's inside port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) protocol: NatProtocol,
    pub(super) inside_port: u16,
    pub(super) owner: FormerOwner,
    /// The host's outside address; `None`: any.
    pub(super) at: Option<PoolSlot>,
}

/// A port given early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Early {
    pub(super) slot: PoolSlot,
    pub(super) outside: Outside<Endpoint4>,
    /// Whether it was the same subscriber's.
    pub(super) was_own: bool,
}

/// Neighbours in a list.
#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
}

/// A port that has left the quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Released {
    pub(super) key: Key,
    pub(super) slot: PoolSlot,
    /// Whose it was.
    pub(super) owner: FormerOwner,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    key: Key,
    slot: PoolSlot,
    owner: FormerOwner,
    /// The second in which it expires.
    until: u32,
    /// By time, and at its address.
    links: [Links; 2],
}

impl Held {
    const fn released(&self) -> Released {
        Released { key: self.key, slot: self.slot, owner: self.owner }
    }
}

/// The lists that an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum List {
    Time = 0,
    Address = 1,
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
    count: u32,
}

const EMPTY: Ends = Ends { first: NONE, last: NONE, count: 0 };

/// Each protocol has one for each range of ports.
const LISTS: usize = 3 * PortRange::ALL.len();

/// The list of a protocol's ports of a range.
const fn number(protocol: NatProtocol, range: PortRange) -> usize {
    protocol as usize * PortRange::ALL.len() + range as usize
}

/// The list of a port.
const fn number_of((protocol, outside): Key) -> usize {
    number(protocol, PortRange::of(outside.0.port))
}

/// The ports in quarantine, by protocol in the order in which they leave it.
#[derive(Clone, Debug)]
pub(super) struct Quarantine {
    held: Slab<Held>,
    by_key: GrowingIndex,
    hash: TupleHash,
    by_time: [Ends; LISTS],
    /// By outside address.
    by_address: Vec<[Ends; LISTS]>,
}

impl Quarantine {
    /// A quarantine for `most` ports.
    pub(super) fn new(most: u32, seed: [u64; 2]) -> Self {
        Self {
            held: Slab::new(most),
            by_key: GrowingIndex::new(most),
            hash: TupleHash::new(seed, Purpose::Quarantine),
            by_time: [EMPTY; LISTS],
            by_address: Vec::new(),
        }
    }

    /// Whether there is no room left.
    pub(super) fn is_full(&self) -> bool {
        self.held.is_full()
    }

    /// Number of ports.
    pub(super) fn len(&self) -> usize {
        self.held.len() as usize
    }

    fn tag(&self, (protocol, outside): Key) -> u32 {
        self.hash.pair(address_word(outside.0.address), u64::from(outside.0.port) << 8 | protocol as u64)
    }

    fn find(&self, key: Key) -> Option<u32> {
        self.by_key.find(self.tag(key), |at| self.held[at].key == key)
    }

    /// The subscriber that had a port.
    pub(super) fn owner(&self, key: Key) -> Option<FormerOwner> {
        self.find(key).map(|at| self.held[at].owner)
    }

    /// Keeps a port until this second, or until those of its list that came before have left. Whether there was room.
    pub(super) fn insert(&mut self, key: Key, slot: PoolSlot, owner: FormerOwner, until: u32) -> bool {
        let last = self.by_time[number_of(key)].last;
        let until = if last == NONE { until } else { until.max(self.held[last].until) };
        let links = [Links { next: NONE, previous: NONE }; 2];
        let Some(at) = self.held.insert(Held { key, slot, owner, until, links }) else { return false };
        self.by_key.insert(self.tag(key), at);
        if self.by_address.len() <= slot.0 as usize {
            self.by_address.resize(slot.0 as usize + 1, [EMPTY; LISTS]);
        }
        self.append(List::Time, at);
        self.append(List::Address, at);
        true
    }

    /// Lets a port go before its time; `None`: it is not here.
    pub(super) fn remove(&mut self, key: Key) -> Option<Released> {
        let at = self.find(key)?;
        Some(self.take(at).released())
    }

    /// Lets a port go before its time if it is of this process, or if it may be of an earlier one; whose it was.
    pub(super) fn remove_own(&mut self, key: Key, may_be_unknown: bool) -> Option<FormerOwner> {
        let is_own = |at: &u32| may_be_unknown || self.held[*at].owner != FormerOwner::UNKNOWN;
        let at = self.find(key).filter(is_own)?;
        Some(self.take(at).owner)
    }

    /// Releases a port that has expired.
    pub(super) fn pop(&mut self, second: u32) -> Option<Released> {
        let is_over = |ends: &&Ends| ends.first != NONE && self.held[ends.first].until <= second;
        let first = self.by_time.iter().find(is_over)?.first;
        Some(self.take(first).released())
    }

    /// Releases the port that expires next.
    pub(super) fn pop_first(&mut self) -> Option<Released> {
        let firsts = self.by_time.iter().map(|ends| ends.first).filter(|first| *first != NONE);
        let first = firsts.min_by_key(|first| self.held[*first].until)?;
        Some(self.take(first).released())
    }

    /// Number of ports of a protocol in these ranges at an outside address.
    pub(super) fn at(&self, slot: PoolSlot, protocol: NatProtocol, ranges: &[PortRange]) -> u32 {
        let count =
            |ends: &[Ends; LISTS]| ranges.iter().map(|range| ends[number(protocol, *range)].count).sum();
        self.by_address.get(slot.0 as usize).map_or(0, count)
    }

    /// Number of ports of a protocol in these ranges.
    pub(super) fn of(&self, protocol: NatProtocol, ranges: &[PortRange]) -> u32 {
        ranges.iter().map(|range| self.by_time[number(protocol, *range)].count).sum()
    }

    /// Gives a port early, at an address that is not barred. It stays taken in the pool.
    pub(super) fn give(&mut self, wanted: Wanted, is_barred: impl Fn(PoolSlot) -> bool) -> Option<Early> {
        let (list, lists) = match wanted.at {
            Some(slot) => (List::Address, self.by_address.get(slot.0 as usize)?),
            None => (List::Time, &self.by_time),
        };
        let ranges = PortRange::preference(wanted.protocol, wanted.inside_port).iter();
        let of_range = |range: &PortRange| {
            self.best(lists[number(wanted.protocol, *range)].first, list, wanted.owner, &is_barred)
        };
        // Its own of any range does no harm, before another's of the inside port's range (RFC 6888 REQ-8, RFC 4787 REQ-3 b).
        let own = ranges.clone().filter_map(of_range).find(|at| self.held[*at].owner == wanted.owner);
        let found = own.or_else(|| ranges.clone().find_map(of_range));
        let held = self.take(found?);
        Some(Early { slot: held.slot, outside: held.key.1, was_own: held.owner == wanted.owner })
    }

    /// Among the first entries of a list, at addresses that are not barred: the first one of an owner, else the very first.
    fn best(
        &self,
        first: u32,
        list: List,
        owner: FormerOwner,
        is_barred: &impl Fn(PoolSlot) -> bool,
    ) -> Option<u32> {
        let (mut at, mut best, mut examined) = (first, None, 0);
        for _ in 0..EXAMINED_WITH_BARRED {
            let Some(held) = self.held.get(at).filter(|_| at != NONE && examined < EXAMINED) else { break };
            if !is_barred(held.slot) {
                if held.owner == owner {
                    return Some(at);
                }
                best = best.or(Some(at));
                examined += 1;
            }
            at = held.links[list as usize].next;
        }
        best
    }

    fn ends(&mut self, list: List, held: &Held) -> &mut Ends {
        let number = number_of(held.key);
        match list {
            List::Time => &mut self.by_time[number],
            List::Address => &mut self.by_address[held.slot.0 as usize][number],
        }
    }

    fn append(&mut self, list: List, at: u32) {
        let held = self.held[at];
        let ends = self.ends(list, &held);
        ends.count += 1;
        let last = std::mem::replace(&mut ends.last, at);
        if last == NONE {
            ends.first = at;
        } else {
            self.held[last].links[list as usize].next = at;
        }
        self.held[at].links[list as usize].previous = last;
    }

    fn take(&mut self, at: u32) -> Held {
        let held = self.held[at];
        self.by_key.remove(self.tag(held.key), at);
        for list in [List::Time, List::Address] {
            let Links { next, previous } = held.links[list as usize];
            self.ends(list, &held).count -= 1;
            if next != NONE {
                self.held[next].links[list as usize].previous = previous;
            } else {
                self.ends(list, &held).last = previous;
            }
            if previous != NONE {
                self.held[previous].links[list as usize].next = next;
            } else {
                self.ends(list, &held).first = next;
            }
        }
        self.held.release(at);
        held
    }

    /// Memory in octets.
    pub(super) fn memory(&self) -> usize {
        self.held.memory() + self.by_key.memory() + self.by_address.capacity() * size_of::<[Ends; LISTS]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: FormerOwner = FormerOwner::hashed(1);
    const TWO: FormerOwner = FormerOwner::hashed(2);

    fn key(port: u16) -> Key {
        (NatProtocol::Udp, Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port)))
    }

    fn wanted(owner: FormerOwner, at: Option<PoolSlot>) -> Wanted {
        Wanted { protocol: NatProtocol::Udp, inside_port: 5_000, owner, at }
    }

    fn ports(quarantine: &mut Quarantine, second: u32) -> Vec<u16> {
        std::iter::from_fn(|| quarantine.pop(second)).map(|it| it.key.1.0.port).collect()
    }

    #[test]
    fn ports_leave_in_the_order_in_which_they_came_and_not_before_their_time() {
        let mut quarantine = Quarantine::new(3, [1, 2]);
        assert!(quarantine.insert(key(1), PoolSlot(0), ONE, 10));
        assert!(quarantine.insert(key(2), PoolSlot(0), ONE, 20));
        assert!(quarantine.insert(key(3), PoolSlot(1), ONE, 15));
        assert!(quarantine.is_full() && !quarantine.insert(key(4), PoolSlot(0), ONE, 30));
        assert_eq!(quarantine.pop(9), None);
        assert_eq!(quarantine.remove(key(1)).map(|it| it.slot), Some(PoolSlot(0)));
        assert_eq!(quarantine.remove(key(1)), None);
        assert_eq!(ports(&mut quarantine, 19), []);
        assert_eq!(ports(&mut quarantine, 20), [2, 3]);
        assert_eq!(quarantine.len(), 0);
    }

    #[test]
    fn the_same_subscriber_has_its_own_port_first_and_else_the_oldest_at_the_address() {
        let mut quarantine = Quarantine::new(10, [1, 2]);
        for (port, slot, owner) in [
            (5_001, 1, TWO),
            (5_002, 0, TWO),
            (80, 0, ONE),
            (5_003, 0, TWO),
            (5_004, 0, ONE),
            (5_005, 0, ONE),
        ] {
            quarantine.insert(key(port), PoolSlot(slot), owner, 10);
        }
        let mut give = |owner, at| {
            quarantine
                .give(wanted(owner, at), |_| false)
                .map(|early| (early.outside.0.port, early.slot.0, early.was_own))
        };
        let here = Some(PoolSlot(0));
        assert_eq!(give(ONE, here), Some((5_004, 0, true)));
        assert_eq!(give(ONE, here), Some((5_005, 0, true)));
        assert_eq!(give(ONE, here), Some((5_002, 0, false)), "a high port gets no well-known one");
        assert_eq!(give(ONE, None), Some((5_001, 1, false)));
        assert_eq!(give(FormerOwner::UNKNOWN, here), Some((5_003, 0, false)));
        assert_eq!(give(ONE, here), None);
        assert_eq!(give(ONE, Some(PoolSlot(9))), None);
        assert_eq!(ports(&mut quarantine, 10), [80]);
    }

    /// A port of its own of the other range does no harm, another subscriber's of the same range may.
    #[test]
    fn the_same_subscribers_port_comes_before_another_ones_of_the_inside_ports_range() {
        let mut quarantine = Quarantine::new(10, [1, 2]);
        for (port, owner) in [(80, TWO), (5_000, TWO), (5_001, ONE)] {
            quarantine.insert(key(port), PoolSlot(0), owner, 10);
        }
        let low = Wanted { inside_port: 90, ..wanted(ONE, None) };
        let mut give = || quarantine.give(low, |_| false).map(|early| (early.outside.0.port, early.was_own));
        assert_eq!([give(), give(), give()], [Some((5_001, true)), Some((80, false)), Some((5_000, false))]);
    }

    #[test]
    fn ports_of_one_range_do_not_hide_those_of_the_other() {
        let mut quarantine = Quarantine::new(1_000, [1, 2]);
        (1..=200).for_each(|port| assert!(quarantine.insert(key(port), PoolSlot(0), TWO, 10)));
        quarantine.insert(key(5_000), PoolSlot(0), TWO, 10);
        quarantine.insert(key(5_001), PoolSlot(0), ONE, 10);
        let high = PortRange::preference(NatProtocol::Udp, 5_000);
        assert_eq!(
            (quarantine.at(PoolSlot(0), NatProtocol::Udp, high), quarantine.of(NatProtocol::Udp, high)),
            (2, 2)
        );
        assert_eq!(quarantine.at(PoolSlot(0), NatProtocol::Udp, &PortRange::ALL), 202);
        let mut give = |at| quarantine.give(wanted(ONE, at), |_| false).map(|early| early.outside.0.port);
        assert_eq!([give(None), give(Some(PoolSlot(0))), give(None)], [Some(5_001), Some(5_000), None]);
    }

    #[test]
    fn a_full_quarantine_lets_the_port_go_whose_time_is_over_next() {
        let mut quarantine = Quarantine::new(3, [1, 2]);
        let tcp = (NatProtocol::Tcp, key(7).1);
        quarantine.insert(key(1), PoolSlot(0), ONE, 20);
        quarantine.insert(tcp, PoolSlot(0), ONE, 10);
        quarantine.insert(key(2), PoolSlot(0), ONE, 30);
        assert_eq!(quarantine.pop_first().map(|it| it.key), Some(tcp));
        assert_eq!(quarantine.pop_first().map(|it| it.key), Some(key(1)));
        assert_eq!(quarantine.pop_first().map(|it| it.key), Some(key(2)));
        assert_eq!(quarantine.pop_first(), None);
    }

    #[test]
    fn the_lists_hold_after_any_order_of_leaving() {
        for leaving in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0u16]] {
            let mut quarantine = Quarantine::new(4, [1, 2]);
            (0..3).for_each(|port| assert!(quarantine.insert(key(5_000 + port), PoolSlot(0), ONE, 10)));
            for port in leaving {
                assert!(quarantine.remove(key(5_000 + port)).is_some());
            }
            quarantine.insert(key(6_000), PoolSlot(0), ONE, 11);
            assert_eq!(
                quarantine.give(wanted(TWO, Some(PoolSlot(0))), |_| false).map(|early| early.outside),
                Some(key(6_000).1)
            );
            assert_eq!(quarantine.pop(100), None);
        }
    }
}
