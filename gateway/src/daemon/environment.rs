//! What a gateway needs in addition to its workers: the configured host, tunnels, pools, the fast path and the API sockets.

use super::dns64::Dns64;
use super::error::RunError;
use super::facts::{Facts, config_text};
use super::fast_path_handle::FastPathHandle;
use super::gateway::Gateway;
use super::handover_file::Handed;
use super::kept_mappings::KeptMappings;
use super::leases::{HostNames, LeaseBook, kept_leases};
use super::offload::{Begun, FastPathStart, Offload};
use super::pcp::{PcpServer, ReadyServer};
use super::pool_file::PoolFile;
use super::pool_keeper::PoolKeeper;
use super::predecessor::Predecessor;
use super::signals::Signals;
use super::start::Start;
use super::teredo_server::TeredoServer;
use super::threads::{Threads, confine};
use super::tunnels::Tunnels;
use super::{dns64_kept, engines, inheritance, offload, pool_keeper, serve, setup, takeover};
use crate::config::Config;
use crate::dns64::Inherited;
use crate::event_log::{EventLog, Source};
use crate::fast_path::Keeper;
use crate::host::{Host, HostError, HostPlan};
use crate::port_mappings::port_mappings;
use crate::quotas::quotas;
use crate::show::plural;
use crate::view::Device;
use crate::worker::{Clock, Translator};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::mechanism::nat46::Mappings;
use sixway_link::{Duty, Tun};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpListener, UnixListener};

/// The servers that have begun.
type Servers = (Option<Dns64>, Option<TeredoServer>, Option<PcpServer>);

/// What a gateway needs in addition to its workers. Dropping it restores the host, in the order of the fields.
pub(super) struct Environment<'c> {
    pub(super) seed: [u64; 2],
    pub(super) clock: Clock,
    /// Sessions of the previous process, and those that continue.
    pub(super) sessions: (u64, u64),
    /// Those of a NAT46.
    mappings: Option<Arc<Mappings>>,
    pub(super) keeper: Option<Keeper>,
    pub(super) offload: Option<Offload<'c>>,
    /// Why there is none although the configuration asks for one.
    without_fast_path: Option<String>,
    pub(super) event_log: Option<Arc<EventLog>>,
    pub(super) pools: Vec<PoolKeeper>,
    pub(super) leases: Option<Arc<LeaseBook>>,
    pub(super) tunnels: Tunnels<'c>,
    /// What the DNS64 of the previous process left.
    handed: Inherited,
    /// The PCP server until it begins.
    pcp: Option<ReadyServer>,
    pub(super) host: Host,
}

/// It, the workers' engines, and the device.
type SetUp<'c> = (Environment<'c>, Vec<Engine>, Option<Tun>);

