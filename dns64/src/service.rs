//! The DNS threads, from start to end.

use super::post::{Post, Posts, Reconfiguration, ThreadMessage, Unanswered, UpstreamQuery, mailbox};
use super::thread::{Thread, ThreadParts};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sixway_control::dns64::{Access, CookieSecret, LeasedNames, NameMappings, Settings};
use sixway_link::{Clock, Duty, Listeners, Listens, UdpServer, give_up};
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Questions on their way to streams, until the thread for upstreams takes them.
const STREAM_QUERIES: usize = 4_096;

/// A channel for questions on their way to streams.
#[must_use]
pub fn stream_queries() -> (mpsc::Sender<UpstreamQuery>, mpsc::Receiver<UpstreamQuery>) {
    mpsc::channel(STREAM_QUERIES)
}

/// What is to be started.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// What each thread's resolver does.
    pub settings: Settings,
    /// How many threads.
    pub threads: usize,
    /// Whether all datagrams of a client go to one thread, by its prefix, as its streams do; else each flow does.
    pub one_thread_per_client: bool,
    /// The UDP sockets for clients.
    pub listen: Vec<SocketAddr>,
    /// Where upstreams are, in the order of the settings.
    pub upstreams: Vec<SocketAddr>,
    /// Their names.
    pub names: Vec<String>,
    /// Whether each query is written to the log.
    pub query_log: bool,
    /// Names that lead to mappings of a NAT46.
    pub mappings: Option<NameMappings>,
    /// Names of hosts whose addresses are leased.
    pub leases: Option<Arc<dyn LeasedNames>>,
}

/// What a previous process left.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Sockets; those that are used are taken.
    pub listeners: Listeners,
    /// Its cache: a part for each thread.
    pub kept: Vec<Arc<[u8]>>,
    /// What it made secrets for cookies from.
    pub cookie_seed: Option<CookieSecret>,
}

/// What this process leaves.
#[derive(Debug, Default)]
pub struct Left {
    /// Sockets, in which queries wait.
    pub listeners: Listeners,
    /// The cache: a part for each thread.
    pub kept: Vec<Vec<u8>>,
    /// The seed of its secrets for cookies.
    pub cookie_seed: Option<CookieSecret>,
}

/// Why the DNS64 cannot start.
#[derive(Debug)]
pub enum ServiceError {
    /// Listening on an address failed.
    Listen(SocketAddr, io::Error),
    /// A system call failed: what for, and the error.
    Io(&'static str, io::Error),
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => match error.kind() {
                io::ErrorKind::PermissionDenied => write!(
                    f,
                    "sixway needs CAP_NET_BIND_SERVICE to listen on {address} (UDP): ports below 1024 are reserved. Run it as \
                     root, or: setcap cap_net_bind_service+ep $(command -v sixway)"
                ),
                io::ErrorKind::AddrInUse => write!(
                    f,
                    "{address} (UDP) is already in use; find the process with: ss -ulpn 'sport = :{}', and stop it, or set another address in dns64.listen",
                    address.port()
                ),
                _ => write!(f, "cannot listen on {address} (UDP): {error}"),
            },
            Self::Io(what, error) => write!(f, "DNS64: {what}: {error}"),
        }
    }
}

impl std::error::Error for ServiceError {}

/// How clients' datagrams are dealt out.
#[derive(Clone, Copy, Debug)]
struct ThreadDealing {
    threads: usize,
    /// By prefixes of this length; `None`: by flows.
    by: Option<u8>,
}

/// The DNS threads.
#[derive(Debug)]
pub struct Service {
    posts: Posts,
    handles: Vec<JoinHandle<()>>,
    ends: UnboundedReceiver<String>,
    /// Addresses that are not this host's yet.
    absent: Vec<SocketAddr>,
    dealing: ThreadDealing,
    streams: mpsc::Sender<UpstreamQuery>,
    /// The sockets of all threads, for the next process.
    listeners: Listeners,
    /// What all threads make secrets for cookies from, and the next process.
    cookie_seed: CookieSecret,
}

