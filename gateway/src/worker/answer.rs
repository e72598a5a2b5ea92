//! Where a worker's answers go.

use tokio::sync::oneshot;

/// Where an answer goes; nobody may be waiting any more.
pub type Answer<T> = oneshot::Sender<T>;
