//! The DNS64 in the admin API.

use crate::admin::AdminError;
use crate::dns64::streams::{Event, StreamView};
use crate::dns64::{Posts, Rates, ThreadMessage, Unanswered};
use crate::view::{AnchorRow, CountedRow, Dns64Row, Flush, Flushed};
use crate::view::{Dns64Facts, dns64_row};
use sixway_control::dns64::Wire;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The DNS64, as the admin API sees it.
#[derive(Debug)]
pub struct Dns64View {
    posts: Posts,
    facts: Mutex<Dns64Facts>,
    rates: Mutex<Rates>,
    streams: StreamView,
    /// Trust anchors, and what the operator should look at.
    trust: Mutex<(Vec<AnchorRow>, Vec<String>)>,
}

impl Dns64View {
    pub(super) fn new(posts: Posts, facts: Dns64Facts, streams: StreamView) -> Self {
        let rates = Mutex::new(Rates::new(Instant::now()));
        Self { posts, facts: Mutex::new(facts), rates, streams, trust: Mutex::default() }
    }

    /// A summary of what it serves.
    pub(super) async fn serves(&self) -> String {
        self.row().await.map_or_else(|_| lock(&self.facts).serves.clone(), |row| row.serves)
    }

    /// Other constant facts.
    pub(super) fn set_facts(&self, facts: Dns64Facts) {
        *lock(&self.facts) = facts;
    }

    /// Takes a sample of the counters.
    pub(super) async fn sample(&self) {
        if let Ok(report) = self.posts.report().await {
            self.rates().add(Instant::now(), &report);
        }
    }

    /// All that is shown of it.
    pub(super) async fn row(&self) -> Result<Dns64Row, AdminError> {
        let report = self.posts.report().await.map_err(busy)?;
        let event = |event: &Event| CountedRow {
            name: event.name().into(),
            help: event.help().into(),
            value: self.streams.of(*event),
        };
        let (anchors, warnings) = lock(&self.trust).clone();
        let facts = lock(&self.facts).clone();
        Ok(Dns64Row {
            anchors,
            warnings,
            connections: self.streams.connections() as u64,
            streams: Event::ALL.iter().map(event).collect(),
            ..dns64_row(&facts, &report, &self.rates())
        })
    }

    /// Forgets answers.
    pub(super) async fn flush(&self, flush: &Flush) -> Result<Flushed, AdminError> {
        let name = which(flush).map_err(AdminError::BadRequest)?;
        let answers = self.posts.flush(&name).await.map_err(busy)?;
        Ok(Flushed { answers: answers as u64 })
    }

    fn rates(&self) -> MutexGuard<'_, Rates> {
        lock(&self.rates)
    }

    /// Tells all threads something.
    pub(super) fn tell(&self, message: impl Fn() -> ThreadMessage) {
        for post in self.posts.all() {
            if let Err(error) = post.send(message()) {
                tracing::error!("DNS64: {error}");
            }
        }
    }

    /// Records the trust anchors, and what is wrong with them.
    pub(super) fn see_trust(&self, anchors: Vec<AnchorRow>, warnings: Vec<String>) {
        *lock(&self.trust) = (anchors, warnings);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy(error: Unanswered) -> AdminError {
    AdminError::Busy(error.to_string())
}

/// The name that is to be forgotten, the root for all; else what is wrong.
fn which(flush: &Flush) -> Result<Wire, String> {
    match (&flush.name, flush.all) {
        (None, Some(true)) => Ok(Wire([0].into())),
        (Some(name), None | Some(false)) => wire(name),
        (Some(_), Some(true)) => Err("name and all cannot be combined; pass one".into()),
        (None, None | Some(false)) => Err("name is missing; pass name, or all=true".into()),
    }
}

/// A name in lower-case wire form; else what is wrong with it.
fn wire(text: &str) -> Result<Wire, String> {
    use domain::base::name::{Name, ToName};
    let name: Name<Vec<u8>> =
        text.parse().map_err(|error| format!("{text:?} is not a domain name: {error}"))?;
    Ok(Wire(name.to_canonical_name::<Vec<u8>>().into_octets().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_forgotten_is_named_one_way() {
        let flush = |name: Option<&str>, all| which(&Flush { name: name.map(Into::into), all });
        assert_eq!(flush(Some("WWW.example"), None).unwrap().0[..], *b"\x03www\x07example\x00");
        assert_eq!(flush(Some("example."), Some(false)).unwrap().0[..], *b"\x07example\x00");
        assert_eq!(flush(None, Some(true)).unwrap().0[..], *b"\x00");
        for (name, all) in [(None, None), (None, Some(false)), (Some("a"), Some(true)), (Some("a..b"), None)]
        {
            assert!(flush(name, all).is_err(), "{name:?} {all:?}");
        }
    }
}
