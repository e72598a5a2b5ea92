//! The inside host that had an outside endpoint at a given time, from the log.

use super::index::{self, Key, STARTED};
use super::port_block::{PortBlock, PortMapping};
use super::record::{self, Phase, Record};
use super::search::Log;
use serde::Serialize;
use sixway_dataplane::nat::{LARGEST_BLOCK, NatProtocol, SMALLEST_BLOCK};
use sixway_wire::{Endpoint4, Prefix4};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

/// Processes through which the beginning of a binding is followed back.
const MOST_PROCESSES: usize = 256;
/// The question.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    outside: Endpoint4,
    protocol: NatProtocol,
    /// Microseconds since 1970.
    at: u64,
}

impl Question {
    /// Of texts as a person writes them.
    ///
    /// # Errors
    /// The error, with its file.
    pub fn read(outside: &str, protocol: &str, at: &str) -> Result<Self, String> {
        let outside = record::endpoint4(outside).ok_or_else(|| {
            format!("{outside}: not an IPv4 address and port; write one such as 192.0.2.1:4711")
        })?;
        let known = record::protocol(&protocol.to_ascii_lowercase());
        let protocol = known
            .ok_or_else(|| format!("--protocol {protocol}: write tcp, udp, icmp, gre, esp, ipv6 or ipip"))?;
        let at = record::time_as_written(at)?;
        Ok(Self { outside, protocol, at })
    }
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The outside endpoint.
    pub outside: String,
    /// Its protocol.
    pub protocol: String,
    /// The time.
    pub at: String,
    /// The inside endpoint that had it; `None`: none, or it is not known.
    pub inside: Option<String>,
    /// The translator of the binding.
    pub translator: Option<String>,
    /// `static`, `dynamic`, `port block`, `deterministic` or `lease`.
    pub kind: Option<String>,
    /// When the binding began; `None`: before the log.
    pub since: Option<String>,
    /// When it ended, at the latest; `None`: the log does not say that it ended.
    pub until: Option<String>,
    /// For an endpoint that was free: its last user, and until when.
    pub last: Option<Last>,
    /// The log begins then: nothing earlier is known.
    pub log_begins: Option<String>,
    /// Events are missing in that time, so that the answer may be wrong.
    pub events_are_missing: bool,
    /// The clock was set at about that time, so that the answer may be wrong.
    pub clock_was_set: bool,
    /// The answer follows from the present configuration, and not from the log.
    pub is_by_configuration: bool,
    /// The record of how ports were given at that time is cut, so that it does not say who had this one.
    pub mapping_is_cut: bool,
    /// Octets that were read for the answer.
    pub octets_read: u64,
    /// Octets of the log.
    pub octets_of_log: u64,
}

/// The last holder of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Last {
    /// The inside endpoint.
    pub inside: String,
    /// When its binding ended, at the latest.
    pub until: String,
}

/// Looks it up.
///
/// # Errors
/// The log cannot be read.
pub fn ask(log: &Path, question: &Question) -> io::Result<Answer> {
    let key = index::key_of(question.protocol, question.outside);
    let blocks = sizes().map(|size| of_block(question.outside, size));
    let others = [key, STARTED, index::LOST, index::STEPPED, index::MAPPING];
    let keys: Vec<Key> = others.into_iter().chain(blocks).collect();
    let mut log = Log::open(log, &keys)?;
    loop {
        match answer(&log, key, question) {
            // Each file is left without its index once.
            Err(error) if error.kind() == io::ErrorKind::InvalidData && log.leave_out_index() => {}
            outcome => return outcome,
        }
    }
}

