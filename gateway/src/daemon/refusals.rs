//! Subscribers that were refused sessions or bindings because of their limits or shares, for the event log: a record of each in a minute at
//! most, with the number of refusals. Whoever is refused most cannot fill the log with that.

use crate::event_log::Notice;
use crate::view::SubscriberRow;
use std::collections::HashMap;

/// Records at a time, at most.
const RECORDS: usize = 256;

/// What was refused to whom, as far as it was recorded.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    recorded: HashMap<(String, String), u64>,
}

impl Refusals {
    /// The records that are due, those of the most refusals. Rows that have no new refusals have none.
    pub(super) fn due(&mut self, rows: Vec<SubscriberRow>) -> Vec<Notice> {
        let before = std::mem::take(&mut self.recorded);
        let mut due = Vec::new();
        for row in rows.into_iter().filter(|row| row.refused > 0) {
            let key = (row.mechanism, row.subscriber);
            let known = before.get(&key).copied().unwrap_or(0);
            // A subscriber that had no binding in between begins at zero.
            let new = if row.refused >= known { row.refused - known } else { row.refused };
            if new > 0 {
                due.push((new, key.clone()));
            }
            self.recorded.insert(key, row.refused);
        }
        due.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        // What finds no room is in the next record of that subscriber.
        for (new, key) in due.drain(due.len().min(RECORDS)..) {
            self.recorded.entry(key).and_modify(|recorded| *recorded -= new);
        }
        let notice = |(refused, (translator, subscriber)): (u64, (String, String))| Notice::Subscriber {
            translator: translator.into(),
            subscriber: subscriber.into(),
            refused,
        };
        due.into_iter().map(notice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subscriber: &str, refused: u64) -> SubscriberRow {
        SubscriberRow { subscriber: subscriber.into(), refused, ..SubscriberRow::default() }
    }

    fn told(refusals: &mut Refusals, rows: &[(&str, u64)]) -> Vec<(String, u64)> {
        let due = refusals.due(rows.iter().map(|(name, refused)| row(name, *refused)).collect());
        due.iter()
            .map(|notice| match notice {
                Notice::Subscriber { subscriber, refused, .. } => (subscriber.to_string(), *refused),
                Notice::Alarm(_) => panic!("{notice:?}"),
            })
            .collect()
    }

    #[test]
    fn a_subscriber_has_a_record_of_what_is_new() {
        let mut refusals = Refusals::default();
        let one = |name: &str, count| vec![(name.to_owned(), count)];
        assert_eq!(told(&mut refusals, &[("a", 7), ("b", 0)]), one("a", 7));
        assert_eq!(told(&mut refusals, &[("a", 7), ("b", 0)]), []);
        assert_eq!(told(&mut refusals, &[("a", 9), ("b", 5)]), [("b".to_owned(), 5), ("a".to_owned(), 2)]);
        assert_eq!(told(&mut refusals, &[("a", 1), ("b", 5)]), one("a", 1), "it began again");
    }

    #[test]
    fn many_that_are_refused_have_a_bounded_number_of_records_and_nothing_is_forgotten() {
        let mut refusals = Refusals::default();
        let names: Vec<String> = (0..600).map(|n| format!("{n:03}")).collect();
        let rows: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let mut counts: Vec<usize> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..4 {
            let told = told(&mut refusals, &rows);
            counts.push(told.len());
            seen.extend(told.into_iter().map(|(name, _)| name));
        }
        assert_eq!((counts, seen.len()), (vec![256, 256, 88, 0], 600));
    }
}
