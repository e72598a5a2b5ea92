//! One process of a gateway hands over to another: to `sixway run --takeover`, or to itself on SIGHUP.
//! The old process stops its workers, writes the sessions that are not in the fast path to a file, and ends without restoring anything:
//! device, routes, settings and pinned objects stay. This releases the lock of the state file, and the new process continues with all of it.

use super::dns64_kept::{self, Passage};
use super::error::RunError;
use super::handover_file::{self, Found, Handed};
use super::packet_filter;
use super::predecessor::Predecessor;
use super::reload::PREVIOUS;
use super::service;
use super::start::Start;
use crate::admin::{Client, ClientError};
use crate::config::{Config, Sources, Surroundings};
use crate::host;
use crate::show::plural;
use crate::view::Leaving;
use crate::worker::Clock;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::{Inside, NotAdopted, SavedSession};
use sixway_fastpath::layout::LAYOUT_VERSION;
use sixway_link::Listeners;
use sixway_wire::Endpoint6;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the old process may take: a million sessions take less than a second.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(2);
/// The program of this process, even if its file was replaced or removed.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Asks the process that runs the gateway to end, and waits until it has. Returns its data and the sockets of its DNS64; nothing if there
/// was none.
pub(super) async fn make_room(start: &Start<'_>) -> Result<(Predecessor, Listeners), RunError> {
    let name = &start.config.gateway.name;
    let Some(running) = host::running(start.directory, name) else {
        tracing::info!("no gateway {name} to take over: starting a new one");
        return Ok(Default::default());
    };
    // If this fails, the running process continues.
    let now = crate::host::surroundings_now(Surroundings::default());
    packet_filter::check_masquerading(start.config, &now)?;
    let failed = |why: &str| RunError::Takeover(format!("the gateway {name} cannot be taken over: {why}"));
    check_services(running.process).map_err(|why| failed(&why))?;
    let socket = running.socket.unwrap_or_else(|| start.config.gateway.admin_socket.clone());
    let client = Client::new(&socket);
    let config = client.get("/v1/config", &[]).map_err(|error| failed(&error.to_string()))?;
    let predecessor = Predecessor::that_says(&config);
    if let Some(why) = predecessor.loses_flows_to(start.config) {
        tracing::info!("moving flows of the running process from the fast path to its engine: {why}");
        take_flows_back(&client).await.map_err(|why| failed(&why))?;
    }
    let dns64 = start.config.dns64.as_ref();
    let passage = dns64.and_then(|_| Passage::open(start.directory, name));
    match client.post::<Leaving>("/v1/leave", &[]) {
        // It may be gone before its answer is read.
        Ok(Leaving { .. }) | Err(ClientError::Garbled(_)) => {}
        Err(error) => return Err(failed(&error.to_string())),
    }
    let asked = Instant::now();
    while host::running(start.directory, name).is_some() {
        if asked.elapsed() > PATIENCE {
            return Err(failed("the running process does not stop; stop it, then start this one"));
        }
        tokio::time::sleep(STEP).await;
    }
    Ok((predecessor, passage.map(Passage::take).unwrap_or_default()))
}

/// A service ends with its process: a process that was started by hand says so, and another service does not take over.
///
/// # Errors
/// The running process is another service's than this one.
fn check_services(running: Option<u32>) -> Result<(), String> {
    let theirs = running.and_then(|process| service::of_process(&process.to_string()));
    let Some(theirs) = theirs else { return Ok(()) };
    let unit = theirs.trim_end_matches(".service");
    match service::of_process("self") {
        Some(own) if own == theirs => Ok(()),
        Some(_) => Err(format!("it runs as {theirs}; stop that, or set another `gateway.name`")),
        None => {
            tracing::warn!(
                "{theirs} ends with the process that is taken over, and nothing restarts or watches this one; \
                 systemctl start {unit} takes over from it. Instead of --takeover, use systemctl reload {unit}"
            );
            Ok(())
        }
    }
}

/// Ends the fast path of a process that runs: its sessions are its engine's, and among those that it hands over.
async fn take_flows_back(client: &Client) -> Result<(), String> {
    let asked = Instant::now();
    loop {
        match client.delete::<bool>("/v1/fastpath", &[]) {
            Ok(_) => return Ok(()),
            Err(error) if asked.elapsed() > PATIENCE => {
                return Err(format!("its sessions in the fast path would be lost: {error}"));
            }
            // A worker may be busy.
            Err(_) => tokio::time::sleep(STEP).await,
        }
    }
}

/// The file with the sessions between the two processes.
pub(super) fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.handover"))
}

