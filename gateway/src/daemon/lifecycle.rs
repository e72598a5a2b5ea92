//! Events that stop or reload a running gateway: signals, the admin API, a pool's new address, and the end of a trial.

use super::dns64_reload::{self, Dns64Reloads};
use super::error::RunError;
use super::gateway::{Gateway, sum};
use super::pool_changes::{Relisted, amended};
use super::rates::packets;
use super::reload::{Before, Health, Previous, ReloadRequest, Trial, TrialEnd, Wanted};
use super::signals::{Request, Signals};
use super::start::Start;
use super::{offload, service, takeover};
use crate::admin::{AdminError, Backend};
use crate::config::{Config, Sources};
use crate::reload_pause::ReloadPause;
use crate::view::{Dns64Row, ReloadRow};
use sixway_dataplane::mechanism::table::Kind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long an answer of the admin API may take to be written.
const ANSWERED: Duration = Duration::from_millis(50);

/// How a gateway has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped; this host is as before.
    Stopped,
    /// Another process continues with the existing state.
    TakenOver,
}

/// How a gateway ends.
pub(super) enum Ending {
    /// It was stopped, or it failed.
    Whole(Result<(), RunError>),
    /// Another process continues.
    TakenOver,
    /// This process re-executes itself.
    ReExecute,
}

/// The source of a reload request.
struct ReloadCause {
    why: &'static str,
    text: Text,
    confirm: Option<Duration>,
    answer: Option<oneshot::Sender<Result<(), AdminError>>>,
}

/// Which configuration is to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Text {
    /// What is in the file.
    File,
    /// The current one, with a changed address.
    InForce,
    /// The current one, with another list of a pool's addresses.
    Relisted(Relisted),
}

impl ReloadCause {
    fn by(why: &'static str) -> Self {
        Self { why, text: Text::File, confirm: None, answer: None }
    }

    /// Sends the result to the caller of the admin API.
    async fn tell(self, told: Result<(), AdminError>) {
        if let Some(answer) = self.answer {
            // The caller may have given up.
            let _ = answer.send(told);
            tokio::time::sleep(ANSWERED).await;
        }
    }
}

/// Reloads that are pending, on trial or done.
pub(super) struct Reloads<'a> {
    start: &'a Start<'a>,
    seed: [u64; 2],
    gateway: &'a Gateway,
    trial: Option<Trial>,
    /// In force, with their text.
    config: Arc<Config>,
    sources: Sources,
    /// What the last reload replaced.
    previous: Option<Previous>,
    /// The last reload was one in this process.
    was_in_process: bool,
    dns64: Dns64Reloads,
    /// How long the next reload waits that an address of this host causes, …
    pause: ReloadPause,
    /// … and when it is due.
    due: Option<Instant>,
}

/// How a reload continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prepared {
    /// This process re-executes itself.
    ReExecute,
    /// It is done.
    InProcess,
}

impl<'a> Reloads<'a> {
    /// For a gateway that is ready; `sessions`: of the previous process, and those that continue.
    pub fn new(
        start: &'a Start<'a>,
        seed: [u64; 2],
        gateway: &'a Gateway,
        sessions: (u64, u64),
        dns64: Dns64Reloads,
    ) -> Self {
        let previous = start.previous.map(|(_, previous)| previous);
        let trial = previous.and_then(|previous| Trial::of(previous, Instant::now(), carried(gateway)));
        if let Some(previous) = previous {
            let row = ReloadRow { sessions: sessions.0, sessions_kept: sessions.1, ..previous.row() };
            gateway.note_reload(row, trial.as_ref().map(Trial::until));
        }
        if let Some(why) = previous.and_then(|previous| previous.rolled_back.as_ref()) {
            tracing::error!("rolled back to the previous configuration: {why}");
        }
        let reloads = Self {
            start,
            seed,
            gateway,
            trial,
            config: Arc::new(start.config.clone()),
            sources: start.sources.clone(),
            previous: previous.cloned(),
            was_in_process: false,
            dns64,
            pause: previous.map(|previous| previous.pause).unwrap_or_default(),
            due: None,
        };
        if reloads.trial.is_none() {
            reloads.forget();
        }
        reloads
    }

