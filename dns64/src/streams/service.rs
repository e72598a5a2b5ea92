//! The threads for TCP, TLS and HTTPS: one for clients, one for upstreams. Each has its own runtime: TLS handshakes of clients would delay the resolvers,
//! the control thread and the queries to upstreams.

use super::admission::Admission;
use super::certificate::Certificate;
use super::counters::{Event, StreamCounters};
use super::dealing::Dealing;
use super::gate::Gate;
use super::listener::{ClientTransport, DOT, HTTP1, HTTP2, Shared, bind, listen};
use super::runtime::RuntimeThread;
use super::settings::{StreamFault, StreamSettings};
use crate::seed::unpredictable;
use crate::{Posts, UpstreamQuery};
use sixway_control::dns64::Access;
use sixway_link::{Listeners, Listens};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

/// How often the certificate files are checked for changes.
const LOOK: Duration = Duration::from_secs(10);
/// How often binding an address is retried that is not this host's yet.
const AGAIN: Duration = Duration::from_secs(1);

/// The running servers and upstream connections; they end when this is dropped.
#[derive(Debug)]
pub struct Streams {
    counters: StreamCounters,
    admission: Admission,
    gate: Gate,
    certificate: Option<Arc<Certificate>>,
    changed: Arc<Notify>,
    listening: Vec<SocketAddr>,
    /// The listening sockets, for the next process.
    listeners: Arc<Mutex<Listeners>>,
    dealing: Dealing,
    /// Where clients are served.
    pub(super) clients: Option<RuntimeThread>,
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
    /// Listens, and starts the threads. An address that is not this host's yet is tried again until it is.
    ///
    /// # Errors
    /// What is wrong with the settings, or what the kernel refuses.
    pub fn start(settings: &StreamSettings, context: StreamContext) -> Result<Self, StreamFault> {
        Self::start_with(settings, context, &mut Listeners::default())
    }

    /// The same, at sockets of the previous process where there are some; those that are used are taken.
    ///
    /// # Errors
    /// What is wrong with the settings, or what the kernel refuses.
    pub fn start_with(
        settings: &StreamSettings,
        context: StreamContext,
        inherited: &mut Listeners,
    ) -> Result<Self, StreamFault> {
        let certificate = certificate(settings)?;
        let counters = StreamCounters::default();
        let mut dealing = Dealing::start(counters.clone()).map_err(StreamFault::Thread)?;
        let prepared = dealing.prepare(&settings.upstreams)?;
        let clients = RuntimeThread::start("dns-streams").map_err(StreamFault::Thread)?;
        let admission = Admission::new(settings.bounds, unpredictable());
        let gate = Gate::new(context.access);
        let shared = Shared {
            posts: context.posts,
            admission: admission.clone(),
            gate: gate.clone(),
            counters: counters.clone(),
        };
        let changed = Arc::default();
        let listeners = Arc::default();
        let sockets = Sockets { inherited, kept: &listeners };
        let certified = certificate.as_ref();
        let listening = listen_everywhere(clients.handle(), settings, certified, (&shared, sockets))?;
        if let Some(certificate) = &certificate {
            clients.handle().spawn(keep(Arc::clone(certificate), Arc::clone(&changed)));
        }
        dealing.deal_out(prepared, context.queries);
        Ok(Self {
            counters,
            admission,
            gate,
            certificate,
            changed,
            listening,
            listeners,
            dealing,
            clients: Some(clients),
        })
    }

    /// Other settings from now on: bounds, clients, upstreams, and the certificate's files, which are read. Connections stay, with clients
    /// and with those upstreams that stay. The addresses are those of the start: those in the settings are not examined. `queries` is a new
    /// channel, whose sender is given to the resolvers' threads afterwards. Earlier queries go to the previous upstreams.
    ///
    /// # Errors
    /// What is wrong with the settings. Nothing has changed then.
    pub fn reconfigure(
        &mut self,
        settings: &StreamSettings,
        access: Access,
        queries: mpsc::Receiver<UpstreamQuery>,
    ) -> Result<(), StreamFault> {
        let prepared = self.dealing.prepare(&settings.upstreams)?;
        if let Some(certificate) = &self.certificate {
            let (chain, key) = settings.certificate.as_ref().ok_or(StreamFault::NoCertificate)?;
            certificate.replace(chain, key).map_err(StreamFault::Certificate)?;
        }
        self.admission.set_bounds(settings.bounds);
        self.gate.set(access);
        self.dealing.deal_out(prepared, queries);
        Ok(())
    }