fn answer(log: &Log, key: Key, question: &Question) -> io::Result<Answer> {
    let Question { outside, protocol, at } = *question;
    let mut answer = Answer {
        outside: outside.to_string(),
        protocol: protocol.name().into(),
        at: record::time_text(at),
        log_begins: log.first()?.map(record::time_text),
        octets_of_log: log.octets(),
        ..Answer::default()
    };
    let mut times = vec![at];
    let mut found = Found::at(log, key, at)?.map(|found| (key, found));
    if !found.as_ref().is_some_and(|(_, (_, state))| matches!(state, State::Bound { .. })) {
        // No binding of its own: perhaps it is part of a subscriber's block.
        match mapping::at(log, outside, at)? {
            Some((_, mapping)) if mapping.deterministic && mapping.is_cut => answer.mapping_is_cut = true,
            Some((seen, mapping)) if mapping.deterministic => {
                if let Some(subscriber) = mapping.subscriber_of(outside) {
                    found = None;
                    answer.by_mapping(&mapping, subscriber);
                    let since = mapping::since(log, seen, &mapping)?;
                    answer.since = since.map(record::time_text);
                    times.extend(since);
                    // A static binding, or another way to give blocks, may be missing.
                    answer.events_are_missing = are_missing(log, seen, mapping::next(log, at)?)?;
                }
            }
            Some((_, mapping)) => found = better(log, found, of_block(outside, mapping.block_size), at)?,
            // A log whose beginning is lost: any size.
            None => {
                for size in sizes() {
                    found = better(log, found, of_block(outside, size), at)?;
                }
            }
        }
    }
    match found {
        Some((key, state)) => tell(log, (key, at), state, (&mut answer, &mut times))?,
        None if answer.inside.is_some() => {}
        None => {
            // Every process has listed its bindings at its start.
            let began = log.last_until(STARTED, at)?.map_or(0, |started| started.micros);
            let next = log.first_after(key, at)?.map(|next| next.micros);
            answer.events_are_missing = are_missing(log, began, next)?;
        }
    }
    for time in times {
        answer.clock_was_set |= was_set(log, time)?;
    }
    answer.octets_read = log.octets_read();
    Ok(answer)
}

/// The sizes that port blocks may have.
fn sizes() -> impl Iterator<Item = u16> {
    (0..).map(|n| SMALLEST_BLOCK << n).take_while(|size| *size <= LARGEST_BLOCK)
}

/// The key of the block of this size that an endpoint is in.
fn of_block(outside: Endpoint4, size: u16) -> Key {
    index::key_of_block(PortBlock::at(outside, size), size)
}

/// This result, or the result by another key, if it has more.
fn better(
    log: &Log,
    found: Option<(Key, (Holder, State))>,
    key: Key,
    at: u64,
) -> io::Result<Option<(Key, (Holder, State))>> {
    if found.as_ref().is_some_and(|(_, (_, state))| matches!(state, State::Bound { .. })) {
        return Ok(found);
    }
    let other = Found::at(log, key, at)?.map(|found| (key, found));
    let ended = |it: &Option<(Key, (Holder, State))>| match it {
        None => 0,
        Some((_, (_, State::Bound { .. }))) => u64::MAX,
        Some((_, (_, State::Ended { until }))) => *until,
    };
    Ok(if ended(&other) >= ended(&found) && other.is_some() { other } else { found })
}

/// Writes the result of a key into the answer, and the times at which the clock matters.
fn tell(
    log: &Log,
    (key, at): (Key, u64),
    (holder, state): (Holder, State),
    (answer, times): (&mut Answer, &mut Vec<u64>),
) -> io::Result<()> {
    match state {
        State::Bound { seen, is_begun } => {
            let since = if is_begun { Some(seen) } else { began(log, key, seen, &holder)? };
            let until = ended(log, key, at, &holder)?;
            answer.events_are_missing = are_missing(log, since.unwrap_or(0), until)?;
            answer.since = since.map(record::time_text);
            answer.until = until.map(record::time_text);
            answer.translator = Some(holder.translator.to_string());
            answer.kind = Some(holder.kind.into());
            answer.inside = Some(holder.inside);
            times.extend(since.into_iter().chain(until));
        }
        State::Ended { until } => {
            answer.last = Some(Last { inside: holder.inside, until: record::time_text(until) });
            let next = log.first_after(key, at)?.map(|next| next.micros);
            answer.events_are_missing = are_missing(log, until, next)?;
            times.push(until);
        }
    }
    Ok(())
}