    /// Waits for the end, or for a reload.
    pub async fn wait(mut self, signals: &mut Signals) -> Ending {
        loop {
            let asked = tokio::select! {
                signal = signals.next() => match signal {
                    Request::End(name) => return self.ending(name),
                    Request::HungUp => ReloadCause::by("SIGHUP"),
                },
                () = self.gateway.outdated.notified(), if self.due.is_none() => {
                    self.due = Some(self.due_after_pause());
                    continue;
                }
                () = until(self.due) => {
                    self.due = None;
                    ReloadCause { text: Text::InForce, ..ReloadCause::by("the address of a pool changed") }
                }
                request = self.gateway.reloads.next() => {
                    let ReloadRequest { what, answer } = request;
                    let asked = ReloadCause { answer: Some(answer), ..ReloadCause::by("requested") };
                    match what {
                        Wanted::Reload(confirm) => ReloadCause { confirm, ..asked },
                        Wanted::PoolWith(part) => ReloadCause { text: Text::Relisted(Relisted::With(part)), ..asked },
                        Wanted::PoolWithout(part) => {
                            ReloadCause { text: Text::Relisted(Relisted::Without(part)), ..asked }
                        }
                        Wanted::Keep => {
                            asked.tell(self.keep()).await;
                            continue;
                        }
                        Wanted::RollBack => match self.may_roll_back() {
                            Ok(()) if self.roll_back_in_process("it was requested").await => {
                                asked.tell(Ok(())).await;
                                continue;
                            }
                            Ok(()) => {
                                asked.tell(Ok(())).await;
                                self.roll_back("it was requested").await;
                                return Ending::ReExecute;
                            }
                            refused => {
                                asked.tell(refused).await;
                                continue;
                            }
                        },
                    }
                }
                end = self.trial_end() => match end {
                    TrialEnd::Kept => {
                        self.kept();
                        continue;
                    }
                    TrialEnd::RolledBack(why) => {
                        if self.roll_back_in_process(why).await {
                            continue;
                        }
                        self.roll_back(why).await;
                        return Ending::ReExecute;
                    }
                },
            };
            let reload = tokio::select! {
                name = signals.end() => return self.ending(name),
                reload = self.prepare(&asked.text, asked.confirm) => reload,
            };
            match reload {
                Ok(Prepared::InProcess) => {
                    tracing::info!(
                        "{}: reloaded the DNS64; its cache and all connections are kept",
                        asked.why
                    );
                    asked.tell(Ok(())).await;
                }
                Ok(Prepared::ReExecute) => {
                    tracing::info!("{}: reloading", asked.why);
                    signals.put_back();
                    asked.tell(Ok(())).await;
                    return Ending::ReExecute;
                }
                Err(why) => {
                    tracing::error!("not reloaded: {why}");
                    asked.tell(Err(AdminError::BadRequest(format!("not reloaded: {why}")))).await;
                }
            }
        }
    }

    /// When a reload is due that an address of this host causes.
    fn due_after_pause(&self) -> Instant {
        let left = self.pause.left();
        if matches!(self.in_process(&Text::InForce), Ok(Some(_))) {
            // It costs nobody anything.
            return Instant::now();
        }
        if !left.is_zero() {
            tracing::info!("addresses of this host change often: the next reload is in {} s", left.as_secs());
        }
        Instant::now() + left
    }

    fn ending(&self, name: &str) -> Ending {
        tracing::info!("{name}: ending");
        self.forget();
        Ending::Whole(Ok(()))
    }

    /// The file with the previous configuration.
    fn file(&self) -> PathBuf {
        Previous::path(self.start.directory, &self.start.config.gateway.name)
    }

    /// Nothing is on trial.
    fn forget(&self) {
        let _ = std::fs::remove_file(self.file());
    }

    /// Before a reload, does the steps that take long or can fail; after an error there is no reload. After this, this
    /// process cannot return.
    async fn prepare(&mut self, text: &Text, confirm: Option<Duration>) -> Result<Prepared, String> {
        if *text != Text::InForce && self.trial.is_some_and(|trial| trial.awaits_confirmation()) {
            return Err(
                "the last reload awaits confirmation; run `sixway reload --keep` or `sixway reload --roll-back`"
                    .into(),
            );
        }
        if let Some((config, sources)) = self.in_process(text)? {
            self.reload_in_process(text, confirm, config, sources).await?;
            return Ok(Prepared::InProcess);
        }
        self.gateway.note_drained_for_reload().await;
        let prepared = self.prepare_as_noted(text, confirm).await;
        if prepared.is_err() {
            self.gateway.go_on_draining().await;
        }
        prepared.map(|()| Prepared::ReExecute)
    }

    /// The configuration to load, and its text, if this process can apply it.
    fn in_process(&self, text: &Text) -> Result<Option<(Config, Sources)>, String> {
        match text {
            Text::File => dns64_reload::of_file(self.start, &self.config),
            Text::InForce if self.config.dns64.is_some() && takeover::is_own_program() => {
                let config = takeover::same(&self.sources, &self.config.gateway.name)?;
                let is_possible = dns64_reload::is_possible(&self.config, &config);
                Ok(is_possible.then(|| (config, self.sources.clone())))
            }
            Text::InForce | Text::Relisted(_) => Ok(None),
        }
    }

