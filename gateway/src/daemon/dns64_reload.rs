//! A reload of the DNS64 alone, in the running process: its cache, its connections and all sessions are kept.

use super::start::Start;
use super::takeover;
use crate::config::{Config, Sources};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long the DNS64 may take: certificates are read from files.
const PATIENCE: Duration = Duration::from_secs(20);

/// Another configuration for the DNS64 that runs.
#[derive(Debug)]
pub(super) struct Dns64Reload {
    pub(super) config: Arc<Config>,
    /// Whether it is in effect; else why not, and nothing was changed.
    pub(super) done: oneshot::Sender<Result<(), String>>,
}

/// The way to the DNS64 that runs.
#[derive(Clone, Debug)]
pub(super) struct Dns64Reloads(mpsc::Sender<Dns64Reload>);

impl Dns64Reloads {
    /// With the end that the DNS64 reads.
    pub(super) fn new() -> (Self, mpsc::Receiver<Dns64Reload>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Puts a configuration in force.
    ///
    /// # Errors
    /// Why it is not; then nothing was changed.
    pub(super) async fn apply(&self, config: Arc<Config>) -> Result<(), String> {
        let (done, told) = oneshot::channel();
        let busy = || "the DNS64 does not respond".to_owned();
        self.0.try_send(Dns64Reload { config, done }).map_err(|_| busy())?;
        match timeout(PATIENCE, told).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

/// Whether a running gateway can apply another configuration without a restart: only keys of the DNS64 differ, and none of those that set
/// its addresses, its number of threads, or which thread has a client.
pub(super) fn is_possible(running: &Config, new: &Config) -> bool {
    let (Some(old), Some(wanted)) = (&running.dns64, &new.dns64) else { return false };
    let places = |it: &crate::config::dns64::Listening| {
        (it.listen.clone(), it.listen_tls.clone(), it.listen_https.clone())
    };
    let threads = |it: &crate::config::dns64::Dns64| {
        (it.bounds.threads, it.connections.threads_by, it.bounds.client_prefix_length)
    };
    let same_sockets = places(&old.listening) == places(&wanted.listening) && threads(old) == threads(wanted);
    let mut as_before = new.clone();
    as_before.dns64.clone_from(&running.dns64);
    same_sockets && as_before == *running
}

/// The same for what `GET /v1/config` writes, by the keys that change.
pub fn stays_in_process(changes: &[crate::reload::Change]) -> bool {
    changes.iter().all(|change| {
        change.key.strip_prefix("dns64.").is_some_and(|key| {
            !["listen", "listen_tls", "listen_https", "threads", "threads_by", "client_prefix_length"]
                .contains(&key)
        })
    })
}

/// The present configuration file, if the running process can apply it; `None`: a new process is needed.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn of_file(start: &Start<'_>, running: &Config) -> Result<Option<(Config, Sources)>, String> {
    // A new version of the program is started, too.
    if running.dns64.is_none() || !takeover::is_own_program() {
        return Ok(None);
    }
    let (config, sources) = takeover::reloaded_with_text(start)?;
    Ok(is_possible(running, &config).then_some((config, sources)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reload::changes;

    const DNS64: &str = "[dns64]\nlisten = [\"127.0.0.1:53\"]\nprefix = \"64:ff9b::/96\"\ntranslated_elsewhere = true\n\
                         threads = 1\n[[dns64.upstream]]\naddress = \"192.0.2.53\"\n";

    fn parsed(text: &str) -> Config {
        crate::sample::config(&format!("[gateway]\nipv4_address = \"198.51.100.1\"\n{text}"))
    }

    /// Whether it is possible, as the gateway and as `--dry-run` finds.
    fn possible(old: &str, new: &str) -> [bool; 2] {
        let (old, new) = (parsed(old), parsed(new));
        let value = |config: &Config| serde_json::to_value(config).unwrap();
        [is_possible(&old, &new), stays_in_process(&changes(&value(&old), &value(&new)))]
    }

    #[test]
    fn what_the_dns64_asks_and_whom_it_serves_changes_in_the_process() {
        for (from, to) in [
            ("192.0.2.53", "192.0.2.54"),
            ("threads = 1\n", "threads = 1\nallow = [\"127.0.0.0/8\"]\n"),
            ("threads = 1\n", "threads = 1\nconnections = 64\nidle_timeout = \"5 s\"\n"),
            ("threads = 1\n", "threads = 1\ncache = \"1 MiB\"\n"),
            ("64:ff9b::/96", "2001:db8:64::/96"),
            (
                "[[dns64.upstream]]",
                "[[dns64.rule]]\nnames = [\"example\"]\nsynthesis = \"never\"\n[[dns64.upstream]]",
            ),
            ("threads", "threads"),
        ] {
            assert_eq!(possible(DNS64, &DNS64.replacen(from, to, 1)), [true; 2], "{to}");
        }
    }

    #[test]
    fn what_needs_other_sockets_or_concerns_others_restarts() {
        for (from, to) in [
            ("127.0.0.1:53", "127.0.0.1:5353"),
            ("threads = 1", "threads = 2"),
            ("threads = 1\n", "threads = 1\nthreads_by = \"flow\"\n"),
            ("threads = 1\n", "threads = 1\nclient_prefix_length = 56\n"),
            ("[dns64]", "log = \"debug\"\n[dns64]"),
        ] {
            let new = DNS64.replacen(from, to, 1);
            assert_eq!(possible(DNS64, &new), [false; 2], "{to}");
        }
        // One that begins or ends is a change of the whole.
        let without = parsed("[[siit]]\nname = \"s\"\nprefix = \"2001:db8:64::/96\"\n");
        assert!(!is_possible(&without, &parsed(DNS64)) && !is_possible(&parsed(DNS64), &without));
    }
}
