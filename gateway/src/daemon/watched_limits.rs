//! What is looked at regularly: alarms, who was refused, and what is drained.

use super::gateway::Gateway;
use crate::admin::{By, Ranking};
use crate::event_log::Notice;
use crate::show::count;
use crate::worker::Table;
use std::sync::PoisonError;
use std::time::Duration;

/// Subscribers that are looked at, those that were refused most.
const SUBSCRIBERS: usize = 4_096;

/// How long the workers may take to list them.
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

    /// Records which subscribers were refused.
    pub(super) async fn record_refusals(&self) {
        let Some(events) = self.event_log() else { return };
        let ranking = Ranking { by: Some(By::Refused), top: Some(SUBSCRIBERS), ..Ranking::default() };
        let found = tokio::time::timeout(PATIENCE, self.first_subscribers(&ranking)).await;
        // What is not known is recorded the next time.
        let Ok(Ok(found)) = found else { return };
        let due = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).due(found.rows);
        // The log's thread takes a bounded number of them at a time.
        for some in due.chunks(NOTICES) {
            some.iter().cloned().for_each(|notice| events.notice(notice));
            tokio::time::sleep(NOTICES_PAUSE).await;
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
