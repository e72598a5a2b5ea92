//! Quarantined ports: after an unclean stop remote hosts may still send to the previous owners.

use super::pool::PoolSlot;
use super::protocol::NatProtocol;
use super::sides::Outside;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// Endpoints in quarantine at a time; further ones are refused, and may be given.
pub const MOST_QUARANTINED: usize = 1 << 20;

/// Whose port it is.
pub(super) type Key = (NatProtocol, Outside<Endpoint4>);

/// Those in quarantine, in the order in which they leave it.
#[derive(Clone, Debug)]
pub(super) struct Quarantine {
    most: usize,
    held: BTreeMap<Key, PoolSlot>,
    /// By the second in which their time is over. What left before its time is also here.
    buckets: BTreeMap<u32, Vec<Key>>,
}

impl Quarantine {
    /// A quarantine for `most` endpoints.
    pub(super) const fn new(most: usize) -> Self {
        Self { most, held: BTreeMap::new(), buckets: BTreeMap::new() }
    }

    /// Whether there is no room left.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= self.most
    }

    /// Number of endpoints.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Keeps an endpoint until this second.
    pub(super) fn insert(&mut self, key: Key, slot: PoolSlot, until: u32) {
        if self.held.insert(key, slot).is_none() {
            self.buckets.entry(until).or_default().push(key);
        }
    }

    /// Lets an endpoint go before its time; `None`: it is not here.
    pub(super) fn remove(&mut self, key: Key) -> Option<PoolSlot> {
        self.held.remove(&key)
    }

    /// Lets the next endpoint go whose time is over.
    pub(super) fn pop(&mut self, second: u32) -> Option<(Key, PoolSlot)> {
        while let Some(mut bucket) = self.buckets.first_entry().filter(|bucket| *bucket.key() <= second) {
            match bucket.get_mut().pop() {
                Some(key) => {
                    if let Some(slot) = self.held.remove(&key) {
                        return Some((key, slot));
                    }
                }
                None => {
                    bucket.remove();
                }
            }
        }
        None
    }

    /// Memory in octets.
    pub(super) fn memory(&self) -> usize {
        self.held.len() * 2 * (size_of::<(Key, PoolSlot)>() + size_of::<Key>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> Key {
        (NatProtocol::Udp, Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port)))
    }

    #[test]
    fn endpoints_leave_in_the_order_of_their_time_and_not_before_it() {
        let mut quarantine = Quarantine::new(3);
        quarantine.insert(key(2), PoolSlot(0), 20);
        quarantine.insert(key(1), PoolSlot(0), 10);
        quarantine.insert(key(3), PoolSlot(0), 10);
        quarantine.insert(key(3), PoolSlot(0), 30);
        assert!(quarantine.is_full());
        assert_eq!(quarantine.pop(9), None);
        assert_eq!(quarantine.remove(key(1)), Some(PoolSlot(0)));
        assert!(!quarantine.is_full());
        assert_eq!(quarantine.pop(15), Some((key(3), PoolSlot(0))));
        assert_eq!(quarantine.pop(15), None);
        assert_eq!(quarantine.pop(100), Some((key(2), PoolSlot(0))));
        assert_eq!((quarantine.pop(100), quarantine.len()), (None, 0));
    }
}