impl Service {
    /// Listens, and starts the threads. Also returns the queries that go to upstreams over streams.
    ///
    /// # Errors
    /// What cannot be had. Nothing is left behind.
    pub fn start(
        plan: ServiceSettings,
        clock: Clock,
        handed: &mut Inherited,
    ) -> Result<(Self, mpsc::Receiver<UpstreamQuery>), ServiceError> {
        raise_descriptors();
        let threads = plan.threads.max(1);
        let by = plan.one_thread_per_client.then_some(plan.settings.limits.client_prefix_length);
        let dealing = ThreadDealing { threads, by };
        let mut sockets: Vec<Vec<UdpServer>> = (0..threads).map(|_| Vec::new()).collect();
        let (mut absent, mut listeners) = (Vec::new(), Listeners::default());
        for address in &plan.listen {
            let inherited = handed.listeners.take(*address, Listens::Datagrams);
            match listen(*address, dealing, inherited, &mut listeners)? {
                Some(all) => sockets.iter_mut().zip(all).for_each(|(hand, socket)| hand.push(socket)),
                None => {
                    tracing::warn!(
                        "{address} (UDP) is not an address of this host: will be bound when the address appears"
                    );
                    absent.push(*address);
                }
            }
        }
        let failed = |error| ServiceError::Io("thread", error);
        let rings = (0..threads).map(|_| mailbox()).collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let (streams, queries) = stream_queries();
        let (said, ends) = unbounded_channel();
        let posts = Posts::new(
            rings.iter().map(|(post, _)| post.clone()).collect(),
            plan.settings.limits.client_prefix_length,
        );
        let cookie_seed = match handed.cookie_seed {
            Some(seed) => seed,
            None => random().map_err(|error| ServiceError::Io("/dev/urandom", error))?,
        };
        let (handles, to_streams) = (Vec::new(), streams.clone());
        let mut service =
            Self { posts, handles, ends, absent, dealing, streams: to_streams, listeners, cookie_seed };
        let kept = std::mem::take(&mut handed.kept);
        for (number, ((post, mailbox), sockets)) in rings.into_iter().zip(sockets).enumerate() {
            // With as many threads as before, each has its own again.
            let own = if kept.len() == threads { &kept[number..=number] } else { &kept[..] };
            let started = parts(&plan, sockets, &streams, (own, cookie_seed))
                .and_then(|parts| Thread::new(parts, clock, post, mailbox))
                .and_then(|thread| spawn(number, thread, said.clone()));
            match started {
                Ok(handle) => service.handles.push(handle),
                Err(error) => {
                    service.stop();
                    return Err(failed(error));
                }
            }
        }
        Ok((service, queries))
    }

    /// The ways to the threads.
    #[must_use]
    pub fn posts(&self) -> &Posts {
        &self.posts
    }

    /// Where questions are put that go to upstreams by streams.
    #[must_use]
    pub fn streams(&self) -> mpsc::Sender<UpstreamQuery> {
        self.streams.clone()
    }

    /// Listens at the addresses that have become this host's in the meantime. To be called each second.
    pub fn look_for_addresses(&mut self) {
        let (dealing, posts, listeners) = (self.dealing, &self.posts, &mut self.listeners);
        self.absent.retain(|address| match listen(*address, dealing, Vec::new(), listeners) {
            Ok(None) => true,
            Ok(Some(sockets)) => {
                tracing::info!("listening on {address} (UDP)");
                for (post, socket) in posts.all().iter().zip(sockets) {
                    send(post, ThreadMessage::Listen(socket));
                }
                false
            }
            Err(error) => {
                tracing::error!("{error}");
                false
            }
        });
    }

    /// The new list of clients that may query.
    pub fn set_access(&self, access: Access) {
        for post in self.posts.all() {
            send(post, ThreadMessage::Access(access.clone()));
        }
    }

    /// Other settings. What waits, what is kept and what is known of upstreams stays.
    pub fn reconfigure(&mut self, with: &Reconfiguration) {
        self.streams = with.streams.clone();
        for post in self.posts.all() {
            send(post, ThreadMessage::Reconfigure(Box::new(with.clone())));
        }
    }

