//! The bindings that there are, listed again from time to time, so that a binding stays in the log as long as it exists although old files
//! are removed.
//!
//! The workers' tables are read while packets pass. A row may be of a binding that ends, or has ended, in the meantime: a binding with an
//! event since the listing began is left out, for that event is in the log.

use super::continuing::Continuing;
use super::index::{Key, key};
use super::record::{Binding, Event, Record};
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::HashSet;
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
    /// Inside endpoint; an IPv4 host goes by its IPv4-mapped address.
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
    /// Since when one is under way, and the bindings with events since then.
    under_way: Option<(u64, HashSet<Key>)>,
}

impl Listing {
    pub(super) fn new(names: Vec<Arc<str>>, continuing: Continuing) -> Self {
        let last = Instant::now();
        Self { names, continuing, last, is_wanted: false, last_wanted: None, full: 0, under_way: None }
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

    /// One begins; its first records. `records`: those taken since rings were looked at before.
    pub(super) fn begin(&mut self, micros: u64, records: &[Record]) -> Vec<Record> {
        (self.last, self.full) = (Instant::now(), 0);
        if std::mem::take(&mut self.is_wanted) {
            self.last_wanted = Some(self.last);
        }
        self.under_way = Some((micros, HashSet::new()));
        self.note(records);
        self.continuing.begin(micros)
    }

    /// Takes note of events.
    pub(super) fn note(&mut self, records: &[Record]) {
        let Some((_, touched)) = &mut self.under_way else { return };
        touched.extend(records.iter().filter_map(|record| match &record.event {
            Event::Binding(..) | Event::Block(..) => key(record),
            Event::Mapping(_)
            | Event::Session(..)
            | Event::Portless(..)
            | Event::Started
            | Event::Stopped
            | Event::Lost(..)
            | Event::Stepped(_)
            | Event::Limit(..)
            | Event::Notice(_) => None,
        }));
        if touched.len() > TOUCHED {
            self.under_way = None;
            self.is_wanted = true;
        }
    }

    /// The records of some rows.
    pub(super) fn records(&mut self, rows: &[Listed]) -> Vec<Record> {
        let Some((micros, touched)) = &self.under_way else { return Vec::new() };
        let mut records = Vec::new();
        for row in rows {
            let Listed { protocol, inside, outside, is_static, .. } = *row;
            let Some(translator) = self.names.get(row.translator).map(Arc::clone) else { continue };
            let binding = Binding { translator, protocol, inside, outside, is_static };
            records.extend(self.continuing.records(*micros, row.translator, binding));
        }
        records.retain(|record| key(record).is_none_or(|key| !touched.contains(&key)));
        records
    }

    /// Whether none is under way.
    #[cfg(test)]
    pub(super) const fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// It ends.
    pub(super) fn end(&mut self) {
        self.under_way = None;
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
        let Binding { protocol, inside, outside, .. } =
            binding("[2001:db8::1]:5", &format!("192.0.2.1:{port}"));
        Listed { translator: 0, protocol, inside, outside, is_static: false }
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
        listing.end();
        assert!(listing.records(&[row(3)]).is_empty());
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
        listing.end();
        assert!(!listing.is_due(1));
        listing.want();
        assert!(listing.is_due(100), "events were lost");
        listing.begin(2, &[]);
        listing.want();
        listing.end();
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
    }
}
