//! From the start to the end of a gateway.

use super::backend::{Facts, Gateway};
use super::dns64::Dns64;
use super::offload::{Begin, Offload};
use super::pool_file::PoolFile;
use super::pool_keeper::PoolKeeper;
use super::threads::Threads;
use super::tunnels::Tunnels;
use super::{engines, inheritance, log, offload, pool_keeper, serve, setup, takeover};
use crate::admin::Device;
use crate::config::{Config, Surroundings};
use crate::host::{self, Host, HostError};
use crate::show::plural;
use crate::worker::{Clock, Translator};
use sixway_dataplane::engine::Engine;
use sixway_link::Tun;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::channel;

/// Packets for control protocols that wait.
const CONTROL: usize = 256;

/// Why a gateway did not start, or ended by itself. Everything was put back.
#[derive(Debug)]
pub enum RunError {
    /// The host cannot be set up.
    Host(HostError),
    /// Something else cannot be had: what, and what the kernel said.
    Io(String, io::Error),
    /// An engine cannot be made.
    Engine(String),
    /// A worker ended by itself.
    Worker(String),
    /// Tunnels cannot be what they are to be: a line each.
    Tunnels(String),
    /// The DNS64 cannot be had, or ended by itself.
    Dns64(String),
    /// The fast path is demanded and cannot be had.
    FastPath(String),
    /// Another process does not make way, or this one cannot become another.
    Takeover(String),
}

/// What a gateway is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Its configuration.
    pub config: &'a Config,
    /// The file that this was read from; SIGHUP reads it again.
    pub file: &'a Path,
    /// Where state files are kept.
    pub directory: &'a Path,
    /// The process that runs this gateway is to make way.
    pub takeover: bool,
}

