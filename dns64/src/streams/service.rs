//! The thread for TCP, TLS and HTTPS. It has its own runtime: TLS handshakes would delay the resolvers, and clients' connections the control thread.

use super::admission::Admission;
use super::certificate::Certificate;
use super::counters::{Event, StreamCounters};
use super::gate::Gate;
use super::listener::{ClientTransport, DOT, HTTP1, HTTP2, Shared, bind, listen};
use super::settings::{StreamFault, StreamSettings};
use super::upstream::{Keeper, StreamUpstream};
use crate::{Posts, UpstreamQuery};
use sixway_control::dns64::Access;
use sixway_link::{Duty, give_up};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

/// How often the certificate files are checked for changes.
const LOOK: Duration = Duration::from_secs(10);
/// How often binding an address is retried that is not this host's yet.
const AGAIN: Duration = Duration::from_secs(1);
/// Questions that wait for one upstream's connections to look at them.
const ROOM: usize = 1_024;

/// The running servers and upstream connections; they end when this is dropped.
#[derive(Debug)]
pub struct Streams {
    counters: StreamCounters,
    admission: Admission,
    gate: Gate,
    changed: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    listening: Vec<SocketAddr>,
}

/// The counters for the admin API.
#[derive(Clone, Debug)]
pub struct StreamView {
    counters: StreamCounters,
    admission: Admission,
}

impl StreamView {
    /// How often something came.
    #[must_use]
    pub fn of(&self, event: Event) -> u64 {
        self.counters.of(event)
    }

    /// Connections of clients that there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.admission.connections()
    }
}

/// The parts that the connections need.
pub struct StreamContext {
    /// The channels to the resolvers.
    pub posts: Posts,
    /// Which clients may connect; others are closed before anything is read.
    pub access: Access,
    /// Queries for upstreams.
    pub queries: mpsc::Receiver<UpstreamQuery>,
}

