//! A recipe: one POSIX shell file with a function for each action. It is called with the action's name, with the task in its environment, and
//! answers in lines of the form `key=value`.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::measure::{ClockOffset, Exchange, clock_offset};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// What every recipe can do.
///
/// | Action | Answer |
/// |---|---|
/// | `about` | `what`, and `tasks`: names of tasks with hyphens, separated by commas |
/// | `why_not` | nothing, or `why` |
/// | `version` | `version` |
/// | `start` | nothing; the device is at work |
/// | `stop` | nothing; everything that `start` changed is as it was |
/// | `restart` | nothing |
/// | `cpu` | `busy_ns`: time that its CPUs were busy since any fixed moment, in nanoseconds |
/// | `memory` | `octets` in use, or nothing |
/// | `clock` | `ns`: nanoseconds since 1970 by its clock, and `within_ns` if it tells them that roughly; or nothing |
/// | `counters` | counters that explain a loss |
pub const ACTIONS: [&str; 10] =
    ["about", "why_not", "version", "start", "stop", "restart", "cpu", "memory", "clock", "counters"];

/// What every recipe of a host can do; see [`HostRequest`](super::HostRequest).
///
/// All are given `LINK`, `ADDRESSES` with prefix lengths, and `ROUTES`: a destination and its gateway with a comma between them; both lists are
/// separated by spaces.
///
/// | Action | Given in addition | Answer |
/// |---|---|---|
/// | `about` | | `what` |
/// | `why_not` | | nothing, or `why` |
/// | `version` | | `version` |
/// | `start` | | nothing; the host has its addresses and routes, and an iperf3 server |
/// | `stop` | | nothing; everything that `start` changed is as it was |
/// | `round_trips` | `TARGET`, `OCTETS`, `COUNT` | `sent`, and `times`: those of the answers in milliseconds in their order, separated by spaces |
/// | `clock` | | as that of a device |
/// | `send` | `TARGET`, `TRANSPORT` (`tcp` or `udp`), `OCTETS`, `DURATION` in seconds | `bits`: bits of payload that arrived in a second |
pub const HOST_ACTIONS: [&str; 8] =
    ["about", "why_not", "version", "start", "stop", "clock", "round_trips", "send"];

/// How long an action may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Exchanges with a clock, the quickest of which counts.
const EXCHANGES: usize = 5;

/// A recipe and how it gets to its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// How.
    pub transport: Transport,
    /// The file, on this machine.
    pub file: PathBuf,
}

/// How a recipe gets to its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// It runs here, with the task in its environment, and reaches the device by itself.
    Local,
    /// It runs there, as this user at this host.
    Ssh(String),
}

/// What the recipe is given, by name.
pub type Environment = BTreeMap<String, String>;

impl Recipe {
    /// Runs an action; its answer.
    ///
    /// # Errors
    /// It fails, or answers something else.
    pub fn run(&self, action: &str, environment: &Environment) -> Result<BTreeMap<String, String>> {
        let what = || format!("{action} of {}", self.file.display());
        let mut command = match &self.transport {
            Transport::Local => {
                let mut local = Command::new("sh");
                local.arg(&self.file).arg(action).envs(environment).stdin(Stdio::null());
                local
            }
            Transport::Ssh(host) => {
                let mut ssh = Command::new("ssh");
                ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host, "sh", "-s", action]);
                ssh.stdin(Stdio::piped());
                ssh
            }
        };
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().asking(what)?;
        if let Some(mut input) = child.stdin.take() {
            // A recipe that ends early does not read all of it.
            input.write_all(self.script(environment)?.as_bytes()).ok();
        }
        // What it says is short and fits into the pipes.
        let mut has_ended = || child.try_wait().map(|status| status.is_some()).asking(what);
        let ended = match action == "stop" {
            true => ends_within(PATIENCE, &what(), has_ended),
            false => interrupt::wait_until(PATIENCE, &format!("the end of {}", what()), &mut has_ended),
        };
        if ended.is_err() {
            child.kill().ok();
        }
        let output = child.wait_with_output().asking(what)?;
        ended?;
        match output.status.success() {
            true => answers(&String::from_utf8_lossy(&output.stdout))
                .ok_or_else(|| Failure::Unexpected(format!("{} answered other than key=value", what()))),
            false => Err(Failure::Program(what(), String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    /// How far the machine's clock is ahead; `None` if it does not tell its time.
    ///
    /// # Errors
    /// The action `clock` fails.
    pub fn clock_offset(&self, environment: &Environment) -> Result<Option<ClockOffset>> {
        let (mut is_silent, mut roughly) = (false, Duration::ZERO);
        let offset = clock_offset(EXCHANGES, || {
            let asked = now();
            let said = self.run("clock", environment)?;
            let came = now();
            let number = |key: &str| said.get(key).and_then(|text| text.parse::<i64>().ok());
            is_silent |= number("ns").is_none();
            roughly = Duration::from_nanos(number("within_ns").unwrap_or(0).unsigned_abs());
            // It returns one time for both: the difference counts as transit time.
            let there = number("ns").unwrap_or(0);
            Ok(Exchange { asked, heard: there, answered: there, came })
        })?;
        let within = offset.within + roughly;
        Ok((!is_silent).then_some(ClockOffset { within, ..offset }))
    }

    /// The file with what it is given in front of it.
    fn script(&self, environment: &Environment) -> Result<String> {
        let read =
            |path: &Path| std::fs::read_to_string(path).asking(|| format!("reading {}", path.display()));
        let given = environment.iter().map(|(name, value)| format!("{name}={}\n", quoted(value)));
        Ok(given.collect::<String>() + &read(&self.file)?)
    }
}

/// This machine's time, in nanoseconds since 1970.
fn now() -> i64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Waits, also after Ctrl-C: the other machine is to be as it was.
fn ends_within(limit: Duration, what: &str, mut has_ended: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !has_ended()? {
        if start.elapsed() > limit {
            return Err(Failure::TimedOut(format!("{what} did not end within {limit:?}")));
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    Ok(())
}

/// A value as a word of the shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Lines of key and value; `None` if there is another line.
pub(super) fn answers(said: &str) -> Option<BTreeMap<String, String>> {
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines_of_key_and_value() {
        let two = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x=y".to_owned())]);
        assert_eq!(answers("a=1\n\nb=x=y\n"), Some(two));
        assert_eq!(answers("hello\n"), None);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
