//! The inside hosts that had sessions of a protocol without ports at an outside address at a given time. Several inside hosts may, with
//! different remote hosts.
//!
//! Such sessions end with their process, and are not listed again. So the events of the address and protocol are examined: back to the
//! beginning of the process, for sessions that had begun and not ended; and then forward, for their ends, and for ends of sessions whose
//! beginning is not among those that were examined.

use super::doubt::{are_missing, was_set};
use crate::event_log::index::{self, LOST, STARTED, STEPPED};
use crate::event_log::portless::Portless;
use crate::event_log::record::{self, Event, Phase, Record};
use crate::event_log::search::Log;
use serde::Serialize;
use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::Path;

/// Events of the address and protocol that are examined, before a time and after it.
const MOST_EVENTS: usize = 4_096;
/// The same where only one remote host matters: a host with many short sessions does not hide those of another one with other remote hosts.
const MOST_EVENTS_OF_REMOTE: usize = 65_536;

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct PortlessQuestion {
    outside: Ipv4Addr,
    protocol: PortlessProtocol,
    remote: Option<Ipv4Addr>,
    /// Microseconds since 1970.
    at: u64,
}

impl PortlessQuestion {
    /// Of texts as a person writes them; `None`: the protocol has ports.
    ///
    /// # Errors
    /// The error, with its file.
    pub fn read(
        outside: &str,
        protocol: &str,
        remote: Option<&str>,
        at: &str,
    ) -> Result<Option<Self>, String> {
        let name = protocol.to_ascii_lowercase();
        let Some(protocol) = PortlessProtocol::ALL.into_iter().find(|it| it.name() == name) else {
            return match remote {
                Some(_) => Err(format!("--remote: only for protocols without ports, and {name} has ports")),
                None => Ok(None),
            };
        };
        let address = |name: &str, text: &str| {
            let read = text.parse();
            read.map_err(|_| format!("{name}{text}: not an IPv4 address; {protocol} has no ports"))
        };
        let remote = remote.map(|text| address("--remote ", text)).transpose()?;
        Ok(Some(Self { outside: address("", outside)?, protocol, remote, at: record::time_as_written(at)? }))
    }
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortlessAnswer {
    /// The outside address.
    pub outside: String,
    /// Its protocol.
    pub protocol: String,
    /// The remote host that was asked for.
    pub remote: Option<String>,
    /// The time.
    pub at: String,
    /// The sessions that there were, the latest first.
    pub sessions: Vec<PortlessSession>,
    /// The log begins then: nothing earlier is known.
    pub log_begins: Option<String>,
    /// Events are missing in that time, so that the answer may be wrong.
    pub events_are_missing: bool,
    /// There are too many events of this address and protocol: sessions may be missing.
    pub is_incomplete: bool,
    /// The clock was set at about that time, so that the answer may be wrong.
    pub clock_was_set: bool,
    /// Octets that were read for the answer.
    pub octets_read: u64,
    /// Octets of the log.
    pub octets_of_log: u64,
}

/// A session that there was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortlessSession {
    /// The inside host.
    pub inside: String,
    /// The translator.
    pub translator: String,
    /// The remote host, if destinations are logged.
    pub remote: Option<String>,
    /// ESP's SPI, GRE's key or PPTP's call ID of its first packet.
    pub id: Option<u32>,
    /// When it began; `None`: before what was examined.
    pub since: Option<String>,
    /// When it ended, at the latest; `None`: the log does not say that it ended.
    pub until: Option<String>,
}

/// A session while it is looked for.
struct Seen {
    session: Portless,
    since: Option<u64>,
    until: Option<u64>,
}

/// Looks them up.
///
/// # Errors
/// The log cannot be read.
pub fn ask_portless(log: &Path, question: &PortlessQuestion) -> io::Result<PortlessAnswer> {
    let key = index::key_of_portless(question.protocol, question.outside);
    let mut log = Log::open(log, &[key, STARTED, LOST, STEPPED])?;
    loop {
        match answer(&log, question) {
            // Each file is left without its index once.
            Err(error) if error.kind() == io::ErrorKind::InvalidData && log.leave_out_index() => {}
            outcome => return outcome,
        }
    }
}