    /// Continues with another configuration in this process; a new text is on trial.
    async fn reload_in_process(
        &mut self,
        text: &Text,
        confirm: Option<Duration>,
        config: Config,
        sources: Sources,
    ) -> Result<(), String> {
        let before = self.before().await;
        self.put_in_force(config).await?;
        let replaced = std::mem::replace(&mut self.sources, sources);
        if *text == Text::File {
            let confirm_seconds = confirm.map(|confirm| confirm.as_secs());
            let previous = Previous { sources: replaced, confirm_seconds, before, ..Previous::default() };
            // Only a gateway that fails needs the file.
            if let Err(error) = previous.write(&self.file()) {
                tracing::warn!(
                    "the previous configuration cannot be kept in {}: {error}",
                    self.file().display()
                );
            }
            self.trial = Trial::of(&previous, Instant::now(), carried(self.gateway));
            let row = ReloadRow { in_process: true, ..previous.row() };
            self.gateway.note_reload(row, self.trial.as_ref().map(Trial::until));
            (self.previous, self.was_in_process) = (Some(previous), true);
        }
        Ok(())
    }

    /// Another configuration of the DNS64.
    async fn put_in_force(&mut self, config: Config) -> Result<(), String> {
        let config = Arc::new(config);
        service::reloading();
        let applied = self.dns64.apply(Arc::clone(&config)).await;
        service::ready();
        applied?;
        self.gateway.note_config(&config);
        self.config = config;
        Ok(())
    }

    /// Returns to the previous configuration in this process, if it came by a reload in this process.
    async fn roll_back_in_process(&mut self, why: &str) -> bool {
        let Some(previous) = self.previous.clone().filter(|_| self.was_in_process) else { return false };
        let config = match previous.config() {
            Ok((config, _)) if dns64_reload::is_possible(&self.config, &config) => config,
            Ok(_) | Err(_) => return false,
        };
        tracing::warn!("rolling back to the previous configuration: {why}");
        if let Err(error) = self.put_in_force(config).await {
            tracing::error!("{error}; the gateway starts again with the previous configuration");
            return false;
        }
        let back = Previous { rolled_back: Some(why.into()), ..previous };
        self.gateway.note_reload(ReloadRow { in_process: true, ..back.row() }, None);
        self.sources.clone_from(&back.sources);
        (self.trial, self.previous) = (None, Some(back));
        self.forget();
        true
    }

    /// The same, when nothing is drained any more.
    async fn prepare_as_noted(&self, text: &Text, confirm: Option<Duration>) -> Result<(), String> {
        if let Text::Relisted(Relisted::Without(part)) = text {
            // It may have been given to hosts again since it was requested.
            self.gateway.must_be_drained(part).await.map_err(|error| error.to_string())?;
        }
        let config = self.wanted(text)?;
        self.make_ready(&config).await?;
        let previous = match text {
            Text::File => Previous {
                sources: self.in_force(None)?,
                confirm_seconds: confirm.map(|confirm| confirm.as_secs()),
                before: self.before().await,
                pause: self.pause,
                ..Previous::default()
            },
            Text::InForce => Previous { pause: self.pause.after_reload(), ..self.same()? },
            Text::Relisted(relisted) => Previous {
                sources: self.in_force(None)?,
                following: Some(self.in_force(Some(relisted))?),
                before: self.before().await,
                pause: self.pause,
                ..Previous::default()
            },
        };
        // The file may have changed meanwhile.
        self.wanted(text)?;
        let file = self.file();
        previous.write(&file).map_err(|error| {
            format!("the previous configuration cannot be kept in {}: {error}", file.display())
        })
    }

    /// The configuration to load; else why the gateway cannot continue with it.
    fn wanted(&self, text: &Text) -> Result<Config, String> {
        let name = &self.start.config.gateway.name;
        match text {
            Text::File => takeover::reloaded(self.start),
            Text::InForce => takeover::same(&self.in_force(None)?, name),
            Text::Relisted(relisted) => takeover::same(&self.in_force(Some(relisted))?, name),
        }
    }

    /// The text of the current configuration, with the changes made at run time, and optionally with another list of a pool's addresses.
    fn in_force(&self, relisted: Option<&Relisted>) -> Result<Sources, String> {
        amended((&self.config, &self.sources), &self.gateway.drained(), relisted)
    }

