//! One process of a gateway makes way for another: by `sixway run --takeover`, or for itself on SIGHUP.
//!
//! The one that leaves stops its workers, writes down the sessions that the fast path does not carry, and ends without putting anything
//! back: device, routes, settings and what is pinned stay. The lock of the state file is free then, and the other goes on with all of it.

use super::handover_file::{self, Handed};
use super::run::{RunError, Start};
use crate::admin::{Client, ClientError, Left};
use crate::config::Config;
use crate::host;
use crate::show::plural;
use crate::worker::Clock;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::NotAdopted;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the one that leaves may take: a million sessions take less than a second.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(2);

/// Asks the process that runs the gateway to make way, and waits until it has. Whether there was one.
pub(super) async fn make_room(start: &Start<'_>) -> Result<bool, RunError> {
    let name = &start.config.gateway.name;
    let Some(running) = host::running(start.directory, name) else {
        tracing::info!("there is no gateway {name} to take over: it is started");
        return Ok(false);
    };
    let socket = running.socket.unwrap_or_else(|| start.config.gateway.admin_socket.clone());
    let failed = |why: &str| RunError::Takeover(format!("the gateway {name} cannot be taken over: {why}"));
    match Client::new(&socket).post::<Left>("/v1/leave") {
        // It may be gone before its answer is read.
        Ok(Left { .. }) | Err(ClientError::Garbled(_)) => {}
        Err(error) => return Err(failed(&error.to_string())),
    }
    let asked = Instant::now();
    while host::running(start.directory, name).is_some() {
        if asked.elapsed() > PATIENCE {
            return Err(failed("it does not make way; end it, then start this one"));
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(true)
}

/// Where the sessions are while nobody has them.
pub(super) fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.handover"))
}

/// Writes the sessions down for who takes over. What cannot be written ends with this process.
pub(super) fn hand_over(directory: &Path, name: &str, sessions: &[Handed]) {
    let path = file(directory, name);
    match handover_file::write(&path, sessions) {
        Ok(()) => tracing::info!("{} handed over", plural(sessions.len() as u64, "session")),
        Err(error) => tracing::error!("sessions are lost: {}: {error}", path.display()),
    }
}

/// Goes on with the sessions that were handed over, if any were.
pub(super) fn take_over(directory: &Path, name: &str, engines: &mut [Engine], clock: Clock) {
    let path = file(directory, name);
    let sessions = match handover_file::read(&path) {
        Ok(sessions) => sessions,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!("sessions are lost: {}: {error}", path.display());
            Vec::new()
        }
    };
    // They are told once.
    let _ = std::fs::remove_file(&path);
    let all = sessions.len() as u64;
    let kept = sessions.iter().filter(|session| restored(session, engines, clock)).count() as u64;
    tracing::info!("{kept} of {} go on", plural(all, "session"));
}

fn restored((mechanism, session): &Handed, engines: &mut [Engine], clock: Clock) -> bool {
    let mut outcome = Err(NotAdopted::NoTranslator);
    Engine::unite(engines, usize::from(*mechanism), session.inside, (session.protocol, session.outside));
    for engine in engines {
        let (nat64, counters) = engine.nat64_and_counters();
        let Some(nat64) = nat64.get_mut(usize::from(*mechanism)) else { break };
        outcome = nat64.restore(session, clock.now(), counters);
        if !matches!(outcome, Err(NotAdopted::OtherWorker)) {
            break;
        }
    }
    if let Err(why) = outcome {
        tracing::debug!("a session of {} with {} ends: {why}", session.inside.0, session.remote);
    }
    outcome.is_ok()
}

/// What a gateway would be told by SIGHUP: the configuration as it is now, if it could be taken over to.
pub(super) fn reloaded(start: &Start<'_>) -> Option<Config> {
    match Config::load(start.file) {
        Ok((config, _)) if config.gateway.name != start.config.gateway.name => {
            tracing::error!("not reloaded: gateway.name is another; end this one and start that");
            None
        }
        Ok((config, _)) => Some(config),
        Err(faults) => {
            tracing::error!("not reloaded: {faults}");
            None
        }
    }
}

/// This process becomes one of the program's file as it is now, with the same arguments. Returns if that cannot be.
pub(super) fn become_anew() -> io::Error {
    match std::env::current_exe() {
        Ok(program) => {
            let mut arguments = std::env::args_os();
            let mut command = Command::new(without_mark(program));
            if let Some(name) = arguments.next() {
                command.arg0(name);
            }
            command.args(arguments.filter(|argument| argument != "--takeover")).exec()
        }
        Err(error) => error,
    }
}

/// A file that was replaced while its program runs is told with a mark behind its name.
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
