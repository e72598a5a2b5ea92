//! Sends what is due: each packet at its time, or immediately if that has passed. A delayed sender sends all packets that it has missed,
//! and the delay is part of their latency, which counts from the due time.

use super::clock;
use super::outcome::{Histogram, Pace, Until, histogram};
use super::schedule::Schedule;
use crate::failure::{Failure, Result};
use crate::interrupt;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often is looked for signals, in nanoseconds.
const LOOK: u64 = 100_000_000;

/// What a sender has done.
pub(super) struct Sent {
    /// What it has sent.
    pub count: u64,
    /// What the kernel refused.
    pub refused: u64,
    /// How late it was.
    pub lateness: Histogram,
    /// When the first one was due, and when the last one was sent.
    pub first: u64,
    pub last: u64,
}

/// What is to be sent: its number, when it was due and when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub sequence: u32,
    pub due: u64,
    pub now: u64,
}

/// Calls `send` for each packet, until `stop` is set; it says whether the kernel took it.
pub(super) fn pace(
    stop: &AtomicBool,
    pace: Pace,
    until: Until,
    mut send: impl FnMut(Due) -> Result<bool>,
) -> Result<Sent> {
    clock::sleep_exactly();
    let first = clock::now();
    let mut schedule = match pace {
        Pace::Open { per_second, gaps } => Some(Schedule::new(first, per_second, gaps)),
        Pace::AsFastAsPossible => None,
        Pace::Closed { .. } => {
            return Err(Failure::Unexpected(format!("an open loop does not run at {pace:?}")));
        }
    };
    let (end, limit) = match until {
        Until::Time(time) => (first.saturating_add(clock::nanoseconds(time)), u64::from(u32::MAX)),
        Until::Count(count) => (u64::MAX, count.min(u64::from(u32::MAX))),
        Until::CountWithin(count, time) => {
            (first.saturating_add(clock::nanoseconds(time)), count.min(u64::from(u32::MAX)))
        }
        Until::Done => return Err(Failure::Unexpected("a stream needs an end".to_owned())),
    };
    let mut sent = Sent { count: 0, refused: 0, lateness: histogram(), first, last: first };
    let mut looked = first;
    for sequence in 0..limit as u32 {
        let mut now = clock::now();
        let due = schedule.as_mut().and_then(Iterator::next).unwrap_or(now);
        if due >= end || stop.load(Ordering::Relaxed) {
            break;
        }
        while now < due && !stop.load(Ordering::Relaxed) {
            // Long gaps are slept in parts, for a signal ends a sleep only in the thread that gets it.
            clock::sleep_until(due.min(now + LOOK));
            now = clock::now();
            interrupt::check()?;
        }
        if now - looked >= LOOK {
            looked = now;
            interrupt::check()?;
        }
        sent.lateness.saturating_record(now - due);
        match send(Due { sequence, due, now })? {
            true => sent.count += 1,
            false => sent.refused += 1,
        }
        sent.last = now;
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::Gaps;
    use std::time::Duration;

    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn a_stalled_sender_makes_good_for_all_that_it_has_missed() {
        let even = Pace::Open { per_second: 1_000.0, gaps: Gaps::Even };
        let mut dues = Vec::new();
        let sent = pace(&NEVER, even, Until::Time(Duration::from_millis(100)), |due| {
            if due.sequence == 20 {
                std::thread::sleep(Duration::from_millis(30));
            }
            dues.push(due);
            Ok(due.sequence != 3)
        })
        .unwrap();
        assert_eq!((sent.count, sent.refused, dues.len()), (99, 1, 100));
        assert!(dues.iter().all(|due| due.due - sent.first == u64::from(due.sequence) * 1_000_000));
        assert!(dues.iter().all(|due| due.now >= due.due));
        assert!(sent.lateness.max() >= 28_000_000, "packet 21 was due 29 ms before the stall ended");
    }

    #[test]
    fn a_count_ends_a_load_and_other_paces_are_refused() {
        let count = pace(&NEVER, Pace::AsFastAsPossible, Until::Count(7), |_| Ok(true)).unwrap().count;
        assert_eq!(count, 7);
        let closed = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };
        assert!(pace(&NEVER, closed, Until::Count(1), |_| Ok(true)).is_err());
        assert!(pace(&NEVER, Pace::AsFastAsPossible, Until::Done, |_| Ok(true)).is_err());
    }
}
