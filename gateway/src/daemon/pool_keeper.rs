//! Keeps a dynamic pool's file up to date, outside the packet path: changes are appended every few seconds; the file is rewritten each hour
//! (only then are hosts recorded that are never idle), when the file has become long, and at the end.

use super::gateway::Gateway;
use super::pool_file::PoolFile;
use crate::admin::AdminError;
use crate::worker::Command;
use sixway_dataplane::mechanism::siit::dynamic_pool::Record;
use std::time::{Duration, Instant};

/// Interval between two checks for changes.
const APPEND: Duration = Duration::from_secs(2);
/// Between two times that the whole is written.
const REWRITE: Duration = Duration::from_secs(3_600);

/// A mechanism's pool and its file.
#[derive(Debug)]
pub(super) struct PoolKeeper {
    mechanism: u16,
    file: PoolFile,
    written: Instant,
    failing: bool,
}

/// Keeps the files of all pools, for ever.
pub(super) async fn keep(keepers: &mut [PoolKeeper], gateway: &Gateway) {
    let mut tick = tokio::time::interval(APPEND);
    loop {
        tick.tick().await;
        for keeper in keepers.iter_mut() {
            keeper.turn(gateway).await;
        }
    }
}

/// Writes all files a last time.
pub(super) async fn finish(keepers: &mut [PoolKeeper], gateway: &Gateway) {
    for keeper in keepers {
        let outcome = keeper.rewrite(gateway).await;
        keeper.tell(outcome);
    }
}

impl PoolKeeper {
    /// The keeper of the mechanism at this place of the configuration.
    pub(super) fn new(mechanism: u16, file: PoolFile) -> Self {
        Self { mechanism, file, written: Instant::now(), failing: false }
    }

    async fn turn(&mut self, gateway: &Gateway) {
        let due = self.written.elapsed() >= REWRITE || self.file.is_long();
        let outcome = if due { self.rewrite(gateway).await } else { self.append(gateway).await };
        self.tell(outcome);
    }

    /// Says a failure once, not every few seconds.
    fn tell(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.failing = false,
            Err(_) if self.failing => {}
            Err(error) => {
                tracing::error!("{}: {error}", self.file.path().display());
                self.failing = true;
            }
        }
    }

    async fn append(&mut self, gateway: &Gateway) -> Result<(), String> {
        let mut records = Vec::new();
        let mut incomplete = false;
        for worker in 0..gateway.workers() {
            let changes = gateway.ask(worker, |answer| Command::PoolChanges(self.mechanism, answer)).await;
            let changes = changes.map_err(|error| error.to_string())?;
            incomplete |= changes.incomplete;
            records.extend(changes.records);
        }
        if incomplete {
            return self.rewrite(gateway).await;
        }
        self.file.append(&records).map_err(|error| error.to_string())
    }

    /// Writes the whole file. Changes made meanwhile are appended later, and the newest line counts.
    async fn rewrite(&mut self, gateway: &Gateway) -> Result<(), String> {
        let records = self.all(gateway).await.map_err(|error| error.to_string())?;
        self.file.rewrite(&records).map_err(|error| error.to_string())?;
        self.written = Instant::now();
        Ok(())
    }

    async fn all(&self, gateway: &Gateway) -> Result<Vec<Record>, AdminError> {
        let mut records = Vec::new();
        for worker in 0..gateway.workers() {
            gateway.ask(worker, |answer| Command::PoolChanges(self.mechanism, answer)).await?;
            let mut from = Some(0);
            while let Some(place) = from {
                let hosts = |answer| Command::PoolHosts(self.mechanism, place, answer);
                let (rows, next) = gateway.ask(worker, hosts).await?;
                records.extend(rows);
                from = next;
            }
        }
        Ok(records)
    }
}
