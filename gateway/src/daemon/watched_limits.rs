//! What is looked at regularly: alarms, who was refused, and what is drained.

use super::gateway::Gateway;
use super::refusals::Refused;
use crate::admin::Filter;
use crate::event_log::Notice;
use crate::inside_endpoint;
use crate::show::count;
use crate::worker::{Position, Table};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long subscribers are looked at without a break.
const PATIENCE: Duration = Duration::from_secs(5);

/// Records that the event log's thread is given at a time, and the pause in which it takes them.
const NOTICES: usize = 32;
const NOTICES_PAUSE: Duration = Duration::from_millis(50);

/// Seconds between two looks at what is being drained.
const DRAIN_LOOK: u64 = 10;

impl Gateway {
    /// Judges all tables, and reports what changed in the log and in the event log.
    pub(super) fn judge_alarms(&self, tables: &[Table]) {
        let mut alarms = self.alarms();
        for ((mechanism, translator), table) in
            self.facts.mechanisms.iter().zip(&self.facts.translators).zip(tables)
        {
            for change in alarms.judge(&mechanism.name, table, translator.pool.alarm) {
                let what = format!(
                    "{}: {} of {} {}",
                    mechanism.name,
                    count(change.used),
                    count(change.capacity),
                    change.resource.replace('_', " ")
                );
                match change.is_raised {
                    true => tracing::warn!("alarm raised: {what} are in use"),
                    false => tracing::info!("alarm cleared: {what} are in use"),
                }
                if let Some(events) = self.event_log() {
                    events.notice(Notice::Alarm(change));
                }
            }
        }
    }

    /// Records which subscribers were refused, if that is due.
    pub(super) async fn record_refusals(&self) {
        let Some(events) = self.event_log() else { return };
        let due = self.look_at_refusals().await;
        // The log's thread takes a bounded number of them at a time.
        for some in due.chunks(NOTICES) {
            some.iter().cloned().for_each(|notice| events.notice(notice));
            tokio::time::sleep(NOTICES_PAUSE).await;
        }
    }

    /// Looks at subscribers for a bounded time, and goes on the next time. At the end, which were refused.
    async fn look_at_refusals(&self) -> Vec<Notice> {
        let refusals = || self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let Some(mut at) = refusals().next(began) else { return Vec::new() };
        while at.0 < self.workers() {
            let left = PATIENCE.saturating_sub(began.elapsed());
            let page = tokio::time::timeout(left, self.subscribers_of(at.0, at.1, &Filter::default())).await;
            let Ok(Ok(page)) = page else { return Vec::new() };
            let mut refusals = refusals();
            page.rows.iter().for_each(|entry| refusals.see(at.0, entry.mechanism, &entry.row));
            at = page.next.map_or((at.0 + 1, Position::default()), |position| (at.0, position));
            refusals.go_on(at);
        }
        let records = refusals().end();
        records.into_iter().map(|(who, refused)| self.refusal(who, refused)).collect()
    }

    fn refusal(&self, who: Refused, refused: u64) -> Notice {
        Notice::Subscriber {
            translator: self.mechanism(who.mechanism).into(),
            subscriber: inside_endpoint::prefix_text(who.address, who.bits).into(),
            refused,
        }
    }

    /// Logs which addresses are drained.
    pub(super) async fn tell_drained(&self) {
        let is_configured = || self.facts.translators.iter().any(|one| !one.pool.draining.is_empty());
        let is_due = self.started.elapsed().as_secs().is_multiple_of(DRAIN_LOOK);
        if !is_due || self.drained().is_empty() && !is_configured() {
            return;
        }
        // What is not known is reported the next time.
        let Ok(rows) = self.draining_rows().await else { return };
        let news = self.drain_log.lock().unwrap_or_else(PoisonError::into_inner).news(&rows);
        news.iter().for_each(|text| tracing::info!("{text}"));
    }
}