fn answer(log: &Log, question: &PortlessQuestion) -> io::Result<PortlessAnswer> {
    let PortlessQuestion { outside, protocol, remote, at } = *question;
    let began = log.last_until(STARTED, at)?.map(|started| started.micros);
    let next = log.first_after(STARTED, at)?.map(|started| started.micros);
    let (mut found, is_cut) = begun(log, question, began.unwrap_or(0))?;
    // Only the beginning of a session is certain to be in a log that covers it.
    let may_be_older = is_cut || began.is_none();
    let is_incomplete = ended(log, question, (&mut found, next), may_be_older)? || is_cut;
    let until = match found.is_empty() {
        true => Some(at),
        // One without an end: no time is too late.
        false => found.iter().map(|seen| seen.until.or(next)).min().flatten().and(latest(&found, next)),
    };
    let mut clock_was_set = was_set(log, at)?;
    for seen in &found {
        for time in seen.since.into_iter().chain(seen.until) {
            clock_was_set |= was_set(log, time)?;
        }
    }
    let text = |micros: Option<u64>| micros.map(record::time_text);
    let session = |Seen { session, since, until }: Seen| PortlessSession {
        inside: session.inside.to_string(),
        translator: session.translator.to_string(),
        remote: session.remote.map(|remote| remote.to_string()),
        id: session.id,
        since: text(since),
        until: text(until.or(next)),
    };
    Ok(PortlessAnswer {
        outside: outside.to_string(),
        protocol: protocol.name().into(),
        remote: remote.map(|remote| remote.to_string()),
        at: record::time_text(at),
        sessions: found.into_iter().map(session).collect(),
        log_begins: text(log.first()?),
        events_are_missing: are_missing(log, began.unwrap_or(0), until)?,
        is_incomplete,
        clock_was_set,
        octets_read: log.octets_read(),
        octets_of_log: log.octets(),
    })
}

/// The latest end.
fn latest(found: &[Seen], next: Option<u64>) -> Option<u64> {
    found.iter().filter_map(|seen| seen.until.or(next)).max()
}

impl PortlessQuestion {
    const fn most_events(&self) -> usize {
        if self.remote.is_some() { MOST_EVENTS_OF_REMOTE } else { MOST_EVENTS }
    }

    /// The session of a record, if it may be one of those that are wanted. Without destinations in the log, each may be.
    fn session(&self, record: Record) -> Option<(u64, Phase, Portless)> {
        let Event::Portless(phase, session) = record.event else { return None };
        let is_other = self.remote.is_some() && session.remote.is_some() && session.remote != self.remote;
        (!is_other).then_some((record.micros, phase, session))
    }
}

/// Sessions that began in this process and had not ended; whether older ones were not examined.
fn begun(log: &Log, question: &PortlessQuestion, began: u64) -> io::Result<(Vec<Seen>, bool)> {
    let key = index::key_of_portless(question.protocol, question.outside);
    let (mut ends, mut found, mut looked_at): (HashMap<String, u32>, Vec<Seen>, usize) = Default::default();
    log.each(key, began..=question.at, true, &mut |record| {
        looked_at += 1;
        if looked_at > question.most_events() {
            return ControlFlow::Break(());
        }
        if let Some((micros, phase, session)) = question.session(record) {
            let ended = ends.entry(name(&session)).or_default();
            match (phase, *ended) {
                (Phase::Deleted, _) => *ended += 1,
                (Phase::Created | Phase::Continues, 0) => {
                    found.push(Seen { session, since: Some(micros), until: None });
                }
                (Phase::Created | Phase::Continues, _) => *ended -= 1,
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok((found, looked_at > question.most_events()))
}

/// Finds the ends of sessions, and sessions of which only the end is found; whether there was too much to look at.
fn ended(
    log: &Log,
    question: &PortlessQuestion,
    (found, next): (&mut Vec<Seen>, Option<u64>),
    may_be_older: bool,
) -> io::Result<bool> {
    let key = index::key_of_portless(question.protocol, question.outside);
    let within = question.at.saturating_add(1)..=next.map_or(u64::MAX, |next| next.saturating_sub(1));
    let (mut new, mut looked_at): (HashMap<String, u32>, usize) = Default::default();
    if within.is_empty() || found.is_empty() && !may_be_older {
        return Ok(false);
    }
    log.each(key, within, false, &mut |record| {
        looked_at += 1;
        if looked_at > question.most_events() {
            return ControlFlow::Break(());
        }
        if let Some((micros, phase, session)) = question.session(record) {
            let name = name(&session);
            let open =
                found.iter_mut().find(|seen| seen.until.is_none() && self::name(&seen.session) == name);
            let begun = new.entry(name).or_default();
            match (phase, open) {
                (Phase::Created | Phase::Continues, _) => *begun += 1,
                (Phase::Deleted, Some(seen)) => seen.until = Some(micros),
                (Phase::Deleted, None) if *begun > 0 => *begun -= 1,
                (Phase::Deleted, None) if may_be_older => {
                    found.push(Seen { session, since: None, until: Some(micros) });
                }
                (Phase::Deleted, None) => {}
            }
        }
        let is_done = !may_be_older && found.iter().all(|seen| seen.until.is_some());
        if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(looked_at > question.most_events())
}

/// What the beginning and the end of a session have in common.
fn name(session: &Portless) -> String {
    let Portless { translator, inside, remote, id, .. } = session;
    format!("{translator} {inside} {remote:?} {id:?}")
}

#[cfg(test)]
mod tests;