/// Writes the sessions for the next process. Sessions that cannot be written end with this process.
pub(super) fn hand_over(directory: &Path, name: &str, sessions: &[Handed]) {
    let path = file(directory, name);
    match handover_file::write(&path, sessions) {
        Ok(()) => tracing::info!("{} handed over", plural(sessions.len() as u64, "session")),
        Err(error) => tracing::error!("sessions are lost: {}: {error}", path.display()),
    }
}

/// Continues the sessions that were handed over, if any: how many there were, and how many continue.
pub(super) fn take_over(
    start: &Start<'_>,
    from: &Predecessor,
    engines: &mut [Engine],
    clock: Clock,
) -> (u64, u64) {
    let path = file(start.directory, &start.config.gateway.name);
    if start.previous.is_some_and(|(_, previous)| !previous.is_on_trial()) {
        // None if the reloaded configuration was running: then its process handed them over.
        let _ = std::fs::rename(kept_file(start), &path);
    }
    let Found { sessions, nobodys } = match handover_file::read(&path, &from.translators) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (0, 0),
        Err(error) => {
            tracing::warn!("sessions are lost: {}: {error}", path.display());
            Found::default()
        }
    };
    // They are handed over once.
    let _ = std::fs::remove_file(&path);
    let all = (sessions.len() + nobodys) as u64;
    unite(&sessions, engines);
    let mut refused = Refused::default();
    let restored = sessions.iter().filter(|handed| match restore(handed, engines, clock) {
        Ok(()) => true,
        Err(why) => {
            tracing::debug!("session of {} with {} ended: {why}", handed.1.inside.0, handed.1.remote);
            refused.add(why, 1);
            false
        }
    });
    let kept = restored.count();
    tracing::info!("{kept} of {} continue", plural(all, "session"));
    refused.tell("session");
    if nobodys > 0 {
        let what = plural(nobodys as u64, "session");
        tracing::warn!(
            "{what} lost: the previous process identified their translators by position, and the positions changed"
        );
    }
    (all, kept as u64)
}

/// The file with the sessions under another name: if the start fails, the host is restored and the file is removed.
fn kept_file(start: &Start<'_>) -> PathBuf {
    start.directory.join(format!("{}.handover-kept", start.config.gateway.name))
}

/// Keeps the sessions until the gateway is ready, for a rollback to the previous configuration.
pub(super) fn keep_sessions(start: &Start<'_>) {
    match start.previous {
        Some((_, previous)) if previous.is_on_trial() => {
            forget_sessions(start);
            // There may be none.
            let _ = std::fs::hard_link(file(start.directory, &start.config.gateway.name), kept_file(start));
        }
        Some(_) => {}
        None => forget_sessions(start),
    }
}

/// The gateway is ready.
pub(super) fn forget_sessions(start: &Start<'_>) {
    let _ = std::fs::remove_file(kept_file(start));
}

/// One worker comes to own both ends of each session.
fn unite(sessions: &[Handed], engines: &mut [Engine]) {
    let translators: BTreeSet<Identity> = sessions.iter().map(|(mechanism, _)| *mechanism).collect();
    for translator in translators {
        let its = sessions.iter().filter(|(mechanism, _)| *mechanism == translator);
        // Hosts behind a softwire have the softwire's worker.
        let site =
            |session: &SavedSession| Inside(Endpoint6::new(session.named().site(), session.inside.0.port));
        let ends = its.map(|(_, session)| (site(session), session.protocol, session.outside));
        Engine::unite(engines, translator, ends);
    }
}

/// Makes a session at its own translator, in whatever place of the configuration; no other translator may have it.
fn restore((mechanism, session): &Handed, engines: &mut [Engine], clock: Clock) -> Result<(), NotAdopted> {
    let mut outcome = Err(NotAdopted::NoTranslator);
    for engine in engines {
        let outside = session.outside.0;
        let Some((translator, counters)) = engine.stateful_of(*mechanism, outside) else { break };
        outcome = translator.restore(session, clock.now(), counters);
        if !matches!(outcome, Err(NotAdopted::OtherWorker)) {
            break;
        }
    }
    outcome
}

/// What was not adopted, by its reason.
#[derive(Debug, Default)]
pub(super) struct Refused(Vec<(NotAdopted, u64)>);

impl Refused {
    /// Counts this many more.
    pub(super) fn add(&mut self, why: NotAdopted, more: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += more,
            None if more > 0 => self.0.push((why, more)),
            None => {}
        }
    }

    /// Says how many ended and why.
    pub(super) fn tell(&self, noun: &str) {
        for (why, count) in &self.0 {
            tracing::info!("{} ended: {why}", plural(*count, noun));
        }
    }
}

