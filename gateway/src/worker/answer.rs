//! Where a worker's answers go.

use tokio::sync::oneshot;

/// Where an answer goes; the receiver may be gone.
pub type Answer<T> = oneshot::Sender<T>;
