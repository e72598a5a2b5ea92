//! Reasons to doubt an answer: events that are missing, and a clock that was set.

use crate::event_log::index::{LOST, STEPPED};
use crate::event_log::record::{Event, Record};
use crate::event_log::search::Log;
use std::io;

/// Times at which the clock was set that are examined, before a time and after it.
const MOST_STEPS: usize = 8;
/// A clock that was set less than this before or after is a reason for doubt, in microseconds.
const NEAR: u64 = 2_000_000;

/// Whether events between two times are missing; a loss is recorded after its gap.
pub(super) fn are_missing(log: &Log, since: u64, until: Option<u64>) -> io::Result<bool> {
    let lost = log.first_after(LOST, since)?;
    Ok(lost.is_some_and(|lost| until.is_none_or(|until| lost.micros <= until)))
}

/// Whether the clock was set at about this time: it is between the old and the new time.
pub(super) fn was_set(log: &Log, time: u64) -> io::Result<bool> {
    let is_between = |micros: u64, by: i64| {
        let before = micros.saturating_add_signed(by.saturating_neg());
        let (first, last) = (before.min(micros), before.max(micros));
        (first.saturating_sub(NEAR)..=last.saturating_add(NEAR)).contains(&time)
    };
    let mut next = time.saturating_sub(NEAR + 1);
    for _ in 0..MOST_STEPS {
        let Some(Record { micros, event: Event::Stepped(by) }) = log.first_after(STEPPED, next)? else {
            break;
        };
        if is_between(micros, by) {
            return Ok(true);
        }
        next = micros;
    }
    let mut last = Some(time.saturating_add(NEAR));
    for _ in 0..MOST_STEPS {
        let Some(until) = last else { break };
        let Some(Record { micros, event: Event::Stepped(by) }) = log.last_until(STEPPED, until)? else {
            break;
        };
        if is_between(micros, by) {
            return Ok(true);
        }
        last = micros.checked_sub(1);
    }
    Ok(false)
}
