//! The running gateway: sends commands to its workers and keeps their counters.

use super::aftrs::{SilentAftr, ToldAftrs};
use super::alarms::Alarms;
use super::dns64_view::Dns64View;
use super::drain_log::{DrainLog, Drained};
use super::exhaustion::ExhaustionLog;
use super::facts::{Facts, config_text};
use super::fast_path_handle::{FastPathHandle, FastPathState};
use super::leases::{LeaseBook, LeaseFiles, LeaseTrouble};

use super::pcp_view::PcpView;
use super::rates::History;
use super::refusals::Refusals;
use super::reload::ReloadRequests;
use super::remote_names::{self, RemoteReceiver, RemoteSender};
use super::service;
use super::session_sample::LastLook;
use super::teredo_server_view::TeredoServerView;
use super::tunnel_view::TunnelView;
use super::words;
use crate::admin::AdminError;
use crate::config::Config;
use crate::doctor::Verdict;
use crate::event_log::EventLog;
use crate::host::{Restored, VrfTrouble, Watched};
use crate::metrics::GatewaySample;
use crate::view::FastPathShare;
use crate::view::{
    HostRow, LeaseRow, PcpRow, ReloadRow, RestoredRow, SinkRow, TeredoClientRow, TeredoServerRow,
};
use crate::worker::{Command, Post, Report, Table};
use sixway_dataplane::direction::Direction;
use sixway_dataplane::mechanism::table::Kind;
use sixway_dataplane::nat::BlockCounts;
use sixway_dataplane::{Counters, DropReason};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long an answer may take to be written.
const ANSWERED: Duration = Duration::from_millis(50);

/// Names of mechanisms, and how the leases of each are, in few words.
type LeaseStates = Vec<(String, String)>;

/// The running gateway, as the admin API sees it.
#[derive(Debug)]
pub struct Gateway {
    pub(super) facts: Facts,
    pub(super) posts: Vec<Post>,
    history: Mutex<History>,
    tunnels: Mutex<TunnelView>,
    /// Restored settings of the host.
    restored: Mutex<Restored>,
    /// The results of the packet filter's test.
    filter_findings: Mutex<Vec<(Verdict, String)>>,
    /// Why realms are not in their VRFs, each with its name.
    vrf_troubles: Mutex<Vec<(String, VrfTrouble)>>,
    /// The reports of exhausted pools, tables and limits.
    exhaustion: Mutex<ExhaustionLog>,
    /// The last state of sessions and neighbours.
    pub(super) last_look: tokio::sync::Mutex<LastLook>,
    pub(super) remotes: RemoteSender,
    /// The AFTRs of B4s that were set by the admin API.
    pub(super) told_aftrs: tokio::sync::watch::Sender<ToldAftrs>,
    /// Until the tunnels take them.
    new_remotes: Mutex<Option<RemoteReceiver>>,
    pub(super) dns64: Option<Arc<Dns64View>>,
    teredo_server: Option<Arc<TeredoServerView>>,
    pcp: Option<Arc<PcpView>>,
    pub(super) started: Instant,
    pub(super) fast_path: Option<Arc<FastPathHandle>>,
    /// Notified when this process must hand over.
    pub(super) leaving: tokio::sync::Notify,
    /// Notified when the configuration must be read again.
    pub(super) outdated: tokio::sync::Notify,
    /// What the admin API asks of a reload.
    pub(super) reloads: ReloadRequests,
    /// The last reload, and when its trial ends.
    reload: Mutex<Option<(ReloadRow, Option<Instant>)>>,
    /// The log of the translators.
    event_log: Option<Arc<EventLog>>,
    /// The configuration file.
    pub(super) config_file: PathBuf,
    /// Milliseconds since 1970.
    started_milliseconds: AtomicU64,
    /// The current configuration, if it is not the one of the start: as a value and as a file.
    in_force: Mutex<Option<(serde_json::Value, String)>>,
    /// Held while bindings are changed, which takes several workers.
    pub(super) edits: tokio::sync::Mutex<()>,
    /// The addresses that are being drained, of pools for which this was changed at run time.
    pub(super) drained: Mutex<Drained>,
    /// Whether a reload has read that: later changes would be lost. Held while a pool is drained.
    pub(super) drains_noted: tokio::sync::Mutex<bool>,
    /// What was reported of addresses that are drained.
    pub(super) drain_log: Mutex<DrainLog>,
    alarms: Mutex<Alarms>,
    /// The records of subscribers that were refused.
    pub(super) refusals: Mutex<Refusals>,
    /// Leases of concentrators.
    leases: Option<Arc<LeaseBook>>,
    /// Leases of this host.
    own_leases: Mutex<(Vec<LeaseRow>, Vec<LeaseFiles>)>,
    /// Problems of this host's leases, and the state of each.
    own_lease_troubles: Mutex<(Vec<LeaseTrouble>, LeaseStates)>,
    /// AFTRs of B4s that do not answer, and why names have no usable address.
    aftrs: Mutex<(Vec<SilentAftr>, BTreeMap<String, String>)>,
    /// This host's Teredo client.
    teredo_client: Mutex<Option<TeredoClientRow>>,
}