impl Answer {
    fn by_mapping(&mut self, mapping: &PortMapping, subscriber: String) {
        self.inside = Some(subscriber);
        self.translator = Some(mapping.translator.to_string());
        self.kind = Some("deterministic".into());
    }

    /// The answer from how ports are given by a configuration alone; `None`: it does not follow from that.
    pub fn configured(question: &Question, mappings: &[PortMapping]) -> Option<Self> {
        let Question { outside, protocol, at } = *question;
        let mapping = mappings.iter().find(|mapping| mapping.holds(outside))?;
        let mut answer = Self {
            outside: outside.to_string(),
            protocol: protocol.name().into(),
            at: record::time_text(at),
            is_by_configuration: true,
            ..Self::default()
        };
        answer.by_mapping(mapping, mapping.subscriber_of(outside)?);
        Some(answer)
    }
}

/// How an endpoint is.
enum State {
    /// It belongs to the binding that the log has at `seen`: as its beginning, or as an existing one.
    Bound { seen: u64, is_begun: bool },
    /// It belonged to the binding.
    Ended { until: u64 },
}

struct Found;

impl Found {
    /// The last user until this time by the records of a key, and the state then.
    fn at(log: &Log, key: Key, at: u64) -> io::Result<Option<(Holder, State)>> {
        let Some((micros, phase, holder)) = log.last_until(key, at)?.as_ref().and_then(parts) else {
            return Self::before_the_log(log, key, at);
        };
        let state = match phase {
            Phase::Deleted => State::Ended { until: micros },
            Phase::Created | Phase::Continues => match log.last_until(STARTED, at)? {
                // A process began since, and does not have it.
                Some(started) if started.micros > micros => State::Ended { until: started.micros },
                Some(_) | None => State::Bound { seen: micros, is_begun: phase == Phase::Created },
            },
        };
        Ok(Some((holder, state)))
    }

    /// The log has nothing about the endpoint before that time. If its first word afterwards is an end, or that it is there, in the same
    /// process,
    /// the binding was older than the log.
    fn before_the_log(log: &Log, key: Key, at: u64) -> io::Result<Option<(Holder, State)>> {
        if log.first()?.is_none_or(|first| at < first) {
            return Ok(None);
        }
        let started = log.first_after(STARTED, at)?;
        Ok(match log.first_after(key, at)?.as_ref().and_then(parts) {
            Some((micros, Phase::Deleted | Phase::Continues, holder))
                if started.as_ref().is_none_or(|started| started.micros > micros) =>
            {
                Some((holder, State::Bound { seen: 0, is_begun: false }))
            }
            Some(_) | None => None,
        })
    }
}

fn parts(record: &Record) -> Option<(u64, Phase, Holder)> {
    let (phase, holder) = Holder::of(&record.event)?;
    Some((record.micros, phase, holder))
}

/// When a binding or block began that a process found there at `seen`; `None`: before the log.
fn began(log: &Log, key: Key, seen: u64, holder: &Holder) -> io::Result<Option<u64>> {
    let mut seen = seen;
    for _ in 0..MOST_PROCESSES {
        let Some(before) = seen.checked_sub(1) else { return Ok(None) };
        match log.last_until(key, before)?.as_ref().and_then(parts) {
            Some((micros, phase, earlier)) if earlier.inside == holder.inside => match phase {
                Phase::Created => return Ok(Some(micros)),
                Phase::Continues => seen = micros,
                Phase::Deleted => return Ok(Some(seen)),
            },
            Some(_) | None => return Ok(None),
        }
    }
    Ok(None)
}

