//! Subscribers that were refused sessions or bindings because of their limits or shares, for the event log: a record of each in a minute at
//! most, with the number of refusals. So a subscriber that is refused often cannot fill the log.
//!
//! All subscribers are examined, page by page. Only those that have had a record are remembered, as long as they exist: 256 more with each
//! look at most.

use crate::worker::Position;
use sixway_dataplane::nat::SubscriberRow;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

/// Records of a look, at most.
const RECORDS: usize = 256;
/// Between the beginnings of two looks.
const PAUSE: Duration = Duration::from_secs(60);

/// A subscriber: its worker, its mechanism and its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Refused {
    pub(super) worker: usize,
    pub(super) mechanism: u16,
    pub(super) address: Ipv6Addr,
    pub(super) bits: u8,
}

/// The records of a subscriber.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    refused: u64,
    /// The last look that found it.
    look: u64,
    /// The look of its last record.
    at: u64,
}

/// A subscriber with new refusals.
#[derive(Debug)]
struct Due {
    who: Refused,
    /// New refusals.
    new: u64,
    /// How many are recorded once these have a record.
    refused: u64,
    /// The look of its last record; 0: it has none.
    recorded_at: u64,
}

/// Refusals by subscriber, as far as they were recorded.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    recorded: HashMap<Refused, Recorded>,
    /// How many looks there were.
    look: u64,
    /// When the last one began.
    began: Option<Instant>,
    /// Where the present pass continues: the worker, and the place in its tables.
    at: Option<(usize, Position)>,
    /// Those that are to have a record, so far.
    due: Vec<Due>,
    /// Whether a subscriber was refused since the last pass began, or some did not fit into it.
    is_wanted: bool,
}

impl Refusals {
    /// A subscriber was refused.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Where to continue: a pass is in progress, or a new one begins.
    pub(super) fn next(&mut self, now: Instant) -> Option<(usize, Position)> {
        let may_begin = self.is_wanted && self.began.is_none_or(|began| now.duration_since(began) >= PAUSE);
        if self.at.is_none() && may_begin {
            (self.is_wanted, self.began, self.at) = (false, Some(now), Some((0, Position::default())));
            self.look += 1;
        }
        self.at
    }

    /// A subscriber of a worker.
    pub(super) fn see(&mut self, worker: usize, mechanism: u16, row: &SubscriberRow) {
        if row.refused == 0 {
            return;
        }
        let who = Refused { worker, mechanism, address: row.address, bits: row.bits };
        let (known, recorded_at) = self.recorded.get_mut(&who).map_or((0, 0), |recorded| {
            recorded.look = self.look;
            // One that had no binding in between begins at zero.
            if row.refused < recorded.refused {
                recorded.refused = 0;
            }
            (recorded.refused, recorded.at)
        });
        if row.refused > known {
            let (new, refused) = (row.refused - known, row.refused);
            self.due.push(Due { who, new, refused, recorded_at });
            if self.due.len() >= 2 * RECORDS {
                self.keep_most();
            }
        }
    }

    /// Refusals without room are in a later record: subscribers with the oldest record come first, so that some with very many refusals do not
    /// keep
    /// the others out.
    fn keep_most(&mut self) {
        self.due.sort_by(|one, other| {
            let by_number = other.new.cmp(&one.new).then_with(|| one.who.cmp(&other.who));
            one.recorded_at.cmp(&other.recorded_at).then(by_number)
        });
        self.is_wanted |= self.due.len() > RECORDS;
        self.due.truncate(RECORDS);
    }

    /// The pass continues there.
    pub(super) fn go_on(&mut self, at: (usize, Position)) {
        self.at = Some(at);
    }

    /// The look is complete: the records.
    pub(super) fn end(&mut self) -> Vec<(Refused, u64)> {
        self.at = None;
        self.keep_most();
        let look = self.look;
        self.recorded.retain(|_, recorded| recorded.look == look);
        let mut records = Vec::with_capacity(self.due.len());
        for Due { who, new, refused, .. } in self.due.drain(..) {
            self.recorded.insert(who, Recorded { refused, look, at: look });
            records.push((who, new));
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::nat::RowBlocks;
    use std::collections::BTreeMap;

    fn row(number: u32, refused: u64) -> SubscriberRow {
        let address = Ipv6Addr::from_bits(number.into());
        let (bindings, blocks) = ([0; 3], RowBlocks::default());
        let (hosts, sessions, from_outside, made, per_second) = (1, 0, 0, 0, 0);
        SubscriberRow {
            address,
            bits: 128,
            hosts,
            bindings,
            sessions,
            from_outside,
            made,
            per_second,
            refused,
            blocks,
        }
    }

    fn minute(number: u64) -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now) + PAUSE * u32::try_from(number).unwrap()
    }

