//! Who begins the next transaction, and when: a number of workers that take turns.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::clock;
use crate::load::ends::{join, on};
use crate::load::flood::thread_cpu;
use crate::load::outcome::{Outcome, Pace, ThreadCost, Until};
use crate::load::schedule::Schedule;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A transaction that takes longer is lost. TCP repeats its first segment after one and after three seconds.
pub const TRANSACTION_LIMIT: Duration = Duration::from_secs(4);

/// When transactions begin.
struct Turns {
    next: Mutex<(u64, Option<Schedule>)>,
    end: u64,
    limit: u64,
    pause: Duration,
}

/// A transaction that is to be done now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Its number among all.
    pub number: u64,
}

/// How a transaction went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// How long its connection took to be set up, in nanoseconds.
    pub setup: Option<u64>,
    /// Octets of its requests and answers.
    pub octets: u64,
}

impl Turns {
    fn new(pace: Pace, until: Until, start: u64) -> Result<Self> {
        let (schedule, pause) = match pace {
            Pace::Closed { resend: None, pause, .. } => (None, pause),
            Pace::Closed { resend: Some(_), .. } => {
                return Err(Failure::Unexpected("a transaction is not sent again".to_owned()));
            }
            Pace::Open { per_second, gaps } => (Some(Schedule::new(start, per_second, gaps)), Duration::ZERO),
            Pace::AsFastAsPossible => (None, Duration::ZERO),
        };
        let (end, limit) = match until {
            Until::Time(time) => (start.saturating_add(clock::nanoseconds(time)), u64::MAX),
            Until::Count(count) => (u64::MAX, count),
            Until::CountWithin(count, time) => (start.saturating_add(clock::nanoseconds(time)), count),
            Until::Done => return Err(Failure::Unexpected("transactions need an end".to_owned())),
        };
        Ok(Self { next: Mutex::new((0, schedule)), end, limit, pause })
    }

    /// The number of the next transaction and when it is due, if there is one.
    fn next(&self) -> Option<(u64, u64)> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, schedule) = &mut *next;
        let due = schedule.as_mut().and_then(Iterator::next).unwrap_or_else(clock::now);
        if due >= self.end || *number >= self.limit {
            return None;
        }
        *number += 1;
        Some((*number - 1, due))
    }
}

/// Workers at a closed loop are as many as may be under way; else this many.
pub(super) fn workers_of(pace: Pace, others: u16) -> u16 {
    match pace {
        Pace::Closed { in_flight, .. } => in_flight.max(1),
        Pace::Open { .. } | Pace::AsFastAsPossible => others.max(1),
    }
}

/// Lets workers do transactions in turns on a CPU. `prepare` makes what a worker does them with, in the worker's thread; a transaction that fails
/// is lost.
pub(super) fn take_turns<W: FnMut(Turn) -> io::Result<Done>>(
    (pace, until, workers): (Pace, Until, u16),
    core: Option<usize>,
    prepare: impl Fn(u16) -> Result<W> + Sync,
) -> Result<Outcome> {
    let start = clock::now();
    let turns = Turns::new(pace, until, start)?;
    let one = |number: u16| {
        let mut work = prepare(number)?;
        let (mut outcome, cpu, mut last) = (Outcome::default(), thread_cpu(), start);
        clock::sleep_exactly();
        while let Some((number, due)) = turns.next() {
            interrupt::check()?;
            clock::sleep_until(due);
            let sent = clock::now();
            outcome.sent += 1;
            outcome.lateness.saturating_record(sent.saturating_sub(due));
            let done = work(Turn { number });
            let came = clock::now();
            last = came;
            match done {
                Ok(done) => {
                    outcome.answer_due(due, sent, came);
                    outcome.octets += done.octets;
                    done.setup.into_iter().for_each(|time| outcome.setup.saturating_record(time));
                }
                Err(_) => outcome.lost += 1,
            }
            if !turns.pause.is_zero() {
                interrupt::pause(turns.pause)?;
            }
        }
        outcome.took = Duration::from_nanos(last - start);
        outcome.cost = ThreadCost { cpu: thread_cpu().saturating_sub(cpu), ..ThreadCost::default() };
        Ok(outcome)
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> =
            (0..workers).map(|number| scope.spawn(move || on(core, || one(number)))).collect();
        let mut all = Outcome::default();
        for worker in running {
            all.add(&join(worker)?);
        }
        Ok(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::Gaps;

    fn closed(in_flight: u16) -> Pace {
        Pace::Closed { in_flight, pause: Duration::ZERO, resend: None }
    }

    #[test]
    fn workers_share_the_turns_and_what_fails_is_lost() {
        let setup = (closed(3), Until::Count(100), 3);
        let done = |turn: Turn| match turn.number {
            7 => Err(io::Error::from(io::ErrorKind::TimedOut)),
            _ => Ok(Done { setup: Some(5), octets: 2 }),
        };
        let outcome = take_turns(setup, None, |_| Ok(done)).unwrap();
        assert_eq!((outcome.sent, outcome.answered, outcome.lost), (100, 99, 1));
        assert_eq!((outcome.octets, outcome.setup.len(), outcome.setup.max()), (198, 99, 5));
    }

    #[test]
    fn a_worker_that_is_held_up_makes_later_transactions_late() {
        let even = Pace::Open { per_second: 1_000.0, gaps: Gaps::Even };
        let slow = |turn: Turn| {
            if turn.number == 10 {
                std::thread::sleep(Duration::from_millis(30));
            }
            Ok(Done::default())
        };
        let outcome = take_turns((even, Until::Count(60), 1), None, |_| Ok(slow)).unwrap();
        assert!(
            outcome.lateness.max() >= 28_000_000 && outcome.latency.count_between(15_000_000, 1 << 40) >= 12
        );
        assert!(outcome.took >= Duration::from_millis(59));
    }

    #[test]
    fn a_count_that_is_not_reached_ends_with_its_time() {
        let until = Until::CountWithin(1_000, Duration::from_millis(50));
        let slow = |_| {
            std::thread::sleep(Duration::from_millis(20));
            Err(io::Error::from(io::ErrorKind::TimedOut))
        };
        let outcome = take_turns((closed(1), until, 1), None, |_| Ok(slow)).unwrap();
        assert!((1..=3).contains(&outcome.sent) && outcome.lost == outcome.sent, "{}", outcome.sent);
        let until = Until::CountWithin(5, Duration::from_secs(60));
        let outcome = take_turns((closed(1), until, 1), None, |_| Ok(|_| Ok(Done::default()))).unwrap();
        assert_eq!(outcome.answered, 5);
    }

    #[test]
    fn a_load_without_an_end_is_refused() {
        assert!(take_turns((closed(1), Until::Done, 1), None, |_| Ok(|_| Ok(Done::default()))).is_err());
    }
}