/// When a binding or block ended, at the latest, that was there at `at`; `None`: the log does not say.
fn ended(log: &Log, key: Key, at: u64, holder: &Holder) -> io::Result<Option<u64>> {
    let mut at = at;
    for _ in 0..MOST_PROCESSES {
        let next = log.first_after(key, at)?;
        let started = log.first_after(STARTED, at)?.map(|record| record.micros);
        match next.as_ref().and_then(parts) {
            Some((micros, Phase::Continues, later)) if later.inside == holder.inside => at = micros,
            Some((micros, ..)) => return Ok(Some(started.unwrap_or(micros).min(micros))),
            None => return Ok(started),
        }
    }
    Ok(None)
}

/// The text in place of a protocol in an answer about a lease.
const ALL: &str = "all protocols";

/// The question which host had an IPv4 address by a lease of 4over6 at a time, the address itself or a prefix that contains it.
#[derive(Clone, Copy, Debug)]
pub struct LeaseQuestion {
    address: Ipv4Addr,
    /// Microseconds since 1970.
    at: u64,
}

impl LeaseQuestion {
    /// Of texts as a person writes them.
    ///
    /// # Errors
    /// The error, with its file.
    pub fn read(address: &str, at: &str) -> Result<Self, String> {
        if record::endpoint4(address).is_some() {
            return Err(format!("{address} has a port: add --protocol; without it, write an address"));
        }
        let address = address
            .parse()
            .map_err(|_| format!("{address}: not an IPv4 address; write one such as 192.0.2.1"))?;
        Ok(Self { address, at: record::time_as_written(at)? })
    }
}

/// Looks it up.
///
/// # Errors
/// The log cannot be read.
pub fn ask_lease(log: &Path, question: &LeaseQuestion) -> io::Result<Answer> {
    let others = [STARTED, index::LOST, index::STEPPED];
    let keys: Vec<Key> = others.into_iter().chain(lease_keys(question.address)).collect();
    let mut log = Log::open(log, &keys)?;
    loop {
        match lease_answer(&log, question) {
            // Each file is left without its index once.
            Err(error) if error.kind() == io::ErrorKind::InvalidData && log.leave_out_index() => {}
            outcome => return outcome,
        }
    }
}

/// The address, and the prefixes that contain it, the longest first.
fn lease_keys(address: Ipv4Addr) -> impl Iterator<Item = Key> {
    (8..=32).rev().map(move |length| index::key_of_lease(Prefix4::holding(address, length)))
}

fn lease_answer(log: &Log, question: &LeaseQuestion) -> io::Result<Answer> {
    let LeaseQuestion { address, at } = *question;
    let mut answer = Answer {
        outside: address.to_string(),
        protocol: ALL.into(),
        at: record::time_text(at),
        log_begins: log.first()?.map(record::time_text),
        octets_of_log: log.octets(),
        ..Answer::default()
    };
    let mut found: Option<(Key, (Holder, State))> = None;
    for key in lease_keys(address) {
        found = match found {
            None => Found::at(log, key, at)?.map(|found| (key, found)),
            found => better(log, found, key, at)?,
        };
    }
    let mut times = vec![at];
    match found {
        Some((key, state)) => tell(log, (key, at), state, (&mut answer, &mut times))?,
        None => {
            // Every process has listed its bindings at its start.
            let began = log.last_until(STARTED, at)?.map_or(0, |started| started.micros);
            answer.events_are_missing = are_missing(log, began, Some(at))?;
        }
    }
    for time in times {
        answer.clock_was_set |= was_set(log, time)?;
    }
    answer.octets_read = log.octets_read();
    Ok(answer)
}

mod doubt;
mod holder;
mod mapping;
mod portless;

use doubt::{are_missing, was_set};
use holder::Holder;
pub use portless::{PortlessAnswer, PortlessQuestion, PortlessSession, ask_portless};

#[cfg(test)]
mod tests;