impl Gateway {
    /// A gateway with these workers and this DNS64, started now.
    pub fn new(facts: Facts, posts: Vec<Post>, dns64: Option<Arc<Dns64View>>) -> Self {
        let started = Instant::now();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let (remotes, new_remotes) = remote_names::remotes();
        Self {
            remotes,
            told_aftrs: tokio::sync::watch::Sender::default(),
            new_remotes: Mutex::new(Some(new_remotes)),
            facts,
            posts,
            history: Mutex::new(History::new(started)),
            tunnels: Mutex::default(),
            restored: Mutex::default(),
            filter_findings: Mutex::default(),
            vrf_troubles: Mutex::default(),
            exhaustion: Mutex::default(),
            last_look: tokio::sync::Mutex::default(),
            dns64,
            teredo_server: None,
            pcp: None,
            started,
            fast_path: None,
            leaving: tokio::sync::Notify::new(),
            outdated: tokio::sync::Notify::new(),
            reloads: ReloadRequests::new(),
            reload: Mutex::default(),
            event_log: None,
            config_file: PathBuf::new(),
            started_milliseconds: now.map_or(0, |now| now.as_millis() as u64).into(),
            in_force: Mutex::default(),
            edits: tokio::sync::Mutex::default(),
            drained: Mutex::default(),
            drains_noted: tokio::sync::Mutex::default(),
            drain_log: Mutex::default(),
            alarms: Mutex::default(),
            refusals: Mutex::default(),
            leases: None,
            own_leases: Mutex::default(),
            own_lease_troubles: Mutex::default(),
            aftrs: Mutex::default(),
            teredo_client: Mutex::default(),
        }
    }

    /// With this Teredo server.
    pub(super) fn with_teredo_server(self, teredo_server: Option<Arc<TeredoServerView>>) -> Self {
        Self { teredo_server, ..self }
    }

    /// With this PCP server.
    pub(super) fn with_pcp(self, pcp: Option<Arc<PcpView>>) -> Self {
        Self { pcp, ..self }
    }

    /// The PCP server.
    pub(super) fn pcp_row(&self) -> Option<PcpRow> {
        self.pcp.as_ref().map(|view| view.row())
    }

    /// The Teredo server.
    pub(super) fn teredo_row(&self) -> Option<TeredoServerRow> {
        self.teredo_server.as_ref().map(|view| view.row())
    }

    /// With these leases.
    pub(super) fn with_leases(self, leases: Option<Arc<LeaseBook>>) -> Self {
        Self { leases, ..self }
    }

    /// The leases of concentrators.
    pub(super) fn leases(&self) -> Option<&LeaseBook> {
        self.leases.as_deref()
    }