    /// Ends for the next process: queries that wait are answered if that is soon, and those that come stay in the sockets.
    #[must_use]
    pub fn leave(&mut self) -> Left {
        let told: Vec<_> = (self.posts.all().iter())
            .map(|post| {
                let (sender, receiver) = std::sync::mpsc::sync_channel(1);
                send(post, ThreadMessage::Leave(sender));
                receiver
            })
            .collect();
        // A thread that failed has nothing to say.
        let kept = told.iter().map(|told| told.recv().unwrap_or_default()).collect();
        let listeners = std::mem::take(&mut self.listeners);
        self.stop();
        Left { listeners, kept, cookie_seed: Some(self.cookie_seed) }
    }

    /// Waits until a thread ends by itself, and says why.
    pub async fn first_end(&mut self) -> String {
        self.ends.recv().await.unwrap_or_else(|| "all DNS threads have ended".into())
    }

    /// Tells all threads to stop, and waits until they have; their sockets are closed then.
    pub fn stop(&mut self) {
        for (post, handle) in self.posts.all().iter().zip(self.handles.drain(..)) {
            send(post, ThreadMessage::Stop);
            // A panic was caught and reported by the thread.
            let _ = handle.join();
        }
        self.listeners = Listeners::default();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A socket for each thread; `None`: not an address of this host, or not usable yet.
fn listen(
    address: SocketAddr,
    dealing: ThreadDealing,
    inherited: Vec<OwnedFd>,
    listeners: &mut Listeners,
) -> Result<Option<Vec<UdpServer>>, ServiceError> {
    match UdpServer::open_with(address, dealing.threads, inherited) {
        Ok(sockets) => {
            let dealt = match dealing.by {
                Some(length) => UdpServer::deal_by_client(&sockets, length),
                None => UdpServer::deal_by_flow(&sockets),
            };
            dealt.map_err(|error| ServiceError::Io("clients cannot be dealt out to threads", error))?;
            let shared = sockets.iter().try_for_each(|socket| listeners.share(socket.poll_fd()));
            shared.map_err(|error| ServiceError::Io("socket", error))?;
            Ok(Some(sockets))
        }
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Ok(None),
        Err(error) => Err(ServiceError::Listen(address, error)),
    }
}

fn parts(
    plan: &ServiceSettings,
    sockets: Vec<UdpServer>,
    streams: &mpsc::Sender<UpstreamQuery>,
    (kept, cookie_seed): (&[Arc<[u8]>], CookieSecret),
) -> io::Result<ThreadParts> {
    Ok(ThreadParts {
        settings: plan.settings.clone(),
        seed: random()?,
        cookie_seed,
        sockets,
        upstreams: plan.upstreams.clone(),
        names: plan.names.clone(),
        streams: Some(streams.clone()),
        query_log: plan.query_log,
        mappings: plan.mappings.clone(),
        leases: plan.leases.clone(),
        kept: kept.to_vec(),
    })
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut octets = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut octets)?;
    Ok(octets)
}

fn spawn(number: usize, thread: Thread, said: UnboundedSender<String>) -> io::Result<JoinHandle<()>> {
    Builder::new().name(format!("dns64-{number}")).spawn(move || {
        if let Err(error) = give_up(Duty::Queries) {
            tracing::warn!("a DNS thread keeps its privileges: {error}");
        }
        let what = match catch_unwind(AssertUnwindSafe(|| thread.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("DNS thread {number}: {error}"),
            Err(_) => {
                format!("DNS thread {number} panicked; this is a defect of sixway, please report it")
            }
        };
        // Nothing listens at the end.
        let _ = said.send(what);
    })
}

/// Leaves a message that must not be lost.
fn send(post: &Post, message: ThreadMessage) {
    let mut message = Some(message);
    while let Some(again) = message.take() {
        // If it has ended, it is not needed.
        if let Err(left) = post.try_send(again)
            && left.0 == Unanswered::Busy
        {
            message = Some(left.1);
            sleep(Duration::from_millis(1));
        }
    }
}

/// Each question to an upstream has a descriptor; the soft limit is 1,024 in most places. What the system allows is taken.
fn raise_descriptors() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
