//! Reads a table while packets pass: some rows per batch, so that a million sessions do not stall the data path.

use super::answer::Answer;
use super::translator::{BindingEntry, Position, Scan, SessionEntry, SubscriberEntry, Translator};
use crate::admin::Filter;
use sixway_dataplane::Instant;
use std::collections::VecDeque;

/// Table places looked at between two batches.
const BUDGET: usize = 512;
/// Dumps under way at a time, which take turns. They are twice as many as members of the group may have connections, so that these leave places to
/// the event log and to administrators.
const UNDER_WAY: usize = 32;

/// A page that is being read.
#[derive(Debug)]
pub struct Dump<E> {
    /// The filter of the request.
    pub filter: Filter,
    /// Where to continue.
    pub from: Position,
    /// The most rows.
    pub limit: usize,
    /// The most parts of the tables, of 512 places each, that are examined; `None`: as many as it takes.
    pub parts: Option<u32>,
    /// The rows so far.
    pub rows: Vec<E>,
    /// Where the page goes.
    pub answer: Answer<DumpPage<E>>,
}

/// A page that was read.
#[derive(Debug)]
pub struct DumpPage<E> {
    /// The rows.
    pub rows: Vec<E>,
    /// Where the next page starts; `None` at the end of this worker's tables.
    pub next: Option<Position>,
}

/// The pages that a worker reads.
#[derive(Debug, Default)]
pub(super) struct Dumps {
    waiting: VecDeque<AnyDump>,
}

#[derive(Debug)]
enum AnyDump {
    Sessions(Dump<SessionEntry>),
    Bindings(Dump<BindingEntry>),
    Subscribers(Dump<SubscriberEntry>),
}

impl Dumps {
    pub(super) fn sessions(&mut self, dump: Dump<SessionEntry>) {
        self.add(AnyDump::Sessions(dump));
    }

    pub(super) fn bindings(&mut self, dump: Dump<BindingEntry>) {
        self.add(AnyDump::Bindings(dump));
    }

    pub(super) fn subscribers(&mut self, dump: Dump<SubscriberEntry>) {
        self.add(AnyDump::Subscribers(dump));
    }

    /// Refused when there are too many: the answer's sender is dropped, and who waits learns of it.
    fn add(&mut self, dump: AnyDump) {
        if self.waiting.len() < UNDER_WAY {
            self.waiting.push_back(dump);
        }
    }

    /// Goes on with the page whose turn it is. Whether there is more to do.
    pub(super) fn step(&mut self, translator: &mut impl Translator, now: Instant) -> bool {
        let Some(dump) = self.waiting.pop_front() else { return false };
        let unfinished = match dump {
            AnyDump::Sessions(dump) => {
                dump.step(now, |scan, rows| translator.sessions(scan, rows)).map(AnyDump::Sessions)
            }
            AnyDump::Bindings(dump) => {
                dump.step(now, |scan, rows| translator.bindings(scan, rows)).map(AnyDump::Bindings)
            }
            AnyDump::Subscribers(dump) => {
                dump.step(now, |scan, rows| translator.subscribers(scan, rows)).map(AnyDump::Subscribers)
            }
        };
        self.waiting.extend(unfinished);
        !self.waiting.is_empty()
    }
}

impl<E> Dump<E> {
    /// Reads on. The dump if the page is not full yet, and a receiver still waits for it.
    fn step(
        mut self,
        now: Instant,
        read: impl FnOnce(Scan<'_>, &mut Vec<E>) -> Option<Position>,
    ) -> Option<Self> {
        if self.answer.is_closed() {
            return None;
        }
        let room = self.limit.saturating_sub(self.rows.len());
        let scan = Scan { from: self.from, budget: BUDGET, room, filter: &self.filter, now };
        let next = read(scan, &mut self.rows);
        let parts = self.parts.map(|parts| parts.saturating_sub(1));
        match next {
            Some(next) if self.rows.len() < self.limit && parts != Some(0) => {
                Some(Self { from: next, parts, ..self })
            }
            next => {
                // The receiver may be gone.
                let _ = self.answer.send(DumpPage { rows: self.rows, next });
                None
            }
        }
    }
}
