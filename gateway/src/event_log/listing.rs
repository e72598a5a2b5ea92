//! The current bindings, listed when a process begins, and again from time to time, so that a binding stays in the log as long as it
//! exists although old files are removed.
//!
//! The workers' tables are read while packets pass, and the rows come in parts. A row may be of a binding that ends, or has ended, in the
//! meantime: a binding with an event since the listing began is left out, for that event is in the log. In the first listing of a process, an
//! end whose beginning is not in the log since then is preceded by the record that the binding was there.

use super::continuing::Continuing;
use super::index::{Key, key};
use super::record::{Binding, Event, Phase, Record};
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::HashSet;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A listing because old files are removed begins at most this often.
const PAUSE: Duration = Duration::from_secs(3_600);
/// The same because events were lost: who makes many events does not keep the gateway busy with listings.
const PAUSE_AFTER_LOSS: Duration = Duration::from_secs(600);
/// Bindings with events that are remembered during a listing. With more, the rest is not listed, and it is repeated.
const TOUCHED: usize = 1 << 20;

/// A binding, by the number of its translator.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The translator, by its place.
    pub translator: usize,
    /// Protocol.
    pub protocol: NatProtocol,
    /// The B4 that the inside endpoint is behind (RFC 6333).
    pub softwire: Option<Ipv6Addr>,
    /// Inside endpoint; an IPv4 host has its IPv4-mapped address.
    pub inside: Endpoint6,
    /// Outside endpoint.
    pub outside: Endpoint4,
    /// Whether the administrator made it.
    pub is_static: bool,
}

/// When a listing is due, and the one under way.
#[derive(Debug)]
pub(super) struct Listing {
    names: Vec<Arc<str>>,
    continuing: Continuing,
    /// When the last one began.
    last: Instant,
    /// Whether events were lost since it began, and when one began for that reason.
    is_wanted: bool,
    last_wanted: Option<Instant>,
    /// Full files since then.
    full: u64,
    under_way: Option<UnderWay>,
    /// Bindings that are missing in the first one, because it was left off.
    unlisted: u64,
}

/// A listing that is under way.
#[derive(Debug)]
struct UnderWay {
    /// When it began.
    micros: u64,
    /// The bindings with events since then.
    touched: HashSet<Key>,
    first: Option<First>,
}

/// The first listing of a process. It begins with the log, before the workers.
#[derive(Clone, Copy, Debug)]
struct First {
    /// Bindings that there were then, and how many of them have a record.
    expected: u64,
    listed: u64,
}

impl First {
    /// Bindings that have no record, if it were left off now.
    const fn unlisted(self) -> u64 {
        match (self.expected, self.expected.saturating_sub(self.listed)) {
            (0, _) => 0,
            // As many as there were, but others: at least one may be missing.
            (_, 0) => 1,
            (_, left) => left,
        }
    }
}

impl Listing {
    pub(super) fn new(names: Vec<Arc<str>>, continuing: Continuing) -> Self {
        let last = Instant::now();
        let (is_wanted, last_wanted, full, under_way, unlisted) = (false, None, 0, None, 0);
        Self { names, continuing, last, is_wanted, last_wanted, full, under_way, unlisted }
    }

    /// Whether one is due: half of the files that are kept have become full since the last one, or events were lost.
    pub(super) fn is_due(&self, keep: u32) -> bool {
        let is_old = self.full >= u64::from(keep / 2).max(1) && self.last.elapsed() >= PAUSE;
        let may_repeat = self.last_wanted.is_none_or(|last| last.elapsed() >= PAUSE_AFTER_LOSS);
        self.under_way.is_none() && (is_old || self.is_wanted && may_repeat)
    }

    /// Events were lost: the beginnings of bindings may be among them.
    pub(super) const fn want(&mut self) {
        self.is_wanted = true;
    }

    /// This number of files has become full.
    pub(super) const fn filled(&mut self, files: u64) {
        self.full += files;
    }

    /// The log begins: the first one, of this number of bindings. Its first records.
    pub(super) fn begin_with_log(&mut self, micros: u64, expected: u64) -> Vec<Record> {
        let first = Some(First { expected, listed: 0 });
        self.under_way = Some(UnderWay { micros, touched: HashSet::new(), first });
        self.continuing.begin(micros)
    }

    /// Whether dynamic bindings of the translator at this place have records.
    pub(super) fn has_records(&self, translator: usize) -> bool {
        self.continuing.has_records(translator)
    }

    /// Whether the one under way is the first one.
    pub(super) fn is_first(&self) -> bool {
        self.under_way.as_ref().is_some_and(|under_way| under_way.first.is_some())
    }

