//! Queries for one upstream that no connection has sent yet. Connections take them as they have room. An upstream that closes connections after a number of replies gets at most that many queries at a time: further ones would be lost.

use super::limits::IN_FLIGHT;
use crate::UpstreamQuery;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Questions that wait here at most; a resolver has fewer exchanges in flight.
const ROOM: usize = 4_096;
/// How often a question is sent again after its connection was closed.
const REPEATS: u8 = 4;

/// A question, and how often it was sent.
#[derive(Debug)]
pub struct Waiting {
    /// The query, and who gets the reply.
    pub query: UpstreamQuery,
    sent: u8,
}

/// The questions, in order.
#[derive(Debug)]
pub struct Backlog {
    waiting: Mutex<VecDeque<Waiting>>,
    arrived: Notify,
    /// Questions under way on one connection.
    at_a_time: AtomicUsize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { waiting: Mutex::default(), arrived: Notify::default(), at_a_time: AtomicUsize::new(IN_FLIGHT) }
    }
}

impl Backlog {
    /// How many questions one connection may have under way.
    pub fn at_a_time(&self) -> usize {
        self.at_a_time.load(Ordering::Relaxed)
    }

    /// Notes how many queries a connection has answered so far: one that answers more than the limit gets a higher limit.
    pub fn has_answered(&self, replies: usize) {
        let now = self.at_a_time();
        if now < IN_FLIGHT && replies > now * 2 {
            self.at_a_time.store((now * 2).min(IN_FLIGHT), Ordering::Relaxed);
        }
    }

    /// Notes that a connection closed after this many replies, while queries were waiting.
    pub fn was_closed_after(&self, replies: usize) {
        self.at_a_time.fetch_min(replies.max(1), Ordering::Relaxed);
    }

    /// Appends a query; returns it if the backlog is full.
    ///
    /// # Errors
    /// The backlog is full.
    pub fn put(&self, query: UpstreamQuery) -> Result<(), UpstreamQuery> {
        let mut waiting = self.waiting();
        if waiting.len() >= ROOM {
            return Err(query);
        }
        waiting.push_back(Waiting { query, sent: 0 });
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// The first that is still waited for.
    pub fn take(&self) -> Option<Waiting> {
        let mut waiting = self.waiting();
        loop {
            let mut next = waiting.pop_front()?;
            if !next.query.reply.is_cancelled() {
                next.sent += 1;
                return Some(next);
            }
        }
    }

    /// A question whose connection was closed, to be sent by another; given back if that was tried often enough.
    ///
    /// # Errors
    /// It was sent too often.
    pub fn put_back(&self, waiting: Waiting) -> Result<(), Waiting> {
        if waiting.sent > REPEATS {
            return Err(waiting);
        }
        self.waiting().push_front(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Waits for a question. A stream that cannot take all says so by [`pass_on`](Self::pass_on).
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Wakes another connection if there are questions left.
    pub fn pass_on(&self) {
        if self.len() > 0 {
            self.arrived.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
