//! The thread for upstreams: each upstream has a [`Keeper`], which gets its questions.

use super::certificate::{FileTrace, trace};
use super::counters::StreamCounters;
use super::runtime::RuntimeThread;
use super::settings::{StreamFault, TransportSettings, UpstreamSettings};
use super::upstream::{Keeper, StreamUpstream};
use crate::UpstreamQuery;
use std::io;
use tokio::sync::mpsc;

/// Questions that wait for one upstream's connections to look at them.
const ROOM: usize = 1_024;

/// What tells an upstream from another: its settings, and the state of its authorities' file.
type Identity = (UpstreamSettings, Option<FileTrace>);

/// The upstreams of the present settings. A keeper ends when all its senders are dropped.
#[derive(Debug)]
pub(super) struct Dealing {
    counters: StreamCounters,
    upstreams: Vec<(Identity, mpsc::Sender<UpstreamQuery>)>,
    thread: RuntimeThread,
}

/// Upstreams that can be asked soon.
#[derive(Debug)]
pub(super) struct Prepared(Vec<(Identity, StreamUpstream)>);

impl Dealing {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel has no thread or descriptor left.
    pub(super) fn start(counters: StreamCounters) -> io::Result<Self> {
        Ok(Self { counters, upstreams: Vec::new(), thread: RuntimeThread::start("dns-upstreams")? })
    }

    /// Reads what upstreams need. Nothing changes yet.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(super) fn prepare(&self, upstreams: &[UpstreamSettings]) -> Result<Prepared, StreamFault> {
        let prepare = |upstream: &UpstreamSettings| Ok((identity(upstream), upstream.prepare()?));
        upstreams.iter().map(prepare).collect::<Result<_, _>>().map(Prepared)
    }

    /// Gives these upstreams the questions that come by `queries`. Those that are the same as before keep their connections.
    pub(super) fn deal_out(&mut self, prepared: Prepared, mut queries: mpsc::Receiver<UpstreamQuery>) {
        let upstreams = prepared.0.into_iter().map(|(identity, upstream)| {
            let known = self.upstreams.iter().find(|(known, _)| *known == identity);
            let sender = known.map_or_else(|| self.keep(upstream), |(_, sender)| sender.clone());
            (identity, sender)
        });
        self.upstreams = upstreams.collect();
        let keepers: Vec<_> = self.upstreams.iter().map(|(_, sender)| sender.clone()).collect();
        self.thread.handle().spawn(async move {
            while let Some(query) = queries.recv().await {
                // A query without room, or without an upstream, is dropped, which closes it.
                if let Some(keeper) = keepers.get(query.upstream) {
                    let _ = keeper.try_send(query);
                }
            }
        });
    }

    fn keep(&self, upstream: StreamUpstream) -> mpsc::Sender<UpstreamQuery> {
        let (sender, receiver) = mpsc::channel(ROOM);
        self.thread.handle().spawn(Keeper::new(upstream, self.counters.clone()).run(receiver));
        sender
    }
}

fn identity(upstream: &UpstreamSettings) -> Identity {
    let ca = match &upstream.way {
        TransportSettings::Tcp => None,
        TransportSettings::Tls { ca, .. } | TransportSettings::Https { ca, .. } => ca.as_deref(),
    };
    (upstream.clone(), ca.and_then(trace))
}
