//! The state of a sink of the log: records written, waiting and lost, and since when it has been unavailable.

use crate::view::SinkRow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A sink's state; its thread writes it.
#[derive(Debug)]
pub(super) struct SinkState {
    pub(super) name: Arc<str>,
    has_spool: bool,
    written: AtomicU64,
    spooled: AtomicU64,
    /// All records lost.
    lost: AtomicU64,
    /// Those of them that no record tells of.
    untold: AtomicU64,
    /// When records were lost last.
    lost_last: Mutex<Option<Instant>>,
    away: Mutex<Option<(Instant, String)>>,
}

impl SinkState {
    /// Of a sink that loses events while it is away.
    pub(super) fn new(name: String) -> Arc<Self> {
        Self::of(name, false)
    }

    /// Of a sink with a spool.
    pub(super) fn with_spool(name: String) -> Arc<Self> {
        Self::of(name, true)
    }

    fn of(name: String, has_spool: bool) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            has_spool,
            written: AtomicU64::new(0),
            spooled: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            lost_last: Mutex::new(None),
            away: Mutex::new(None),
        })
    }

    /// Records were written.
    pub(super) fn wrote(&self, records: usize) {
        self.written.fetch_add(records as u64, Relaxed);
    }

    /// Records were lost.
    pub(super) fn lose(&self, records: u64) {
        if records == 0 {
            return;
        }
        *self.lost_last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.lost.fetch_add(records, Relaxed);
        self.untold.fetch_add(records, Relaxed);
    }

    /// Lost records that were not recorded yet; now they are.
    pub(super) fn take_untold(&self) -> u64 {
        self.untold.swap(0, Relaxed)
    }

    /// The record of a loss was lost itself.
    pub(super) fn untell(&self, records: u64) {
        self.untold.fetch_add(records, Relaxed);
    }

    /// The spool has this many octets.
    pub(super) fn spools(&self, octets: u64) {
        self.spooled.store(octets, Relaxed);
    }

    /// It is away; logged when it goes.
    pub(super) fn goes(&self, why: &str) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *away {
            None => {
                tracing::warn!("event log: {}: {why}", self.name);
                *away = Some((Instant::now(), why.to_owned()));
            }
            Some((_, reason)) => why.clone_into(reason),
        }
    }

    /// It can be reached; logged when it returns.
    pub(super) fn returns(&self) {
        if self.away.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("event log: {} is there again", self.name);
        }
    }

    /// As a row.
    pub(super) fn row(&self) -> SinkRow {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let lost_last = *self.lost_last.lock().unwrap_or_else(PoisonError::into_inner);
        SinkRow {
            name: self.name.to_string(),
            written: self.written.load(Relaxed),
            spooled_octets: self.spooled.load(Relaxed),
            lost: self.lost.load(Relaxed),
            has_spool: self.has_spool,
            lost_seconds: lost_last.map(|at| at.elapsed().as_secs()),
            away_seconds: away.as_ref().map(|(since, _)| since.elapsed().as_secs()),
            reason: away.as_ref().map(|(_, why)| why.clone()),
        }
    }
}