/// Why a process with this configuration, of the program's file as it is now, loses the flows that this one's fast path carries.
pub(super) async fn loses_flows_to(start: &Start<'_>, config: &Config) -> Option<String> {
    start.config.fast_path.as_ref()?;
    let predecessor = Predecessor::with(start.config);
    if let Some(why) = predecessor.loses_flows_to(config) {
        return Some(why);
    }
    let layout = tokio::task::spawn_blocking(layout_of_the_file);
    match tokio::time::timeout(PATIENCE, layout).await {
        Ok(Ok(Some(layout))) if layout == LAYOUT_VERSION => None,
        Ok(Ok(Some(layout))) => Some(format!("the program file has map layout version {layout}")),
        Ok(Ok(None)) | Ok(Err(_)) | Err(_) => {
            Some("the program file does not report its map layout version".into())
        }
    }
}

/// The layout version of the program's file, which may differ from the running program.
fn layout_of_the_file() -> Option<u32> {
    let program = without_mark(std::env::current_exe().ok()?);
    if same_file(&program) {
        return Some(LAYOUT_VERSION);
    }
    let output = Command::new(program).args(["fastpath", "layout"]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Whether a file is what this process was started from.
fn same_file(program: &Path) -> bool {
    let number = |path: &Path| std::fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    let own = number(Path::new(OWN_PROGRAM));
    own.is_some() && own == number(program)
}

/// Whether the program's file is what this process was started from.
pub(super) fn is_own_program() -> bool {
    std::env::current_exe().is_ok_and(|program| same_file(&without_mark(program)))
}

/// The configuration that a reload loads.
///
/// # Errors
/// The gateway cannot continue with it: why.
pub(super) fn reloaded(start: &Start<'_>) -> Result<Config, String> {
    reloaded_with_text(start).map(|(config, _)| config)
}

/// The same with its text.
///
/// # Errors
/// The gateway cannot continue with it: why.
pub(super) fn reloaded_with_text(start: &Start<'_>) -> Result<(Config, Sources), String> {
    let (config, _, sources) =
        Sources::load(start.file, &crate::host::host_facts()).map_err(|faults| faults.to_string())?;
    check_reload(&start.config.gateway.name, &config)?;
    Ok((config, sources))
}

/// The current configuration, with this host's current addresses.
///
/// # Errors
/// The gateway cannot continue with it: why.
pub(super) fn same(sources: &Sources, name: &str) -> Result<Config, String> {
    let (config, _) = sources.config(&crate::host::host_facts()).map_err(|faults| faults.to_string())?;
    check_reload(name, &config)?;
    Ok(config)
}

/// Why the flows in the fast path of a process with this configuration, as `GET /v1/config` writes it, move to its engine before
/// a reload with another one; `None`: they stay.
pub fn flows_lost(running: &serde_json::Value, config: &Config) -> Option<String> {
    Predecessor::that_says(running).loses_flows_to(config)
}

/// Whether the running gateway of this name can continue with a configuration.
///
/// # Errors
/// Why not.
pub fn check_reload(name: &str, config: &Config) -> Result<(), String> {
    if config.gateway.name != name {
        return Err("gateway.name changed: restart required".into());
    }
    let now = crate::host::surroundings_now(Surroundings::default());
    packet_filter::check_masquerading(config, &now).map_err(|error| error.to_string())
}

/// This process becomes one of the program's file as it is now, with the same arguments; it learns of the file with the previous
/// configuration. If that file cannot be executed, as while it is written or after it was removed, it becomes one of its own program.
/// Returns if that cannot be either.
pub(super) fn re_execute(previous: &Path, listeners: &Listeners) -> io::Error {
    let sockets = match listeners.outlive_exec() {
        Ok(sockets) => sockets,
        Err(error) => {
            tracing::warn!("DNS64: queries are lost while the gateway starts again: {error}");
            String::new()
        }
    };
    let error = match std::env::current_exe() {
        Ok(program) => {
            let program = without_mark(program);
            let error = execute(&program, previous, &sockets);
            tracing::error!(
                "{} cannot be executed: {error}; the running program continues",
                program.display()
            );
            error
        }
        Err(error) => error,
    };
    execute(Path::new(OWN_PROGRAM), previous, &sockets);
    error
}

fn execute(program: &Path, previous: &Path, sockets: &str) -> io::Error {
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.env(PREVIOUS, previous).env(dns64_kept::SOCKETS, sockets);
    command.args(arguments.filter(|argument| argument != "--takeover")).exec()
}

/// The kernel appends a mark to the path of a running program whose file was replaced.
fn without_mark(program: PathBuf) -> PathBuf {
    let text = program.to_string_lossy();
    match text.strip_suffix(" (deleted)") {
        Some(plain) => plain.into(),
        None => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_is_found_by_its_name() {
        assert_eq!(without_mark("/usr/sbin/sixway (deleted)".into()), Path::new("/usr/sbin/sixway"));
        assert_eq!(without_mark("/usr/sbin/sixway".into()), Path::new("/usr/sbin/sixway"));
    }
}