    /// Takes note of this host's leases.
    pub(super) fn note_own_leases(&self, rows: Vec<LeaseRow>, files: Vec<LeaseFiles>) {
        *self.own_leases.lock().unwrap_or_else(PoisonError::into_inner) = (rows, files);
    }

    /// Takes note of what keeps this host from leases.
    pub(super) fn note_lease_troubles(&self, troubles: Vec<LeaseTrouble>, states: LeaseStates) {
        *self.own_lease_troubles.lock().unwrap_or_else(PoisonError::into_inner) = (troubles, states);
    }

    /// Problems of leases of concentrators and of this host.
    pub(super) fn lease_troubles(&self) -> Vec<LeaseTrouble> {
        let mut all = self.own_lease_troubles.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        all.extend(self.leases().into_iter().flat_map(LeaseBook::troubles));
        all
    }

    /// How ends of 4over6 are that lease addresses or take a lease, in few words.
    pub(super) fn lease_states(&self) -> LeaseStates {
        let mut all = self.own_lease_troubles.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        all.extend(self.leases().into_iter().flat_map(LeaseBook::states));
        all
    }

    /// How the files of all leases are.
    pub(super) fn lease_files(&self) -> Vec<LeaseFiles> {
        let mut files = self.own_leases.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        files.extend(self.leases().into_iter().flat_map(LeaseBook::files));
        files
    }

    /// Records AFTRs that do not answer, and why names have no usable address.
    pub(super) fn note_aftrs(&self, silent: Vec<SilentAftr>, faults: BTreeMap<String, String>) {
        *self.aftrs.lock().unwrap_or_else(PoisonError::into_inner) = (silent, faults);
    }

    /// AFTRs that do not answer, and why names have no usable address.
    pub(super) fn aftrs(&self) -> (Vec<SilentAftr>, BTreeMap<String, String>) {
        self.aftrs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of this host's Teredo client.
    pub(super) fn note_teredo_client(&self, row: TeredoClientRow) {
        *self.teredo_client.lock().unwrap_or_else(PoisonError::into_inner) = Some(row);
    }

    /// This host's Teredo client.
    pub(super) fn teredo_client(&self) -> Option<TeredoClientRow> {
        self.teredo_client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leases of concentrators and of this host.
    pub(super) fn lease_rows(&self, room: usize) -> Vec<LeaseRow> {
        let mut rows = self.own_leases.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        rows.extend(self.leases().map(|book| book.rows(room)).unwrap_or_default());
        rows
    }

    /// Whether packets passed 4over6 tunnels lately.
    pub(super) fn four_over_six_is_used(&self) -> bool {
        let kind = Kind::FourOverSix;
        self.history().rate(|counters| counters.passed_total(kind)) > 0.0
    }

    /// With this configuration file.
    pub(super) fn with_config_file(self, file: &Path) -> Self {
        Self { config_file: std::path::absolute(file).unwrap_or_else(|_| file.into()), ..self }
    }

    /// Stores the configuration that this process continues with.
    pub(super) fn note_config(&self, config: &Config) {
        let value = serde_json::to_value(config).unwrap_or_default();
        let in_force = Some((value, config_text(config)));
        *self.in_force.lock().unwrap_or_else(PoisonError::into_inner) = in_force;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_millis() as u64);
        // Who waits for another number must see one.
        let another = self.started_milliseconds().saturating_add(1).max(now);
        self.started_milliseconds.store(another, Ordering::Relaxed);
    }

    /// The configuration in force.
    pub(super) fn config_in_force(&self) -> serde_json::Value {
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        in_force.as_ref().map_or_else(|| self.facts.config.clone(), |(value, _)| value.clone())
    }

    /// The same as a configuration file.
    pub(super) fn config_text_in_force(&self) -> String {
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        in_force.as_ref().map_or_else(|| self.facts.config_text.clone(), |(_, text)| text.clone())
    }

    /// When this process, or its last reload, started: milliseconds since 1970.
    pub(super) fn started_milliseconds(&self) -> u64 {
        self.started_milliseconds.load(Ordering::Relaxed)
    }

    /// Takes note of a reload, and when its trial ends.
    pub(super) fn note_reload(&self, row: ReloadRow, until: Option<Instant>) {
        *self.reload.lock().unwrap_or_else(PoisonError::into_inner) = Some((row, until));
    }

    /// Whether the last reload is on trial.
    pub(super) fn is_on_trial(&self) -> bool {
        self.reload.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|it| it.1.is_some())
    }

