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

#[cfg(test)]
mod tests {
    use super::super::edits::tests::gateway;
    use super::*;
    use crate::worker::{Command, DumpPage, SubscriberEntry, mailbox};
    use sixway_dataplane::nat::{RowBlocks, SubscriberRow};
    use std::net::Ipv6Addr;

    /// Subscribers of each worker; those with the lowest numbers were refused least.
    const SUBSCRIBERS: u32 = 5_000;

    fn entry(number: u32) -> SubscriberEntry {
        let row = SubscriberRow {
            address: Ipv6Addr::from_bits(0x2001 << 112 | u128::from(number)),
            bits: 128,
            hosts: 1,
            bindings: [0; 3],
            sessions: 0,
            from_outside: 0,
            made: 0,
            per_second: 0,
            refused: u64::from(number) + 1,
            blocks: RowBlocks::default(),
        };
        SubscriberEntry { mechanism: 0, row }
    }

    /// More subscribers than were looked at in the past (4,096), at two workers: each refusal is in one record.
    #[tokio::test]
    async fn all_subscribers_of_all_workers_get_their_records() {
        let mut posts = Vec::new();
        for _ in 0..2 {
            let (post, mailbox) = mailbox().unwrap();
            posts.push(post);
            std::thread::spawn(move || {
                while let Some(command) = mailbox.next() {
                    let Command::Subscribers(dump) = command else { continue };
                    let to = SUBSCRIBERS.min(dump.from.slot + dump.limit as u32);
                    let rows = (dump.from.slot..to).map(entry).collect();
                    let next = (to < SUBSCRIBERS).then_some(Position { mechanism: 0, slot: to });
                    let _ = dump.answer.send(DumpPage { rows, next });
                }
            });
        }
        let gateway = gateway(None, posts);
        assert!(gateway.look_at_refusals().await.is_empty(), "nobody was refused");
        gateway.refusals.lock().unwrap().want();
        let first = gateway.look_at_refusals().await;
        let counts: Vec<u64> = first
            .iter()
            .map(|notice| match notice {
                Notice::Subscriber { translator, refused, .. } if &**translator == "nat64" => *refused,
                other => panic!("{other:?}"),
            })
            .collect();
        // Of both workers, those that were refused most.
        let expected: Vec<u64> = (0..128).flat_map(|n| [u64::from(SUBSCRIBERS) - n; 2]).collect();
        assert_eq!(counts, expected);
        assert!(gateway.look_at_refusals().await.is_empty(), "a minute is not over");
    }
}
