//! Lists the bindings in the event log, at the start and when the log requests it.

use super::gateway::Gateway;
use crate::admin::{AdminError, Filter};
use crate::event_log::{EventLog, Listed};
use crate::worker::{BindingEntry, Command, Dump, DumpPage, Position};
use sixway_dataplane::nat::NatProtocol;
use std::time::Duration;

/// Between two looks at whether it is due.
const LOOK: Duration = Duration::from_secs(5);
/// While the log has too much to write.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a worker that is busy is asked again.
const TRIES: usize = 500;
/// Rows that are read together.
const ROWS: usize = 1_000;

/// Lists them whenever it is due, for ever.
pub(super) async fn keep(gateway: &Gateway) {
    let Some(log) = gateway.event_log() else { return std::future::pending().await };
    let mut look = tokio::time::interval(LOOK);
    loop {
        look.tick().await;
        if log.is_listing_due() {
            list(gateway, log).await;
        }
    }
}

async fn list(gateway: &Gateway, log: &EventLog) {
    if !log.begin_listing() {
        return;
    }
    let mut is_whole = true;
    for worker in 0..gateway.workers() {
        if let Err(error) = list_of(gateway, log, worker).await {
            tracing::warn!("event log: the bindings of worker {worker} are not listed: {error}");
            is_whole = false;
        }
    }
    while !log.end_listing(is_whole) {
        tokio::time::sleep(PAUSE).await;
    }
}

async fn list_of(gateway: &Gateway, log: &EventLog, worker: usize) -> Result<(), AdminError> {
    let mut from = Some(Position::default());
    while let Some(place) = from {
        let page = page(gateway, worker, place).await?;
        let mut rows: Vec<Listed> = page.rows.iter().filter_map(listed).collect();
        while let Err(again) = log.list(rows) {
            rows = again;
            tokio::time::sleep(PAUSE).await;
        }
        from = page.next;
    }
    Ok(())
}

/// A page of a worker's bindings. A worker with too many requests is asked again.
async fn page(
    gateway: &Gateway,
    worker: usize,
    from: Position,
) -> Result<DumpPage<BindingEntry>, AdminError> {
    let mut tries = 0;
    loop {
        let dump = |answer| {
            let (filter, rows) = (Filter::default(), Vec::new());
            Command::Bindings(Dump { filter, from, limit: ROWS, parts: None, rows, answer })
        };
        match gateway.ask(worker, dump).await {
            Err(AdminError::Busy(_)) if tries < TRIES => tries += 1,
            outcome => return outcome,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// `None`: it is of a dynamic pool, which is not logged.
fn listed(entry: &BindingEntry) -> Option<Listed> {
    Some(Listed {
        translator: entry.mechanism.into(),
        protocol: NatProtocol::of(entry.protocol?)?,
        softwire: entry.softwire,
        inside: entry.inside,
        outside: entry.outside,
        is_static: entry.kind == "static",
    })
}

#[cfg(test)]
mod tests {
    use super::super::edits::tests::gateway;
    use super::*;
    use crate::worker::mailbox;

    /// Many requests of others, because of which a worker refuses the log's page for a while, do not keep bindings out of the log.
    #[tokio::test]
    async fn a_worker_that_others_keep_busy_is_asked_again() {
        let (post, mailbox) = mailbox().unwrap();
        let gateway = gateway(None, vec![post]);
        std::thread::spawn(move || {
            let mut refused = 0;
            while let Some(command) = mailbox.next() {
                let Command::Bindings(dump) = command else { continue };
                if refused < 3 {
                    // As when too many pages wait: the answer's sender is dropped.
                    refused += 1;
                    continue;
                }
                let next = Some(Position { mechanism: 0, slot: 7 });
                let _ = dump.answer.send(DumpPage { rows: Vec::new(), next });
            }
        });
        let page = page(&gateway, 0, Position::default()).await.unwrap();
        assert_eq!(page.next, Some(Position { mechanism: 0, slot: 7 }));
    }
}