impl<'c> Environment<'c> {
    /// Sets it up, in place of the previous process, if there is one. With it come the workers' engines, and the device. `None`: it was
    /// stopped before anything was changed.
    pub(super) async fn set_up_all(
        start: &Start<'c>,
        signals: &mut Signals,
    ) -> Result<Option<SetUp<'c>>, RunError> {
        let Start { config, directory, .. } = *start;
        let seed = engines::seed().map_err(|error| RunError::Io("/dev/urandom".into(), error))?;
        let worker_key = engines::worker_key(directory, config)
            .map_err(|error| RunError::Io("/dev/urandom".into(), error))?;
        // With the leases of this host's 4over6 tunnels, the workers forward its packets from their first one on.
        let mut now = crate::host::surroundings();
        now.leases = kept_leases(config);
        let kept = KeptMappings::create(config, directory, seed).map_err(RunError::Engine)?;
        let table = kept.as_ref().map(|kept| Arc::clone(kept.table()));
        let mut engines = match config.needs_device() {
            true => {
                engines::engines(config, seed, worker_key, &now, table.as_ref()).map_err(RunError::Engine)?
            }
            false => Vec::new(),
        };
        let clock = Clock::start();
        let (mut ahead, mut predecessor, mut handed) = (None, Predecessor::default(), Inherited::default());
        if start.takeover {
            // Nothing forwards the engines' packets between two processes: slow steps are done before.
            tokio::select! {
                name = signals.end() => {
                    tracing::info!("{name}: stopping; the running gateway is unchanged");
                    return Ok(None);
                }
                programs = offload::load_ahead(config, seed, &now) => ahead = programs,
            }
            let (previous, listeners) = takeover::make_room(start).await?;
            (predecessor, handed) = (previous, dns64_kept::inherited(start, listeners));
        } else if start.previous.is_some() {
            handed = dns64_kept::after_exec(start);
        }
        let (mut host, tun) = set_up(start, worker_key).await.map_err(RunError::Host)?;
        if tun.is_some() {
            engines::keep_worker_key(directory, config, worker_key);
        }
        let device = tun.as_ref().map_or("", |tun| &*tun.name);
        let tunnels = Tunnels::open(config, now, device, start.takeover)?;
        let pools = restore_pools(config, &mut engines, clock)?;
        if let Some(kept) = kept {
            kept.settle(clock);
        }
        let leases = LeaseBook::load(config, &mut engines, clock, seed[0].rotate_left(9) ^ seed[1]);
        let leases = leases.map_err(|error| RunError::Io("leases".into(), error))?.map(Arc::new);
        let given = inheritance::begin_ledger(start, &mut engines);
        let begin = FastPathStart { config, seed, now: &tunnels.now, clock, ahead };
        let (begun, without_fast_path) = match offload::begin(begin, &mut engines, &mut host).await? {
            Begun::Running(offload, keeper) => (Some((*offload, keeper)), None),
            Begun::Without(why) => (None, why),
        };
        let (offload, keeper) = begun.unzip();
        let mut pcp = None;
        let restore_pcp = |engines: &mut [Engine]| {
            let (section, seed) = (config.pcp.as_ref(), seed[0].rotate_left(23) ^ seed[1]);
            pcp = section.map(|section| ReadyServer::restore((config, section), engines, clock.now(), seed));
        };
        let sessions = inheritance::settle(start, &predecessor, given, &mut engines, clock, restore_pcp);
        if let Some(blocks) = tun.as_ref().and_then(|tun| tun.blocks.as_ref()) {
            inheritance::steer(&mut engines, blocks);
        }
        let event_log = begin_log(config, &mut engines, clock)?;
        let environment = Self {
            seed,
            clock,
            sessions,
            mappings: table,
            offload,
            without_fast_path,
            keeper,
            event_log,
            pools,
            leases,
            tunnels,
            handed,
            pcp,
            host,
        };
        Ok(Some((environment, engines, tun)))
    }

    /// Begins with tunnels, names, the Teredo server and the PCP server; the workers run.
    pub(super) fn begin(&mut self, start: &Start<'c>, threads: &mut Threads) -> Result<Servers, RunError> {
        let config = start.config;
        let (clock, seed) = (self.clock, self.seed[0].rotate_left(23) ^ self.seed[1]);
        let teredo = || {
            let section = config.teredo_server.as_ref();
            section.map(|section| TeredoServer::start(section, clock, seed)).transpose()
        };
        let (posts, ready) = (threads.posts.clone(), self.pcp.take());
        let pcp = || {
            let both = config.pcp.as_ref().zip(ready);
            let started =
                both.map(|(section, ready)| PcpServer::start((config, section), ready, posts, clock));
            started.transpose()
        };
        let handed = std::mem::take(&mut self.handed);
        let (tunnels, host) = (&mut self.tunnels, &mut self.host);
        let names = self.leases.as_ref().and_then(|book| HostNames::new(config, book));
        let begun = tunnels
            .begin(host, &threads.posts)
            .and_then(|()| Dns64::start(config, clock, (self.mappings.clone(), names), handed))
            .and_then(|dns64| Ok((dns64, teredo()?, pcp()?)));
        match begun {
            Ok(_) => tunnels.advertise(self.clock, self.seed[0] ^ self.seed[1]),
            Err(_) => {
                tunnels.finish(host);
                threads.stop();
            }
        }
        begun
    }

    /// The known data about it from the start.
    pub(super) fn facts(&self, config: &Config, device: Option<Device>) -> Facts {
        Facts {
            name: config.gateway.name.clone(),
            device,
            mechanisms: setup::mechanisms(config, &self.tunnels.view()),
            translators: setup::translators(config),
            metrics: config.gateway.metrics.map(|address| format!("http://{address}/metrics")),
            advertised: self.tunnels.advertised(),
            named_remotes: setup::named_remotes(config),
            b4s: config.b4s().map(|b4| (b4.name.clone(), b4.aftr_within.clone())).collect(),
            without_fast_path: self.without_fast_path.clone(),
            config: serde_json::to_value(config).unwrap_or_default(),
            config_text: config_text(config),
        }
    }

    /// The lines about DNS64, the Teredo server and the fast path printed at start: title and text.
    pub(super) async fn lines(&self, config: &Config, dns64: Option<&Dns64>) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        if let Some(section) = &config.teredo_server {
            lines.push(("teredo server", section.exposes()));
        }
        if let Some(dns64) = dns64 {
            lines.push(("dns64", dns64.serves().await));
        }
        let fast_path = self.offload.as_ref().map(Offload::lines).unwrap_or_default();
        if self.offload.is_none() && self.host.device() != 0 {
            lines.push((
                "fast path",
                "disabled; a section [fastpath] forwards established flows in the kernel".into(),
            ));
        }
        let titles = std::iter::once("fast path").chain(std::iter::repeat(""));
        lines.extend(titles.zip(fast_path));
        lines
    }

    pub(super) fn carried(&self) -> Option<Arc<FastPathHandle>> {
        self.offload.as_ref().map(|offload| Arc::clone(offload.carried()))
    }

    /// Leaves everything as it is, for who takes over.
    pub(super) async fn leave(
        mut self,
        start: &Start<'_>,
        gateway: Arc<Gateway>,
        threads: &mut Threads,
    ) -> Result<(), RunError> {
        let sessions = self.stop(gateway, threads).await;
        // Before the lock is released: the next process reads them then.
        takeover::hand_over(start.directory, &start.config.gateway.name, &sessions);
        end_log(self.event_log.take());
        self.host.leave().map_err(RunError::Host)
    }

    /// The same for this process, which executes itself again. Settings that cannot stay are restored; the sessions continue.
    pub(super) async fn leave_to_itself(
        mut self,
        start: &Start<'_>,
        gateway: Arc<Gateway>,
        threads: &mut Threads,
    ) {
        let sessions = self.stop(gateway, threads).await;
        let log = self.event_log.take();
        if let Err(error) = self.host.leave() {
            tracing::error!("the host's settings were restored, and are set again: {error}");
        }
        takeover::hand_over(start.directory, &start.config.gateway.name, &sessions);
        end_log(log);
    }

    async fn stop(&mut self, gateway: Arc<Gateway>, threads: &mut Threads) -> Vec<Handed> {
        self.tunnels.leave();
        self.finish_leases();
        pool_keeper::finish(&mut self.pools, &gateway).await;
        drop(gateway);
        threads.leave().await
    }

    fn finish_leases(&self) {
        if let Some(leases) = &self.leases {
            leases.finish();
        }
    }

    /// Puts everything back.
    pub(super) async fn end(mut self, gateway: Arc<Gateway>, threads: &mut Threads) {
        if let Some(Err(error)) = self.carried().map(|carried| carried.end()) {
            tracing::error!(
                "parts of the fast path may remain: {error}; remove them with: sixway fastpath off"
            );
        }
        self.tunnels.send_final_advertisements().await;
        self.tunnels.finish(&mut self.host);
        self.finish_leases();
        pool_keeper::finish(&mut self.pools, &gateway).await;
        drop(gateway);
        threads.stop();
        end_log(self.event_log.take());
        let left = self.host.end();
        drop(self.tunnels);
        tracing::info!("ended: {left}");
    }
}

