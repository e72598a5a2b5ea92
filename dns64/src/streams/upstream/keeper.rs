//! The connections to one upstream: opens them when queries wait, and retries or fails the queries of closed ones.

use super::backlog::Backlog;
use super::connect::{self, Fault};
use super::connection_end::ConnectionEnd;
use super::https::{self, Resource};
use super::limits::CONNECTIONS;
use super::pipeline;
use super::stream_upstream::{StreamUpstream, UpstreamTransport};
use crate::UpstreamQuery;
use crate::streams::counters::{Event, StreamCounters};
use sixway_control::dns64::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};

/// Delay before the next attempt after a failed connection; queries meanwhile get the same failure.
const BREATH: Duration = Duration::from_millis(250);

/// The connections to one upstream.
#[derive(Debug)]
pub struct Keeper {
    upstream: Arc<StreamUpstream>,
    counters: StreamCounters,
    backlog: Arc<Backlog>,
    connections: JoinSet<ConnectionEnd>,
    /// Connections that are being made.
    opening: Arc<AtomicUsize>,
    failing: Option<(Instant, Fault)>,
}

impl Keeper {
    /// Nothing is connected.
    pub fn new(upstream: StreamUpstream, counters: StreamCounters) -> Self {
        Self {
            upstream: Arc::new(upstream),
            counters,
            backlog: Arc::default(),
            connections: JoinSet::new(),
            opening: Arc::default(),
            failing: None,
        }
    }

    /// Sends queries to the upstream, until no sender is left.
    pub async fn run(mut self, mut queries: mpsc::Receiver<UpstreamQuery>) {
        loop {
            tokio::select! {
                query = queries.recv() => match query {
                    Some(query) => self.take(query),
                    None => return,
                },
                () = self.backlog.has_retired() => self.open_if_needed(),
                Some(ended) = self.connections.join_next() => {
                    // A connection that panicked has dropped its questions, and so told them.
                    if let Ok(ended) = ended {
                        self.account(ended);
                    }
                    self.open_if_needed();
                }
            }
        }
    }

    fn take(&mut self, query: UpstreamQuery) {
        if self.connections.is_empty()
            && let Some((since, fault)) = &self.failing
            && since.elapsed() < BREATH
        {
            return query.reply.give(Err(fault.failure));
        }
        match self.backlog.put(query) {
            Ok(()) => self.open_if_needed(),
            Err(reply) => reply.give(Err(Failure::NoRoom)),
        }
    }

    /// One connection for the waiting queries; another one while the existing ones cannot take them all. Connections that take no more
    /// queries do not count.
    fn open_if_needed(&mut self) {
        let opening = self.opening.load(Ordering::Relaxed);
        let retired = self.backlog.retired().min(CONNECTIONS);
        let is_needed = match self.connections.len().saturating_sub(retired) {
            0 => self.backlog.len() > 0,
            1..CONNECTIONS => opening == 0 && self.backlog.ready() > self.backlog.at_a_time(),
            _ => false,
        };
        if !is_needed {
            return;
        }
        self.opening.fetch_add(1, Ordering::Relaxed);
        let (upstream, backlog, counters) =
            (Arc::clone(&self.upstream), Arc::clone(&self.backlog), self.counters.clone());
        let opening = Opening(Arc::clone(&self.opening));
        self.connections.spawn(async move { converse(&upstream, &backlog, &counters, opening).await });
    }

    /// The handling of the questions of a connection that ended: of one that was of use they go to another, since servers close connections
    /// whenever they like (RFC 7766 §6.2.4).
    fn account(&mut self, ended: ConnectionEnd) {
        let failure = ended.fault.as_ref().map_or(Failure::Closed, |fault| fault.failure);
        if !ended.was_open {
            self.counters.count(Event::UpstreamFailed);
        } else if !ended.unanswered.is_empty() {
            self.counters.count(Event::UpstreamClosed);
            if !ended.was_silent {
                self.backlog.was_closed_after(ended.answered);
            }
        }
        let was_of_use = ended.answered > 0;
        for waiting in ended.unanswered {
            let refused =
                if was_of_use { self.backlog.put_back(waiting).err() } else { Some(waiting.into_reply()) };
            if let Some(reply) = refused {
                reply.give(Err(failure));
            }
        }
        match ended.fault {
            Some(fault) if !was_of_use && !ended.was_silent => self.tell_failing(fault),
            Some(_) | None => {
                if self.failing.take().is_some() {
                    info!("connected to upstream {} again", self.upstream.address);
                }
            }
        }
    }

    /// A connection failed. If it was the only one, waiting queries fail, too.
    fn tell_failing(&mut self, fault: Fault) {
        let is_new = self.failing.as_ref().is_none_or(|(_, known)| *known != fault);
        if is_new {
            warn!("upstream {}: {}", self.upstream.address, fault.why);
        }
        if self.connections.is_empty() {
            for reply in self.backlog.take_all() {
                reply.give(Err(fault.failure));
            }
        }
        self.failing = Some((Instant::now(), fault));
    }
}

/// A connection that is being established, until it succeeds or fails.
struct Opening(Arc<AtomicUsize>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The lifetime of a connection.
async fn converse(
    upstream: &StreamUpstream,
    backlog: &Backlog,
    counters: &StreamCounters,
    opening: Opening,
) -> ConnectionEnd {
    let opened = || {
        drop(opening);
        counters.count(Event::UpstreamOpened);
    };
    match &upstream.transport {
        UpstreamTransport::Tcp => match connect::tcp(upstream.address).await {
            Ok(stream) => {
                opened();
                pipeline::run(stream, backlog).await
            }
            Err(fault) => ConnectionEnd::before_use(fault),
        },
        UpstreamTransport::Tls { name, config } => match connect::tls(upstream.address, name, config).await {
            Ok(stream) => {
                opened();
                pipeline::run(stream, backlog).await
            }
            Err(fault) => ConnectionEnd::before_use(fault),
        },
        UpstreamTransport::Https { name, config, uri } => {
            match connect::tls(upstream.address, name, config).await {
                Ok(stream) => {
                    opened();
                    https::run(stream, &Resource { uri: uri.clone() }, backlog).await
                }
                Err(fault) => ConnectionEnd::before_use(fault),
            }
        }
    }
}
