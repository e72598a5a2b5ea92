//! Shares of subscribers in a table, so that a subscriber that takes as many entries as it can leaves some to each other one.

use std::collections::BTreeMap;

/// A subscriber has at most this many.
const MOST_OF_SUBSCRIBER: usize = 64;
/// And at most this part of the remaining entries, but one in any case (the dynamic thresholds of Choudhury and Hahne, 1998).
const PART_OF_LEFT: usize = 8;

/// A subscriber, as the NAT knows it.
pub(crate) type Sharer = [u64; 2];

/// The number of entries of each subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    most: usize,
    all: usize,
    of_subscribers: BTreeMap<Sharer, usize>,
}

impl Shares {
    /// No subscriber has any of `most` entries.
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, all: 0, of_subscribers: BTreeMap::new() }
    }

    /// Whether a subscriber may have one more.
    pub(crate) fn may_have_more(&self, subscriber: Sharer) -> bool {
        let left = self.most.saturating_sub(self.all);
        let most = (left / PART_OF_LEFT).clamp(1, MOST_OF_SUBSCRIBER);
        left > 0 && self.of_subscribers.get(&subscriber).is_none_or(|has| *has < most)
    }

    /// A subscriber has one more.
    pub(crate) fn add(&mut self, subscriber: Sharer) {
        self.all += 1;
        *self.of_subscribers.entry(subscriber).or_default() += 1;
    }

    /// A subscriber has one less.
    pub(crate) fn remove(&mut self, subscriber: Sharer) {
        let Some(has) = self.of_subscribers.get_mut(&subscriber) else { return };
        self.all -= 1;
        *has -= 1;
        if *has == 0 {
            self.of_subscribers.remove(&subscriber);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(shares: &mut Shares, subscriber: Sharer) -> usize {
        (0..1_000)
            .take_while(|_| {
                let may = shares.may_have_more(subscriber);
                if may {
                    shares.add(subscriber);
                }
                may
            })
            .count()
    }

    #[test]
    fn a_subscriber_that_takes_all_it_can_leaves_some_to_each_other() {
        let mut shares = Shares::new(1_024);
        assert_eq!([takes(&mut shares, [0, 1]), takes(&mut shares, [0, 2])], [64, 64]);
        // Each has an eighth of what is left at most, and the last ones have one each.
        let rest: Vec<usize> = (3..2_000).map(|other| takes(&mut shares, [0, other])).collect();
        assert!(rest.is_sorted_by(|before, after| before >= after));
        assert_eq!(rest.iter().sum::<usize>(), 1_024 - 128);
        assert!(rest.iter().filter(|has| **has > 0).count() > 20);
        shares.remove([0, 1]);
        assert_eq!(takes(&mut shares, [1, 0]), 1);
        (0..63).for_each(|_| shares.remove([0, 1]));
        shares.remove([0, 1]);
        assert_eq!((shares.all, shares.of_subscribers.contains_key(&[0, 1])), (1_024 - 63, false));
    }
}
