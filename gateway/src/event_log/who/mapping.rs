//! How translators allocated port blocks at a given time, from the records.

use crate::event_log::index::{MAPPING, STARTED};
use crate::event_log::port_block::PortMapping;
use crate::event_log::record::{Event, Record};
use crate::event_log::search::Log;
use sixway_wire::Endpoint4;
use std::io;
use std::ops::ControlFlow;

/// Translators whose records of a time are examined: more than there may be of NAT64s, NAT44s and realms together.
const MOST_TRANSLATORS: usize = 192;
/// Processes through which the beginning of a mapping is followed back.
const MOST_PROCESSES: usize = 64;

/// How ports of an outside address were given at a time, and the time of the last record about it.
pub(super) fn at(log: &Log, outside: Endpoint4, at: u64) -> io::Result<Option<(u64, PortMapping)>> {
    let began = log.last_until(STARTED, at)?.map_or(0, |record| record.micros);
    let mut found = None;
    each(log, at, began, |micros, mapping| {
        let holds = mapping.holds(outside);
        // Whose pool has the address is not known if the list is cut.
        if holds || mapping.is_cut && found.is_none() {
            found = Some((micros, mapping));
        }
        if holds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

/// Passes on the mappings of the log at this time, the latest first, that are not older than `began`.
fn each(
    log: &Log,
    at: u64,
    began: u64,
    mut tell: impl FnMut(u64, PortMapping) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut at = at;
    for _ in 0..MOST_TRANSLATORS {
        match log.last_until(MAPPING, at)? {
            Some(Record { micros, event: Event::Mapping(mapping) }) if micros >= began => {
                let Some(before) = micros.checked_sub(1) else { break };
                if tell(micros, mapping).is_break() {
                    break;
                }
                at = before;
            }
            Some(_) | None => break,
        }
    }
    Ok(())
}

/// Since when a mapping of which the log speaks at `seen` holds, through processes that had the same one; `None`: it is older than the log.
pub(super) fn since(log: &Log, seen: u64, mapping: &PortMapping) -> io::Result<Option<u64>> {
    let (mut since, mut seen) = (None, seen);
    for _ in 0..MOST_PROCESSES {
        let Some(Record { micros: began, .. }) = log.last_until(STARTED, seen)? else { break };
        // Each process begins with its mappings, each at a time of its own.
        let mut is_same = false;
        each(log, began.saturating_add(MOST_TRANSLATORS as u64), began, |_, other| {
            is_same |= other == *mapping;
            if is_same { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !is_same {
            break;
        }
        since = Some(began);
        let Some(before) = began.checked_sub(1) else { break };
        seen = before;
    }
    Ok(since)
}

/// When the next record about the assignment of ports follows, or a process begins.
pub(super) fn next(log: &Log, at: u64) -> io::Result<Option<u64>> {
    let of = |key| log.first_after(key, at).map(|record| record.map(|record| record.micros));
    let (mapping, started) = (of(MAPPING)?, of(STARTED)?);
    Ok(mapping.into_iter().chain(started).min())
}