/// Where others come in.
pub(super) struct ApiSockets {
    /// Where the admin API is.
    pub(super) socket: PathBuf,
    pub(super) admin: UnixListener,
    pub(super) metrics: Option<TcpListener>,
}

impl ApiSockets {
    pub(super) async fn open(config: &Config, host: &mut Host) -> Result<Self, RunError> {
        let socket = config.gateway.admin_socket.clone();
        let refused = |error| RunError::Io(socket.display().to_string(), error);
        serve::make_way(&socket).map_err(refused)?;
        host.socket(&socket).map_err(RunError::Host)?;
        let admin = serve::unix(&socket, config.gateway.admin_group.as_deref()).map_err(refused)?;
        let metrics = match config.gateway.metrics {
            None => None,
            Some(address) => {
                let refused = |error| RunError::Io(format!("gateway.metrics = {address}"), error);
                Some(serve::tcp(address).await.map_err(refused)?)
            }
        };
        Ok(Self { socket, admin, metrics })
    }
}

/// The event log, if one is configured; the engines have the sessions of the previous process.
fn begin_log(
    config: &Config,
    engines: &mut [Engine],
    clock: Clock,
) -> Result<Option<Arc<EventLog>>, RunError> {
    let Some(log) = &config.event_log else { return Ok(None) };
    let names = config.nat64.iter().map(|it| &it.name).chain(config.nat44s().map(|it| &it.name));
    let names = names.chain(config.aftrs().map(|it| &it.name));
    let translators: Vec<String> = names.cloned().collect();
    let gateway = &config.gateway.name;
    let source = Source {
        engines,
        translators: &translators,
        mappings: port_mappings(config),
        quotas: quotas(config).into(),
        clock,
        gateway,
        confine: || confine(Duty::Queries),
    };
    EventLog::start(log, source).map(|log| Some(Arc::new(log))).map_err(RunError::EventLog)
}