    /// The last reload is kept.
    pub(super) fn note_kept(&self) {
        if let Some((row, until)) = &mut *self.reload.lock().unwrap_or_else(PoisonError::into_inner) {
            (row.state, *until) = ("kept".into(), None);
        }
    }

    /// The last reload.
    pub(super) fn reload_row(&self) -> Option<ReloadRow> {
        let reload = self.reload.lock().unwrap_or_else(PoisonError::into_inner);
        let (row, until) = reload.as_ref()?;
        let left = until.map(|until| until.saturating_duration_since(Instant::now()).as_secs());
        Some(ReloadRow { seconds_left: left, ..row.clone() })
    }

    /// With this fast path.
    pub fn with_fast_path(self, fast_path: Option<Arc<FastPathHandle>>) -> Self {
        Self { fast_path, ..self }
    }

    /// With this event log.
    pub(super) fn with_event_log(self, event_log: Option<Arc<EventLog>>) -> Self {
        Self { event_log, ..self }
    }

    /// The event log.
    pub(super) fn event_log(&self) -> Option<&EventLog> {
        self.event_log.as_deref()
    }

    /// The sinks of the event log.
    pub(super) fn event_log_rows(&self) -> Vec<SinkRow> {
        self.event_log.as_ref().map(|log| log.rows()).unwrap_or_default()
    }

    /// The channel of new tunnel remotes; `None` if already taken.
    pub(super) fn new_remotes(&self) -> Option<(RemoteSender, RemoteReceiver)> {
        let receiver = self.new_remotes.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some((self.remotes.clone(), receiver?))
    }

    /// The ways to the workers, in their order.
    pub(super) fn posts(&self) -> &[Post] {
        &self.posts
    }

    /// Records the current tunnels.
    pub(super) fn see_tunnels(&self, view: TunnelView) {
        let mut tunnels = self.tunnels();
        let (advertisements, steered) = (std::mem::take(&mut tunnels.advertisements), tunnels.steered);
        *tunnels = TunnelView { advertisements, steered, ..view };
    }

    /// Ends of tunnels in UDP, and the local addresses of their sockets.
    pub(super) fn udp_ends(&self) -> Vec<(String, Option<String>)> {
        self.tunnels().udp_ends.clone()
    }

    /// Why an end of a tunnel in UDP has no socket, as far as it is known.
    pub(super) fn udp_trouble(&self, name: &str) -> Option<String> {
        let tunnels = self.tunnels();
        let missing = tunnels.udp_missing.iter().find(|(end, _)| end == name);
        let missing = missing.map(|(_, address)| format!("this host does not have {address}"));
        let trouble = tunnels.udp_troubles.iter().find(|(end, _)| end == name);
        missing.or_else(|| trouble.map(|(_, what)| what.clone()))
    }

    /// Records the state of router advertisements, and what was steered.
    pub(super) fn note_gateway_sample(&self, sample: GatewaySample) {
        let mut tunnels = self.tunnels();
        (tunnels.advertisements, tunnels.steered) = (sample.advertisements, sample.steered);
    }

    /// Takes note of what was restored on the host.
    pub(super) fn note_restored(&self, restored: Restored) {
        *self.restored.lock().unwrap_or_else(PoisonError::into_inner) = restored;
    }