    /// One begins; its first records. `records`: those taken since rings were examined before. The first one has begun already.
    pub(super) fn begin(&mut self, micros: u64, records: &[Record]) -> Vec<Record> {
        (self.last, self.full) = (Instant::now(), 0);
        if self.is_first() {
            return Vec::new();
        }
        if std::mem::take(&mut self.is_wanted) {
            self.last_wanted = Some(self.last);
        }
        self.under_way = Some(UnderWay { micros, touched: HashSet::new(), first: None });
        self.note(records);
        self.continuing.begin(micros)
    }

    /// Takes note of events, in the order of their times. Records that come before them: bindings that were there when the log began.
    pub(super) fn note(&mut self, records: &[Record]) -> Vec<Record> {
        let Some(UnderWay { micros, touched, first }) = &mut self.under_way else { return Vec::new() };
        let mut before = Vec::new();
        for record in records {
            let continues = match &record.event {
                Event::Binding(phase, it) => Some((*phase, Event::Binding(Phase::Continues, it.clone()))),
                Event::Block(phase, it) => Some((*phase, Event::Block(Phase::Continues, it.clone()))),
                Event::Mapping(_)
                | Event::Session(..)
                | Event::Portless(..)
                | Event::Started
                | Event::Stopped
                | Event::Lost(..)
                | Event::Stepped(_)
                | Event::Limit(..)
                | Event::Notice(_) => None,
            };
            let (Some((phase, event)), Some(key)) = (continues, key(record)) else { continue };
            let is_untouched = touched.insert(key);
            if let Some(first) = first.as_mut().filter(|_| is_untouched && phase == Phase::Deleted) {
                first.listed += 1;
                before.push(Record { micros: *micros, event });
            }
        }
        if touched.len() > TOUCHED {
            self.leave_off();
        }
        before
    }

    /// The records of some rows.
    pub(super) fn records(&mut self, rows: &[Listed]) -> Vec<Record> {
        let Some(UnderWay { micros, touched, first }) = &mut self.under_way else { return Vec::new() };
        let mut records = Vec::new();
        for row in rows {
            let Listed { protocol, softwire, inside, outside, is_static, .. } = *row;
            let Some(translator) = self.names.get(row.translator).map(Arc::clone) else { continue };
            let binding = Binding { translator, protocol, softwire, inside, outside, is_static };
            records.extend(self.continuing.records(*micros, row.translator, binding));
        }
        records.retain(|record| key(record).is_none_or(|key| !touched.contains(&key)));
        if let Some(first) = first {
            first.listed += rows.len() as u64;
        }
        records
    }

    /// It cannot be completed, and is repeated.
    fn leave_off(&mut self) {
        self.unlisted += self.unlisted();
        self.is_wanted = true;
        self.end(true);
    }

    /// Bindings that would be missing if it were left off now.
    pub(super) fn unlisted(&self) -> u64 {
        self.under_way.as_ref().and_then(|under_way| under_way.first).map_or(0, First::unlisted)
    }

    /// Bindings that are missing since the last call, because the first listing was left off.
    pub(super) fn take_unlisted(&mut self) -> u64 {
        std::mem::take(&mut self.unlisted)
    }