impl Streams {
    /// Listens, and starts the thread. An address that is not this host's yet is tried again until it is.
    ///
    /// # Errors
    /// What is wrong with the settings, or what the kernel refuses.
    pub fn start(settings: &StreamSettings, context: StreamContext) -> Result<Self, StreamFault> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(StreamFault::Thread)?;
        let mut streams = Self {
            counters: StreamCounters::default(),
            admission: Admission::new(settings.bounds),
            gate: Gate::new(context.access.clone()),
            changed: Arc::default(),
            stop: None,
            thread: None,
            listening: Vec::new(),
        };
        match streams.begin(&runtime, settings, context) {
            Ok(()) => streams.run(runtime),
            Err(fault) => {
                // The caller may be within a runtime, where waiting for one is not allowed.
                runtime.shutdown_background();
                Err(fault)
            }
        }
    }

    /// Everything that can go wrong.
    fn begin(
        &mut self,
        runtime: &Runtime,
        settings: &StreamSettings,
        context: StreamContext,
    ) -> Result<(), StreamFault> {
        let certificate = certificate(settings)?;
        let upstreams: Result<Vec<_>, _> = settings.upstreams.iter().map(|it| it.prepare()).collect();
        let upstreams = upstreams?;
        let shared = Shared {
            posts: context.posts,
            admission: self.admission.clone(),
            gate: self.gate.clone(),
            counters: self.counters.clone(),
        };
        self.listening = listen_everywhere(runtime, settings, certificate.as_ref(), &shared)?;
        if let Some(certificate) = certificate {
            runtime.spawn(keep(certificate, Arc::clone(&self.changed)));
        }
        runtime.spawn(deal_out(upstreams, context.queries, self.counters.clone()));
        Ok(())
    }

    fn run(mut self, runtime: Runtime) -> Result<Self, StreamFault> {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("dns-streams".into()).spawn(move || {
            if let Err(error) = give_up(Duty::Listening) {
                tracing::warn!("a DNS thread keeps its privileges: {error}");
            }
            // It stops in either case.
            let _ = runtime.block_on(stopped);
        });
        self.thread = Some(thread.map_err(StreamFault::Thread)?);
        self.stop = Some(stop);
        Ok(self)
    }

    /// Others may connect from now on. Connections that there are stay; their queries are judged by the resolver.
    pub fn set_access(&self, access: Access) {
        self.gate.set(access);
    }

    /// What is shown of them.
    #[must_use]
    pub fn view(&self) -> StreamView {
        StreamView { counters: self.counters.clone(), admission: self.admission.clone() }
    }

    /// Where it listens, in the order of the settings: TCP, TLS, HTTPS.
    #[must_use]
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// The certificate's files are looked at now, and not only within 10 s.
    pub fn look_at_certificate(&self) {
        self.changed.notify_one();
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn certificate(settings: &StreamSettings) -> Result<Option<Arc<Certificate>>, StreamFault> {
    if settings.tls.is_empty() && settings.https.is_empty() {
        return Ok(None);
    }
    let (certificate, key) = settings.certificate.as_ref().ok_or(StreamFault::NoCertificate)?;
    Certificate::read(certificate, key).map(Some).map_err(StreamFault::Certificate)
}

fn listen_everywhere(
    runtime: &Runtime,
    settings: &StreamSettings,
    certificate: Option<&Arc<Certificate>>,
    shared: &Shared,
) -> Result<Vec<SocketAddr>, StreamFault> {
    let server = |protocols: &[&[u8]]| {
        let certificate = certificate.ok_or(StreamFault::NoCertificate)?;
        certificate.server(protocols).map_err(StreamFault::Certificate)
    };
    let mut listening = Vec::new();
    let mut listen_at = |addresses: &[SocketAddr], transport: &ClientTransport| {
        for address in addresses {
            listening.push(start_listening(runtime, *address, transport, shared)?);
        }
        Ok(())
    };
    listen_at(&settings.tcp, &ClientTransport::Tcp)?;
    if !settings.tls.is_empty() {
        listen_at(&settings.tls, &ClientTransport::Tls(server(&[DOT])?))?;
    }
    if !settings.https.is_empty() {
        listen_at(&settings.https, &ClientTransport::Https(server(&[HTTP2, HTTP1])?))?;
    }
    Ok(listening)
}

/// Listens, or goes on trying to; says where.
fn start_listening(
    runtime: &Runtime,
    address: SocketAddr,
    transport: &ClientTransport,
    shared: &Shared,
) -> Result<SocketAddr, StreamFault> {
    let within = runtime.enter();
    let (transport, shared) = (transport.clone(), shared.clone());
    match bind(address) {
        Ok(listener) => {
            let bound = listener.local_addr().unwrap_or(address);
            runtime.spawn(listen(listener, transport, shared));
            Ok(bound)
        }
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            warn!("{address} (TCP) is not an address of this host: will be bound when the address appears");
            runtime.spawn(async move {
                let Some(listener) = bind_later(address).await else { return };
                info!("listening on {address} (TCP)");
                listen(listener, transport, shared).await;
            });
            Ok(address)
        }
        Err(error) => Err(StreamFault::Listen(address, error)),
    }
    .inspect(|_| drop(within))
}

async fn bind_later(address: SocketAddr) -> Option<TcpListener> {
    loop {
        sleep(AGAIN).await;
        match bind(address) {
            Ok(listener) => return Some(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) => {
                error!("{}", StreamFault::Listen(address, error));
                return None;
            }
        }
    }
}

/// Looks at the certificate's files for ever.
async fn keep(certificate: Arc<Certificate>, changed: Arc<Notify>) {
    loop {
        let _ = timeout(LOOK, changed.notified()).await;
        match certificate.look_again() {
            Ok(true) => info!("loaded a new certificate for DNS over TLS and HTTPS"),
            Ok(false) => {}
            Err(fault) => warn!("{fault}; the previous certificate stays in use"),
        }
    }
}

/// Gives each upstream its questions.
async fn deal_out(
    upstreams: Vec<StreamUpstream>,
    mut queries: mpsc::Receiver<UpstreamQuery>,
    counters: StreamCounters,
) {
    let keepers: Vec<mpsc::Sender<UpstreamQuery>> = upstreams
        .into_iter()
        .map(|upstream| {
            let (sender, receiver) = mpsc::channel(ROOM);
            tokio::spawn(Keeper::new(upstream, counters.clone()).run(receiver));
            sender
        })
        .collect();
    while let Some(query) = queries.recv().await {
        // One that finds no room, or no upstream, is dropped, and so told to be closed.
        if let Some(keeper) = keepers.get(query.upstream) {
            let _ = keeper.try_send(query);
        }
    }
}