/// How a gateway ends.
enum End {
    /// It is to end, or has to.
    Whole(Result<(), RunError>),
    /// Another process goes on.
    MakingWay,
    /// This process goes on as another.
    Anew,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(f),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Engine(what)
            | Self::Worker(what)
            | Self::Tunnels(what)
            | Self::Dns64(what)
            | Self::FastPath(what)
            | Self::Takeover(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a gateway until it is told to end by a signal (SIGTERM, SIGINT; SIGHUP if it has no fast path), or another process takes over.
///
/// # Errors
/// It could not start, or ended by itself; everything was put back.
pub fn run(start: &Start<'_>) -> Result<(), RunError> {
    let started = Instant::now();
    log::start(start.config.gateway.log, start.config.gateway.log_format);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::Io("runtime".into(), error))?;
    let end = runtime.block_on(live(start, started));
    // A name that the DNS is still being asked for must not hold the end up.
    runtime.shutdown_background();
    match end {
        Err(error) | Ok(End::Whole(Err(error))) => Err(error),
        Ok(End::Whole(Ok(())) | End::MakingWay) => Ok(()),
        Ok(End::Anew) => {
            let error = takeover::become_anew();
            // What cannot be put back is in the state file for the next.
            let _ = host::clear_up(start.directory, &start.config.gateway.name);
            Err(RunError::Takeover(format!("the gateway ends: it cannot be started anew: {error}")))
        }
    }
}

async fn live(start: &Start<'_>, started: Instant) -> Result<End, RunError> {
    let Start { config, directory, .. } = *start;
    // Before anything is changed: from here on, a signal ends the gateway in order.
    let mut signals = Signals::new().map_err(|error| RunError::Io("signals".into(), error))?;
    let seed = engines::seed().map_err(|error| RunError::Io("/dev/urandom".into(), error))?;
    let now = Surroundings::of_this_host();
    let mut engines = match config.needs_device() {
        true => engines::engines(config, seed, &now).map_err(RunError::Engine)?,
        false => Vec::new(),
    };
    let clock = Clock::start();
    if start.takeover {
        takeover::make_room(start).await?;
    }
    let (mut host, tun) = set_up(config, directory).await.map_err(RunError::Host)?;
    let mut tunnels = Tunnels::open(config, now, tun.as_ref().map_or("", |tun| &tun.name))?;
    let mut keepers = restore_pools(config, &mut engines, clock)?;
    let given = inheritance::begin_ledger(start, &mut engines);
    let begin = Begin { config, seed, now: &tunnels.now, clock };
    let (offload, mut keeper) = Offload::begin(begin, &mut engines, &mut host).await?.unzip();
    let offload = offload.map(tokio::sync::Mutex::new);
    let carried = match &offload {
        Some(offload) => Some(Arc::clone(offload.lock().await.carried())),
        None => None,
    };
    inheritance::settle(start, given, &mut engines, clock);
    let device = tun.as_ref().map(|tun| device(config, tun));
    let socket = config.gateway.admin_socket.as_path();
    let refused = |error| RunError::Io(socket.display().to_string(), error);
    serve::make_way(socket).map_err(refused)?;
    host.socket(socket).map_err(RunError::Host)?;
    let admin = serve::unix(socket).map_err(refused)?;
    let metrics = match config.gateway.metrics {
        None => None,
        Some(address) => Some(
            serve::tcp(address)
                .await
                .map_err(|error| RunError::Io(format!("gateway.metrics = {address}"), error))?,
        ),
    };

    let (control, mut controlled) = channel(CONTROL);
    let queues = tun.map_or_else(Vec::new, |tun| tun.queues);
    let mut threads = Threads::start(engines, queues, clock, &control)?;
    let begun = tunnels.begin(&mut host, &threads.posts).and_then(|()| Dns64::start(config, clock));
    let mut dns64 = match begun {
        Ok(dns64) => dns64,
        Err(error) => {
            tunnels.finish(&mut host);
            threads.stop();
            return Err(error);
        }
    };
    let facts = Facts {
        name: config.gateway.name.clone(),
        device,
        mechanisms: setup::mechanisms(config, &tunnels.view()),
        metrics: config.gateway.metrics.map(|address| format!("http://{address}/metrics")),
        advertised: tunnels.advertised(),
        named_remotes: setup::named_remotes(config),
        config: serde_json::to_value(config).unwrap_or_default(),
    };
    tunnels.advertise(clock, seed[0] ^ seed[1]);
    let resolves = match &dns64 {
        Some(dns64) => Some(dns64.serves().await),
        None => None,
    };
    let fast = match &offload {
        Some(offload) => offload.lock().await.lines(),
        None => Vec::new(),
    };
    say_ready(&facts, threads.posts.len(), (resolves.as_deref(), &fast), socket, started);
    let view = dns64.as_ref().map(Dns64::view);
    let gateway = Gateway::new(facts, threads.posts.clone(), view).with_fast_path(carried.clone());
    let gateway = Arc::new(gateway);
    let end = tokio::select! {
        end = signals.end(start) => end,
        () = gateway.asked_to_leave() => End::MakingWay,
        error = threads.first_end() => End::Whole(Err(RunError::Worker(error))),
        error = keep(&mut dns64) => End::Whole(Err(RunError::Dns64(error))),
        () = serve::admin(admin, Arc::clone(&gateway)) => End::Whole(Ok(())),
        () = serve::metrics(metrics, Arc::clone(&gateway)) => End::Whole(Ok(())),
        () = gateway.watch() => End::Whole(Ok(())),
        () = pool_keeper::keep(&mut keepers, &gateway) => End::Whole(Ok(())),
        () = tunnels.keep(&mut host, &gateway, &mut controlled, offload.as_ref()) => End::Whole(Ok(())),
        () = offload::keep(&mut keeper, offload.as_ref()) => End::Whole(Ok(())),
    };
    if let Some(dns64) = &mut dns64 {
        dns64.stop();
    }
    if let End::MakingWay | End::Anew = end {
        tunnels.leave();
        pool_keeper::finish(&mut keepers, &gateway).await;
        drop(gateway);
        takeover::hand_over(directory, &config.gateway.name, &threads.leave().await);
        host.leave().map_err(RunError::Host)?;
        return Ok(end);
    }
    if let Some(Err(error)) = carried.map(|carried| carried.end()) {
        tracing::error!("something of the fast path may be left: {error}");
    }
    tunnels.say_farewell().await;
    tunnels.finish(&mut host);
    pool_keeper::finish(&mut keepers, &gateway).await;
    drop(gateway);
    threads.stop();
    let left = host.end();
    drop(tunnels);
    tracing::info!("ended: {left}");
    Ok(end)
}

/// The host with a device, if one is needed.
async fn set_up(config: &Config, directory: &Path) -> Result<(Host, Option<Tun>), HostError> {
    if config.needs_device() {
        let (host, tun) = Host::set_up(&setup::plan(config, directory)).await?;
        return Ok((host, Some(tun)));
    }
    Ok((Host::without_device(directory, &config.gateway.name)?, None))
}

/// Lives until a DNS thread ends by itself; says why.
async fn keep(dns64: &mut Option<Dns64<'_>>) -> String {
    match dns64 {
        Some(dns64) => dns64.keep().await,
        None => std::future::pending().await,
    }
}

/// The pools as they were when the gateway ended.
fn restore_pools(config: &Config, engines: &mut [Engine], clock: Clock) -> Result<Vec<PoolKeeper>, RunError> {
    let mut keepers = Vec::new();
    for (mechanism, path) in setup::pool_files(config) {
        let failed = |error| RunError::Io(path.display().to_string(), error);
        let (file, loaded) = PoolFile::load(path).map_err(failed)?;
        if !loaded.faults.is_empty() {
            tracing::warn!(
                "{}: {} unreadable, the first is line {}",
                path.display(),
                plural(loaded.faults.len() as u64, "line"),
                loaded.faults[0]
            );
        }
        let hosts: usize = engines
            .iter_mut()
            .map(|engine| engine.restore_pool(mechanism, &loaded.records, clock.wall()))
            .sum();
        tracing::info!("{}: {} remembered", path.display(), plural(hosts as u64, "host"));
        keepers.push(PoolKeeper::new(mechanism, file));
    }
    Ok(keepers)
}

fn device(config: &Config, tun: &Tun) -> Device {
    Device {
        name: tun.name.clone(),
        mtu: config.tun.mtu.into(),
        queues: tun.queues.len(),
        super_frames: tun.abilities.to_string(),
    }
}

/// The lines that a person sees at the start.
fn say_ready(
    facts: &Facts,
    workers: usize,
    (dns64, fast_path): (Option<&str>, &[String]),
    socket: &Path,
    started: Instant,
) {
    let device = facts.device.as_ref().map(|device| {
        let queues = plural(device.queues as u64, "queue");
        let workers = plural(workers as u64, "worker");
        format!(" · {workers} · {} up (super-frames: {}; {queues})", device.name, device.super_frames)
    });
    let device = device.unwrap_or_default();
    let mut text = format!("sixway {} · {}{device}\n", env!("CARGO_PKG_VERSION"), facts.name);
    for mechanism in &facts.mechanisms {
        text.push_str(&format!("  {:<12}  {}\n", mechanism.name, mechanism.serves));
    }
    if let Some(serves) = dns64 {
        text.push_str(&format!("  {:<12}  {serves}\n", "dns64"));
    }
    for (number, line) in fast_path.iter().enumerate() {
        text.push_str(&format!("  {:<12}  {line}\n", if number == 0 { "fast path" } else { "" }));
    }
    for (link, says) in &facts.advertised {
        text.push_str(&format!("  {:<12}  router on {link} · {says}\n", "advertises"));
    }
    let metrics = facts.metrics.as_ref().map_or_else(String::new, |url| format!(" · metrics {url}"));
    let milliseconds = started.elapsed().as_millis();
    text.push_str(&format!("ready in {milliseconds} ms · admin {}{metrics}\n", socket.display()));
    // Where nobody reads, there is nobody to tell.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// The signals that end a gateway.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one that ends the gateway, or makes it begin anew.
    async fn end(&mut self, start: &Start<'_>) -> End {
        let reloads = start.config.fast_path.is_some();
        loop {
            let name = tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.hangup.recv() => "SIGHUP",
            };
            if name != "SIGHUP" || !reloads {
                tracing::info!("{name}: ending");
                return End::Whole(Ok(()));
            }
            if takeover::may_reload(start) {
                tracing::info!("SIGHUP: beginning anew");
                return End::Anew;
            }
        }
    }
}
