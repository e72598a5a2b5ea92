//! Questions in progress to one upstream, on all its connections: fair shares of a fixed number.

use super::limits::SLOTS;
use crate::seed::unpredictable;
use sixway_control::dns64::{Payer, Place, Shares};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The slots, and news of them and of the questions that wait for them.
#[derive(Debug)]
pub(super) struct Slots {
    shares: Mutex<Shares>,
    news: Notify,
}

/// A slot that is taken, until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    /// `None`: it is dropped.
    place: Option<Place>,
    of: Arc<Slots>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { shares: Mutex::new(Shares::new(SLOTS, unpredictable())), news: Notify::default() }
    }
}

impl Slots {
    /// A slot, if the payer does not have its share.
    pub(super) fn take(slots: &Arc<Self>, payer: Payer) -> Option<Slot> {
        let place = slots.shares().admit(payer).ok()?;
        Some(Slot { place: Some(place), of: Arc::clone(slots) })
    }

    /// Whether the payer would get one.
    pub(super) fn has_room(&self, payer: Payer) -> bool {
        self.shares().has_room(payer)
    }

    /// A question came.
    pub(super) fn changed(&self) {
        self.news.notify_one();
    }

    /// Waits until a question comes, or a slot is free.
    pub(super) async fn has_changed(&self) {
        self.news.notified().await;
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.of.shares().leave(place);
            self.of.changed();
        }
    }
}
