//! What the admin API asks of a reload.

use crate::admin::{AdminError, PoolPart};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};

/// Requests that wait.
const WAITING: usize = 4;

/// A request; its answer says whether it is done.
#[derive(Debug)]
pub(in crate::daemon) struct ReloadRequest {
    pub what: Wanted,
    pub answer: oneshot::Sender<Result<(), AdminError>>,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Wanted {
    /// To read the configuration again; with a time, to return to the previous one unless the new one is confirmed within it.
    Reload(Option<Duration>),
    /// The current configuration, with further addresses in a pool.
    PoolWith(PoolPart),
    /// The same without some addresses of a pool.
    PoolWithout(PoolPart),
    /// To keep the new configuration.
    Keep,
    /// To return to the previous one.
    RollBack,
}

/// The channel from the admin API to the task that waits for signals.
#[derive(Debug)]
pub(in crate::daemon) struct ReloadRequests {
    sender: mpsc::Sender<ReloadRequest>,
    receiver: Mutex<mpsc::Receiver<ReloadRequest>>,
}

impl ReloadRequests {
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver: Mutex::new(receiver) }
    }

    /// Waits for the next one.
    pub async fn next(&self) -> ReloadRequest {
        match self.receiver.lock().await.recv().await {
            Some(request) => request,
            // The sender is here.
            None => std::future::pending().await,
        }
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&self, what: Wanted) -> Result<(), AdminError> {
        let busy = || AdminError::Busy("another reload is being prepared; retry".into());
        let (answer, answered) = oneshot::channel();
        self.sender.try_send(ReloadRequest { what, answer }).map_err(|_| busy())?;
        answered.await.map_err(|_| busy())?
    }
}
