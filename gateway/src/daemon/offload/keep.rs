//! Keeps the programs as the host and the tunnels change.

use super::exchange::ProgramExchange;
use super::offered::{not_carried, not_hooked};
use crate::config::Surroundings;
use crate::daemon::fast_path_handle::FastPathHandle;
use crate::fast_path::{Facts, Keeper};
use sixway_fastpath::{FastPathError, Loaded, Prepared};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The programs and their view of the host.
pub(in crate::daemon) struct Offload<'c> {
    exchange: Mutex<ProgramExchange<'c>>,
    /// Other programs may be needed.
    changed: Notify,
    carried: Arc<FastPathHandle>,
}

impl<'c> Offload<'c> {
    pub(super) fn new(exchange: ProgramExchange<'c>, carried: Arc<FastPathHandle>) -> Self {
        Self { exchange: Mutex::new(exchange), changed: Notify::default(), carried }
    }

    fn lock(&self) -> MutexGuard<'_, ProgramExchange<'c>> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle for counters.
    pub(in crate::daemon) fn carried(&self) -> &Arc<FastPathHandle> {
        &self.carried
    }

    /// Applies changes of the host's links; `None`: the keeper has ended.
    fn learn(&self, facts: Option<Facts>) {
        match facts {
            Some(facts) => self.lock().learn(facts),
            None => tracing::error!(
                "the fast path receives no more netlink events; it polls the kernel each second instead"
            ),
        }
    }

    /// Applies other addresses and tunnels. Call it before the engines get them: from then on nothing is forwarded that they would drop.
    pub(in crate::daemon) fn change(&self, now: &Surroundings) {
        self.lock().change(now);
        self.changed.notify_one();
    }

    /// Learns reduced path MTUs to remote ends of tunnels from complete ICMPv4 errors, if they are credible. Call it each second, too, so that old ones expire.
    pub(in crate::daemon) fn narrow(&self, errors: &[Arc<[u8]>]) {
        self.lock().narrow(errors);
    }

    /// SYN/ACKs are forwarded by half-open entries, or not, because this host's connection tracking may have to see them. Call it each second.
    pub(in crate::daemon) fn allow_half_open(&self, on: bool) {
        // If it does not exist, it was ended.
        let _ = self.carried.with(|fast_path| {
            fast_path.control().allow_half_open(on);
            Ok(())
        });
    }

    /// The lines printed at start: where programs are attached, and what is passed to the engine.
    pub(in crate::daemon) fn lines(&self) -> Vec<String> {
        let exchange = self.lock();
        let choice = exchange.choice;
        let flows = crate::show::count(self.carried.capacity().into());
        let pins = choice.wanted.pin_path.join(&choice.config.gateway.name);
        let mut lines =
            vec![format!("{} · {flows} flows · pins {}", self.carried.attached(), pins.display())];
        lines.extend(not_hooked(choice.wanted, &exchange.facts.interfaces));
        lines.extend(self.carried.left_out());
        lines.extend(not_carried(choice.config, &exchange.now, &exchange.chosen.offer));
        lines
    }
}

/// Applies events of the keeper and changes, forever.
pub(in crate::daemon) async fn keep(keeper: &mut Option<Keeper>, offload: Option<&Offload<'_>>) {
    let (Some(keeper), Some(offload)) = (keeper, offload) else { return std::future::pending().await };
    let (mut loading, mut hears) = (None, true);
    loop {
        let due = offload.lock().due();
        tokio::select! {
            facts = keeper.next(), if hears => {
                hears = facts.is_some();
                offload.learn(facts);
            }
            () = offload.changed.notified() => {}
            () = until(due) => loading = offload.lock().prepare().map(load),
            loaded = end_of(&mut loading) => {
                if let Some(attached) = offload.lock().attach(loaded) {
                    keeper.set_attached(attached);
                }
            }
        }
    }
}

type Loading = JoinHandle<Result<Loaded, FastPathError>>;

/// Loading takes the kernel a second or two: it runs in another thread.
fn load(prepared: Prepared) -> Loading {
    tokio::task::spawn_blocking(|| prepared.load())
}

/// Waits for the programs being loaded; forever without any.
async fn end_of(loading: &mut Option<Loading>) -> Result<Loaded, FastPathError> {
    let Some(thread) = loading else { return std::future::pending().await };
    let loaded = thread.await;
    *loading = None;
    loaded.unwrap_or_else(|panic| {
        Err(FastPathError::Refused { doing: "load the programs".into(), error: panic.into() })
    })
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