    /// Records the result of the packet filter's trial.
    pub(super) fn note_filter_findings(&self, findings: &[(Verdict, String)]) {
        *self.filter_findings.lock().unwrap_or_else(PoisonError::into_inner) = findings.to_vec();
    }

    /// The results of the packet filter's test.
    pub(super) fn filter_findings(&self) -> Vec<(Verdict, String)> {
        self.filter_findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of why realms are not in their VRFs.
    pub(super) fn note_vrf_troubles(&self, troubles: Vec<(String, VrfTrouble)>) {
        *self.vrf_troubles.lock().unwrap_or_else(PoisonError::into_inner) = troubles;
    }

    /// Why realms are not in their VRFs.
    pub(super) fn vrf_troubles(&self) -> Vec<(String, VrfTrouble)> {
        self.vrf_troubles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Restored settings of the host; `None` without a device.
    pub(super) fn host_row(&self) -> Option<HostRow> {
        self.facts.device.as_ref()?;
        let restored = self.restored.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |watched: Watched| RestoredRow { what: watched.name().into(), times: restored.of(watched) };
        Some(HostRow {
            restored: Watched::ALL.map(row).into(),
            left_alone: restored.left_alone.iter().cloned().collect(),
        })
    }

    /// Whether packets went into ISATAP tunnels lately.
    pub(super) fn isatap_is_used(&self) -> bool {
        let (history, kind) = (self.history(), Kind::Isatap);
        history.rate(|counters| counters.passed[kind as usize][Direction::Out as usize]) > 0.0
            || history.carried(|counts| words::carried(counts, kind)) > 0.0
    }

    /// Packets of B4s in the last second, into the tunnel and out of it; at least one if there was one.
    pub(super) fn b4_packets(&self) -> (u64, u64) {
        let history = self.history();
        let of = |way: Direction| {
            history.rate(|counters| counters.passed[Kind::B4 as usize][way as usize]).ceil() as u64
        };
        (of(Direction::Out), of(Direction::In))
    }

    /// Packets sent to Teredo's peers, and received from them.
    pub(super) fn teredo_packets(&self) -> [u64; 2] {
        let history = self.history();
        let of =
            |way: Direction| history.last(|counters| counters.passed[Kind::Teredo as usize][way as usize]);
        [of(Direction::Out), of(Direction::In)]
    }

    pub(super) fn tunnels(&self) -> MutexGuard<'_, TunnelView> {
        self.tunnels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of workers.
    pub(super) fn workers(&self) -> usize {
        self.posts.len()
    }

    /// Waits until another process requests a takeover and has its response.
    pub(super) async fn asked_to_leave(&self) {
        self.leaving.notified().await;
        tokio::time::sleep(ANSWERED).await;
    }

    /// Takes a sample of the counters each second, without end.
    pub async fn watch(&self) {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        loop {
            second.tick().await;
            match self.reports().await {
                Ok(reports) => {
                    service::alive();
                    self.judge_alarms(&self.tables(&reports));
                    if self.warn_of_exhaustion(&reports) {
                        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).want();
                    }
                    self.record_refusals().await;
                    self.tell_drained().await;
                }
                Err(error) => tracing::warn!("counters were not sampled: {error}; rates are incomplete"),
            }
        }
    }

    /// Logs pools, tables and limits that are exhausted. Returns whether subscribers were refused.
    fn warn_of_exhaustion(&self, reports: &[Report]) -> bool {
        let mut refused = false;
        let mut log = self.exhaustion.lock().unwrap_or_else(PoisonError::into_inner);
        for exhausted in log.due(&sum(reports), Instant::now()) {
            tracing::warn!("{}", exhausted.text);
            if let Some(events) = &self.event_log {
                events.limit(exhausted.reason.name(), exhausted.packets);
            }
            refused |= matches!(exhausted.reason, DropReason::SubscriberLimit | DropReason::SubscriberShare);
        }
        refused
    }

    /// The alarms that are raised.
    pub(super) fn alarms(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the report of each worker, and keeps the sum as a sample.
    pub(super) async fn reports(&self) -> Result<Vec<Report>, AdminError> {
        let mut reports = Vec::with_capacity(self.posts.len());
        for worker in 0..self.posts.len() {
            reports.push(self.ask(worker, Command::Report).await?);
        }
        let carried = self.seen().map(|seen| seen.counts).unwrap_or_default();
        self.history().add(Instant::now(), sum(&reports), carried);
        Ok(reports)
    }

    /// Asks a worker and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        worker: usize,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, AdminError> {
        let (sender, receiver) = oneshot::channel();
        let busy = |what: &str| AdminError::Busy(format!("worker {worker}: {what}"));
        self.posts[worker].send(command(sender)).map_err(|error| busy(&error.to_string()))?;
        match tokio::time::timeout(PATIENCE, receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(busy("too many requests; retry")),
            Err(_) => Err(busy("no response in time; retry")),
        }
    }

    /// The stateful mechanisms, by their place in the configuration.
    pub(super) fn stateful(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.facts.mechanisms.iter().filter(|mechanism| mechanism.kind.is_stateful()).count() as u16
    }

    pub(super) fn mechanism(&self, index: u16) -> String {
        self.facts.mechanisms.get(usize::from(index)).map_or_else(String::new, |one| one.name.clone())
    }

    /// The current counters of the fast path, if it runs.
    pub(super) fn seen(&self) -> Option<FastPathState> {
        self.fast_path.as_ref()?.seen()
    }

    pub(super) fn share(&self) -> Option<FastPathShare> {
        let carried = self.fast_path.as_ref()?;
        Some(FastPathShare {
            share: self.history().share(),
            attached: carried.attached(),
            flows: self.seen().map_or(0, |seen| seen.flows.into()),
            flows_capacity: carried.capacity().into(),
        })
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tables of each mechanism, all workers together.
    pub(super) fn tables(&self, reports: &[Report]) -> Vec<Table> {
        let mut sums = vec![Table::default(); self.facts.mechanisms.len()];
        for (sum, table) in reports.iter().flat_map(|report| report.tables.iter().enumerate()) {
            if let Some(sum) = sums.get_mut(sum) {
                sum.sessions += table.sessions;
                sum.portless_sessions += table.portless_sessions;
                sum.portless_capacity += table.portless_capacity;
                sum.sessions_capacity += table.sessions_capacity;
                sum.bindings += table.bindings;
                sum.bindings_capacity += table.bindings_capacity;
                sum.ports += table.ports;
                sum.blocks = with(sum.blocks, table.blocks);
                // All workers have one table of them, which the first one reports.
                sum.mappings = if table.mappings.max_mappings > 0 { table.mappings } else { sum.mappings };
                sum.ports_used.iter_mut().zip(table.ports_used).for_each(|(sum, used)| *sum += used);
            }
        }
        // Every worker has all bindings of a concentrator.
        let concentrators = self.facts.mechanisms.iter().zip(&mut sums);
        for (mechanism, sum) in concentrators.filter(|(it, _)| it.kind == Kind::FourOverSix) {
            let counts = self.leases().and_then(|book| book.counts(&mechanism.name));
            (sum.bindings, sum.bindings_capacity) = counts.unwrap_or_default();
        }
        sums
    }
}

/// Port blocks of several workers together.
fn with(sum: BlockCounts, more: BlockCounts) -> BlockCounts {
    BlockCounts {
        size: sum.size.max(more.size),
        blocks: sum.blocks + more.blocks,
        given: sum.given + more.given,
        unused: sum.unused + more.unused,
        free: sum.free + more.free,
    }
}

/// The counters of all workers.
pub(super) fn sum(reports: &[Report]) -> Counters {
    let mut sum = Counters::default();
    reports.iter().for_each(|report| sum.add(&report.counters));
    sum
}