    /// For a process with the current configuration: a trial continues for the rest of its time.
    fn same(&self) -> Result<Previous, String> {
        let in_force = &self.in_force(None)?;
        Ok(match (self.trial, &self.previous) {
            (Some(trial), Some(previous)) => Previous {
                following: Some(in_force.clone()),
                confirm_seconds: trial.seconds_to_confirm(Instant::now()),
                ..previous.clone()
            },
            (_, previous) => Previous {
                sources: in_force.clone(),
                following: Some(in_force.clone()),
                rolled_back: previous.as_ref().and_then(|previous| previous.rolled_back.clone()),
                ..Previous::default()
            },
        })
    }

    /// Moves flows to the engine that the fast path of a process with this configuration cannot carry.
    async fn make_ready(&self, config: &Config) -> Result<(), String> {
        // Nothing forwards the engines' packets between two processes: slow steps are done before.
        offload::leave_ahead(config, self.seed).await;
        let Some(what) = takeover::loses_flows_to(self.start, config).await else { return Ok(()) };
        tracing::info!("moving flows from the fast path to the engine: {what}");
        match Backend::end_fast_path(self.gateway).await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("sessions in the fast path would be lost: {error}")),
        }
    }

    async fn before(&self) -> Before {
        let rates = self.gateway.history().rates();
        Before {
            packets_per_second: rates.packets,
            upstream_answered: self.dns64().await.is_some_and(|row| answered(&row)),
        }
    }

    async fn dns64(&self) -> Option<Dns64Row> {
        Backend::dns64(self.gateway).await.ok().flatten()
    }

    /// Waits for the end of the trial; forever if no trial runs.
    async fn trial_end(&self) -> TrialEnd {
        let Some(trial) = self.trial else { return std::future::pending().await };
        tokio::time::sleep_until(trial.until().into()).await;
        let Ok(reports) = self.gateway.reports().await else {
            return TrialEnd::RolledBack("a worker does not answer since the reload");
        };
        let counters = sum(&reports);
        let passed: u64 = Kind::ALL.iter().map(|kind| counters.passed_total(*kind)).sum();
        let dns64 = self.dns64().await;
        trial.judge(Health {
            passed,
            carried: carried(self.gateway),
            dropped: counters.dropped_total(),
            queries: dns64.as_ref().map_or(0, queries),
            upstream_answers: dns64.as_ref().is_some_and(answered),
        })
    }

    fn kept(&mut self) {
        self.trial = None;
        self.gateway.note_kept();
        self.forget();
        tracing::info!("the reloaded configuration is kept");
    }

    fn keep(&mut self) -> Result<(), AdminError> {
        self.may_roll_back()?;
        self.kept();
        Ok(())
    }

    fn may_roll_back(&self) -> Result<(), AdminError> {
        match self.trial {
            Some(_) => Ok(()),
            None => Err(AdminError::Conflict(
                "no reload is on trial: there is nothing to keep or to roll back".into(),
            )),
        }
    }

    /// The previous configuration, with addresses drained since, where that is possible.
    fn as_drained(&self, previous: &Previous) -> Previous {
        let Ok((config, _)) = previous.config() else { return previous.clone() };
        let amended = amended((&config, &previous.sources), &self.gateway.drained(), None);
        let with = amended.map(|sources| Previous { sources, ..previous.clone() });
        with.ok().filter(|with| with.config().is_ok()).unwrap_or_else(|| previous.clone())
    }

    async fn roll_back(&self, why: &str) {
        tracing::warn!("rolling back to the previous configuration: {why}");
        self.gateway.note_drained_for_reload().await;
        let previous = self.previous.as_ref().map(|previous| self.as_drained(previous));
        let ready = match previous.as_ref().map(Previous::config) {
            Some(Ok((config, _))) => self.make_ready(&config).await,
            Some(Err(faults)) => Err(faults.to_string()),
            None => Ok(()),
        };
        if let Err(what) = ready {
            tracing::warn!("{what}");
        }
        let written = previous.map(|previous| previous.return_for(&self.file(), why));
        if let Some(Err(error)) = written {
            tracing::error!("{}: {error}; the file of the configuration is read", self.file().display());
        }
    }
}

/// Waits until then; for ever if there is no such time.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Packets that the fast path carried since it was made.
fn carried(gateway: &Gateway) -> u64 {
    gateway.seen().map_or(0, |seen| packets(&seen.counts))
}

/// Whether an upstream answered lately.
fn answered(row: &Dns64Row) -> bool {
    row.upstreams.iter().any(|upstream| upstream.replies > 0 && upstream.health == "up")
}

fn queries(row: &Dns64Row) -> u64 {
    row.upstreams.iter().map(|upstream| upstream.queries).sum()
}