    /// Whether none is under way.
    #[cfg(test)]
    pub(super) const fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// It ends; `is_whole`: with all rows.
    pub(super) fn end(&mut self, is_whole: bool) {
        if !is_whole && self.under_way.is_some() {
            return self.leave_off();
        }
        self.under_way = None;
        self.continuing.end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Phase;
    use super::super::record::tests::binding;
    use super::*;

    fn plain() -> Continuing {
        Continuing::new(Vec::new(), false)
    }

    fn row(port: u16) -> Listed {
        let Binding { protocol, softwire, inside, outside, .. } =
            binding("[2001:db8::1]:5", &format!("192.0.2.1:{port}"));
        Listed { translator: 0, protocol, softwire, inside, outside, is_static: false }
    }

    fn deleted(port: u16) -> Record {
        let gone = binding("[2001:db8::1]:5", &format!("192.0.2.1:{port}"));
        Record { micros: 9, event: Event::Binding(Phase::Deleted, gone) }
    }

    #[test]
    fn a_binding_with_an_event_since_the_beginning_is_left_out() {
        let mut listing = Listing::new(vec!["nat64".into()], plain());
        assert!(listing.records(&[row(1)]).is_empty(), "none is under way");
        listing.note(&[deleted(4)]);
        listing.begin(7, &[deleted(1)]);
        listing.note(&[deleted(2)]);
        let ports: Vec<_> = listing
            .records(&[row(1), row(2), row(3), row(4), Listed { translator: 1, ..row(5) }])
            .into_iter()
            .map(|record| match record.event {
                Event::Binding(Phase::Continues, it) => (record.micros, it.outside.port),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ports, [(7, 3), (7, 4)]);
        listing.end(true);
        assert!(listing.records(&[row(3)]).is_empty());
    }

    fn created(port: u16) -> Record {
        let new = binding("[2001:db8::1]:5", &format!("192.0.2.1:{port}"));
        Record { micros: 9, event: Event::Binding(Phase::Created, new) }
    }

    /// The outside ports of records that say that a binding was there, and their times.
    fn continue_since(records: &[Record]) -> Vec<(u64, u16)> {
        let of = |record: &Record| match &record.event {
            Event::Binding(Phase::Continues, it) => (record.micros, it.outside.port),
            other => panic!("{other:?}"),
        };
        records.iter().map(of).collect()
    }

    #[test]
    fn in_the_first_listing_what_ends_before_its_row_was_there_when_the_log_began() {
        let mut listing = Listing::new(vec!["nat64".into()], plain());
        assert!(listing.begin_with_log(7, 3).is_empty() && listing.is_first());
        let before = listing.note(&[deleted(1), created(2), deleted(2), created(1), deleted(1)]);
        assert_eq!(continue_since(&before), [(7, 1)]);
        assert!(listing.begin(8, &[]).is_empty(), "it has begun with the log");
        assert_eq!(continue_since(&listing.records(&[row(1), row(2), row(3)])), [(7, 3)]);
        assert_eq!(continue_since(&listing.note(&[deleted(3)])), [(7, 3)], "once more does no harm");
        listing.end(true);
        assert!(listing.is_idle() && listing.note(&[deleted(4)]).is_empty());
        assert_eq!((listing.take_unlisted(), listing.is_wanted), (0, false));
        listing.begin(20, &[]);
        assert!(listing.note(&[deleted(5)]).is_empty(), "a later listing");
    }

    #[test]
    fn a_first_listing_that_is_left_off_says_how_many_bindings_it_lacks() {
        let begun = |expected| {
            let mut listing = Listing::new(vec!["nat64".into()], plain());
            listing.begin_with_log(7, expected);
            listing
        };
        let mut listing = begun(10);
        listing.records(&[row(1), row(2)]);
        listing.note(&[deleted(3)]);
        assert_eq!(listing.unlisted(), 7);
        listing.end(false);
        assert_eq!((listing.take_unlisted(), listing.take_unlisted()), (7, 0));
        assert!(listing.is_idle() && listing.is_wanted);
        let mut listing = begun(1);
        listing.records(&[row(1)]);
        assert_eq!(listing.unlisted(), 1, "another one may be missing");
        assert_eq!(begun(0).unlisted(), 0);
    }

    #[test]
    fn a_listing_is_due_after_half_of_the_files_and_not_more_often_than_each_hour() {
        let mut listing = Listing::new(Vec::new(), plain());
        listing.filled(50);
        assert!(!listing.is_due(100), "the hour is not over");
        listing.last = Instant::now().checked_sub(PAUSE).unwrap_or_else(Instant::now);
        assert!(listing.is_due(100) && !listing.is_due(102) && listing.is_due(1));
        listing.begin(1, &[]);
        assert!(!listing.is_due(1));
        listing.end(true);
        assert!(!listing.is_due(1));
        listing.want();
        assert!(listing.is_due(100), "events were lost");
        listing.begin(2, &[]);
        listing.want();
        listing.end(true);
        assert!(!listing.is_due(100), "ten minutes are not over");
        listing.last_wanted = Instant::now().checked_sub(PAUSE_AFTER_LOSS);
        assert!(listing.is_due(100));
    }

    #[test]
    fn a_listing_during_which_too_much_happens_is_left_off_and_repeated() {
        let mut listing = Listing::new(vec!["nat64".into()], plain());
        listing.begin(1, &[]);
        let gone = |number: usize| {
            let gone = binding(
                "[2001:db8::1]:5",
                &format!("192.0.{}.{}:{}", number >> 24, number >> 16 & 255, number & 65_535),
            );
            Record { micros: 9, event: Event::Binding(Phase::Deleted, gone) }
        };
        let many: Vec<Record> = (0..TOUCHED + 1).map(gone).collect();
        listing.note(&many[..TOUCHED]);
        assert_eq!(listing.records(&[row(3)]).len(), 1);
        listing.note(&many[TOUCHED..]);
        assert_eq!(listing.records(&[row(3)]).len(), 0);
        assert!(listing.is_due(100));
        assert_eq!(listing.take_unlisted(), 0, "not the first one");
    }
}