    /// The records of a whole pass, by the numbers of the subscribers.
    fn told(refusals: &mut Refusals, at: u64, rows: impl IntoIterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
        refusals.want();
        assert_eq!(refusals.next(minute(at)), Some((0, Position::default())));
        rows.into_iter().for_each(|(number, refused)| refusals.see(0, 0, &row(number, refused)));
        let records = refusals.end().into_iter();
        records.map(|(who, new)| (u32::try_from(who.address.to_bits()).unwrap(), new)).collect()
    }

    #[test]
    fn a_subscriber_has_a_record_of_what_is_new() {
        let mut refusals = Refusals::default();
        assert_eq!(told(&mut refusals, 0, [(1, 7), (2, 0)]), [(1, 7)]);
        assert_eq!(told(&mut refusals, 1, [(1, 7), (2, 0)]), []);
        assert_eq!(told(&mut refusals, 2, [(1, 9), (2, 5)]), [(2, 5), (1, 2)]);
        assert_eq!(told(&mut refusals, 3, [(1, 1), (2, 5)]), [(1, 1)], "it began again");
        assert_eq!(told(&mut refusals, 4, [(2, 5)]), [], "it is gone");
        assert_eq!(told(&mut refusals, 5, [(1, 3), (2, 5)]), [(1, 3)], "another one with its prefix");
    }

    #[test]
    fn the_same_prefix_at_two_workers_or_mechanisms_is_counted_for_each() {
        let mut refusals = Refusals::default();
        for (at, expected) in [(0, 3), (1, 0)] {
            refusals.want();
            refusals.next(minute(at));
            for (worker, mechanism, refused) in [(0, 0, 7), (0, 1, 5), (1, 0, 3)] {
                refusals.see(worker, mechanism, &row(1, refused));
            }
            assert_eq!(refusals.end().len(), expected);
        }
    }

    /// However many are refused, the numbers of all records of a subscriber add up to its refusals.
    #[test]
    fn ten_thousand_that_are_refused_have_a_bounded_number_of_records_and_nothing_is_missing_or_doubled() {
        let mut refusals = Refusals::default();
        let mut recorded = BTreeMap::new();
        let refused = |number: u32| u64::from(number % 97 + 1);
        let looks = 10_000 / RECORDS as u64 + 2;
        for at in 0..looks {
            // One more is refused again and again.
            let busy = std::iter::once((10_000, (at + 1) * 1_000));
            let told = told(&mut refusals, at, (0..10_000).map(|n| (n, refused(n))).chain(busy));
            assert!(told.len() <= RECORDS, "{at}");
            told.into_iter().for_each(|(number, new)| *recorded.entry(number).or_insert(0) += new);
        }
        assert!((0..10_000).all(|number| recorded.get(&number) == Some(&refused(number))));
        assert_eq!(recorded.get(&10_000), Some(&(looks * 1_000)));
    }

    #[test]
    fn subscribers_with_very_many_refusals_do_not_keep_the_others_out() {
        let mut refusals = Refusals::default();
        let rows = |at: u64| (0..300).map(move |number| (number, (at + 1) * 1_000)).chain([(300, 50)]);
        assert!(!told(&mut refusals, 0, rows(0)).contains(&(300, 50)));
        assert!(told(&mut refusals, 1, rows(1)).contains(&(300, 50)));
    }

    #[test]
    fn a_look_begins_once_in_a_minute_and_again_for_what_found_no_room() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.next(minute(0)), None, "nobody was refused");
        assert_eq!(told(&mut refusals, 0, (0..300).map(|n| (n, 1))).len(), RECORDS);
        assert_eq!(refusals.next(minute(1) - Duration::from_millis(1)), None);
        assert!(refusals.next(minute(1)).is_some());
        refusals.go_on((1, Position { mechanism: 0, slot: 7 }));
        assert_eq!(refusals.next(minute(1)), Some((1, Position { mechanism: 0, slot: 7 })), "under way");
        (0..300).for_each(|n| refusals.see(0, 0, &row(n, 1)));
        assert_eq!(refusals.end().len(), 300 - RECORDS);
        assert_eq!(refusals.next(minute(2)), None, "all have a record");
    }
}