/// Writes what is left of the event log, within a second. The workers have ended. The sessions do not wait for a slow sink.
fn end_log(log: Option<Arc<EventLog>>) {
    if let Some(log) = log {
        log.end();
    }
}

/// The host with a device, if one is needed.
async fn set_up(start: &Start<'_>, worker_key: [u64; 2]) -> Result<(Host, Option<Tun>), HostError> {
    let Start { config, directory, .. } = *start;
    if config.needs_device() {
        let returns = start.previous.is_some_and(|(_, previous)| previous.is_on_trial());
        let plan = HostPlan { returns, ..setup::plan(config, directory, worker_key) };
        let (host, tun) = Host::set_up(&plan).await?;
        return Ok((host, Some(tun)));
    }
    Ok((Host::without_device(directory, &config.gateway.name)?, None))
}

/// The pools as they were when the gateway ended.
fn restore_pools(config: &Config, engines: &mut [Engine], clock: Clock) -> Result<Vec<PoolKeeper>, RunError> {
    let mut keepers = Vec::new();
    for (mechanism, path) in setup::pool_files(config) {
        let failed = |error| RunError::Io(path.display().to_string(), error);
        let (file, loaded) = PoolFile::load(path).map_err(failed)?;
        if !loaded.faults.is_empty() {
            tracing::warn!(
                "{}: {} ignored: not valid; the first is line {}",
                path.display(),
                plural(loaded.faults.len() as u64, "line"),
                loaded.faults[0]
            );
        }
        let shares: Vec<_> = engines
            .iter_mut()
            .map(|engine| engine.restore_pool(mechanism, &loaded.records, clock.wall()))
            .collect();
        let hosts: usize = shares.iter().map(|share| share.hosts).sum();
        tracing::info!("{}: {} remembered", path.display(), plural(hosts as u64, "host"));
        let mut forgotten = BTreeMap::<String, u64>::new();
        for (_, fault) in shares.iter().flat_map(|share| &share.refused) {
            *forgotten.entry(fault.to_string()).or_default() += 1;
        }
        for (why, count) in forgotten {
            let hosts = plural(count, "host");
            tracing::warn!("{}: {hosts} not remembered, and will get another address: {why}", path.display());
        }
        keepers.push(PoolKeeper::new(mechanism, file));
    }
    Ok(keepers)
}
