//! How many mappings subscribers have (RFC 6887 §17.2).

use core::net::IpAddr;
use std::collections::BTreeMap;

/// The numbers, of all and of each subscriber.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    most: u32,
    most_of_subscriber: u32,
    total: u32,
    subscribers: BTreeMap<IpAddr, u32>,
}

/// Why there may not be one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    Total,
    Subscriber,
}

impl Quota {
    pub(super) const fn new(most: u32, most_of_subscriber: u32) -> Self {
        Self { most, most_of_subscriber, total: 0, subscribers: BTreeMap::new() }
    }

    /// How many more a subscriber may have, at least one.
    pub(super) fn left(&self, subscriber: IpAddr) -> Result<u32, Exceeded> {
        let has = self.subscribers.get(&subscriber).copied().unwrap_or_default();
        match (self.most_of_subscriber.saturating_sub(has), self.most.saturating_sub(self.total)) {
            (0, _) => Err(Exceeded::Subscriber),
            (_, 0) => Err(Exceeded::Total),
            (own, all) => Ok(own.min(all)),
        }
    }

    pub(super) fn add(&mut self, subscriber: IpAddr, count: u32) {
        self.total += count;
        *self.subscribers.entry(subscriber).or_default() += count;
    }

    pub(super) fn remove(&mut self, subscriber: IpAddr, count: u32) {
        self.total = self.total.saturating_sub(count);
        if let Some(has) = self.subscribers.get_mut(&subscriber) {
            *has = has.saturating_sub(count);
            if *has == 0 {
                self.subscribers.remove(&subscriber);
            }
        }
    }

    /// All of them.
    pub(super) const fn total(&self) -> u32 {
        self.total
    }
}