    /// Others may connect from now on. Connections that there are stay; their queries are judged by the resolver.
    pub fn set_access(&self, access: Access) {
        self.gate.set(access);
    }

    /// Ends for the next process: the sockets, in which connections wait. Those that there are end.
    #[must_use]
    pub fn leave(self) -> Listeners {
        let listeners = Arc::clone(&self.listeners);
        drop(self);
        std::mem::take(&mut *listeners.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Their data for the admin API.
    #[must_use]
    pub fn view(&self) -> StreamView {
        StreamView { counters: self.counters.clone(), admission: self.admission.clone() }
    }

    /// Where it listens, in the order of the settings: TCP, TLS, HTTPS.
    #[must_use]
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// The certificate's files are examined now, and not only within 10 s.
    pub fn look_at_certificate(&self) {
        self.changed.notify_one();
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        // Clients wait for upstreams: they go first.
        drop(self.clients.take());
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
    runtime: &Handle,
    settings: &StreamSettings,
    certificate: Option<&Arc<Certificate>>,
    (shared, mut sockets): (&Shared, Sockets<'_>),
) -> Result<Vec<SocketAddr>, StreamFault> {
    let server = |protocols: &[&[u8]]| {
        let certificate = certificate.ok_or(StreamFault::NoCertificate)?;
        certificate.server(protocols).map_err(StreamFault::Certificate)
    };
    let mut listening = Vec::new();
    let mut listen_at = |addresses: &[SocketAddr], transport: &ClientTransport| {
        for address in addresses {
            listening.push(start_listening(runtime, *address, transport, (shared, &mut sockets))?);
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

/// Listens, or retries; returns the address.
fn start_listening(
    runtime: &Handle,
    address: SocketAddr,
    transport: &ClientTransport,
    (shared, sockets): (&Shared, &mut Sockets<'_>),
) -> Result<SocketAddr, StreamFault> {
    let within = runtime.enter();
    let (transport, shared) = (transport.clone(), shared.clone());
    let kept = Arc::clone(sockets.kept);
    match sockets.bind(address) {
        Ok(listener) => {
            share(&kept, &listener);
            let bound = listener.local_addr().unwrap_or(address);
            runtime.spawn(listen(listener, transport, shared));
            Ok(bound)
        }
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            warn!("{address} (TCP) is not an address of this host: will be bound when the address appears");
            runtime.spawn(async move {
                let Some(listener) = bind_later(address).await else { return };
                info!("listening on {address} (TCP)");
                share(&kept, &listener);
                listen(listener, transport, shared).await;
            });
            Ok(address)
        }
        Err(error) => Err(StreamFault::Listen(address, error)),
    }
    .inspect(|_| drop(within))
}

/// The sockets that the previous process left, and those that the next one gets.
struct Sockets<'l> {
    inherited: &'l mut Listeners,
    kept: &'l Arc<Mutex<Listeners>>,
}

impl Sockets<'_> {
    fn bind(&mut self, address: SocketAddr) -> io::Result<TcpListener> {
        match self.inherited.take(address, Listens::Connections).pop() {
            Some(inherited) => {
                let listener = std::net::TcpListener::from(inherited);
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener)
            }
            None => bind(address),
        }
    }
}

/// One that cannot be shared is closed for a moment when the next process begins.
fn share(kept: &Mutex<Listeners>, listener: &TcpListener) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = kept.share(listener.as_fd()) {
        warn!("a socket cannot be handed over: {error}");
    }
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

/// Checks the certificate's files for changes, without end.
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
