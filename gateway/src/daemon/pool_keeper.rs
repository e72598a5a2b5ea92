//! Keeps a dynamic pool's file true, off the packets' path: what changes is appended every few seconds; the whole is
//! written anew each hour (hosts that never fall silent are noted only then), when the file has grown long, and at the end.

use super::backend::Gateway;
use super::pool_file::PoolFile;
use crate::admin::AdminError;
use crate::worker::Command;
use sixway_dataplane::mechanism::siit::dynamic_pool::Record;
use std::time::{Duration, Instant};

/// Between two looks at what has changed.
const APPEND: Duration = Duration::from_secs(2);
/// Between two times that the whole is written.
const REWRITE: Duration = Duration::from_secs(3_600);

/// A mechanism's pool and its file.
#[derive(Debug)]
pub(super) struct PoolKeeper {
    /// The mechanism, by its place in the configuration.
    pub mechanism: u16,
    /// The file.
    pub file: PoolFile,
}

impl PoolKeeper {
    /// Keeps the file, for ever.
    pub(super) async fn keep(&mut self, gateway: &Gateway) {
        let mut tick = tokio::time::interval(APPEND);
        let mut written = Instant::now();
        let mut failing = false;
        loop {
            tick.tick().await;
            let due = written.elapsed() >= REWRITE || self.file.is_long();
            let outcome = if due { self.rewrite(gateway).await } else { self.append(gateway).await };
            if due && outcome.is_ok() {
                written = Instant::now();
            }
            // Said once, not every few seconds.
            if let Err(error) = outcome.as_ref()
                && !failing
            {
                tracing::error!("{}: {error}", self.file.path().display());
            }
            failing = outcome.is_err();
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

    /// Writes the whole. What changes meanwhile is appended later, and the newest line counts.
    pub(super) async fn rewrite(&mut self, gateway: &Gateway) -> Result<(), String> {
        let records = self.all(gateway).await.map_err(|error| error.to_string())?;
        self.file.rewrite(&records).map_err(|error| error.to_string())
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
