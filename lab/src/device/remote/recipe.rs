//! A recipe: one POSIX shell file with a function for each action. It is called with the action's name, with the task in its environment, and
//! answers in lines of the form `key=value`.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::measure::{ClockOffset, Exchange, clock_offset};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
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

/// Octets of output of an action at most.
const LONGEST: u64 = 1 << 20;

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
        self.run_within(PATIENCE, action, environment)
    }

    /// The same within a time. What an action starts and leaves behind may keep its output open: only the end of the shell is waited for.
    fn run_within(
        &self,
        patience: Duration,
        action: &str,
        environment: &Environment,
    ) -> Result<BTreeMap<String, String>> {
        let what = || format!("{action} of {}", self.file.display());
        let [stdout, stderr] = [memory_file(what)?, memory_file(what)?];
        let mut command = self.command(action, environment)?;
        command.stdout(stdout.try_clone().asking(what)?).stderr(stderr.try_clone().asking(what)?);
        let mut child = command.process_group(0).spawn().asking(what)?;
        let mut status = None;
        let mut has_ended = || {
            status = child.try_wait().asking(what)?;
            match [&stdout, &stderr].iter().any(|file| file.metadata().is_ok_and(|it| it.len() > LONGEST)) {
                true => {
                    Err(Failure::Unexpected(format!("{} has more than {LONGEST} octets of output", what())))
                }
                false => Ok(status.is_some()),
            }
        };
        let ended = match action == "stop" {
            true => ends_within(patience, &what(), has_ended),
            false => interrupt::wait_until(patience, &format!("the end of {}", what()), &mut has_ended),
        };
        let status = match (ended, status) {
            (Ok(()), Some(status)) => status,
            (ended, status) => {
                if status.is_none() {
                    // What the shell has started belongs to its group.
                    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).ok();
                    child.wait().ok();
                }
                return Err(ended.err().unwrap_or_else(|| Failure::TimedOut(what())));
            }
        };
        match status.success() {
            true => answers(&text_of(&stdout).asking(what)?)
                .ok_or_else(|| Failure::Unexpected(format!("{} answered other than key=value", what()))),
            false => Err(Failure::Program(what(), text_of(&stderr).asking(what)?.trim().to_owned())),
        }
    }

    /// The shell that runs an action, here or on the other machine.
    fn command(&self, action: &str, environment: &Environment) -> Result<Command> {
        match &self.transport {
            Transport::Local => {
                let mut local = Command::new("sh");
                local.arg(&self.file).arg(action).envs(environment).stdin(Stdio::null());
                Ok(local)
            }
            Transport::Ssh(host) => {
                let mut ssh = Command::new("ssh");
                ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", host, "sh", "-s", action]);
                let what = || format!("{action} on {host}");
                let mut script = memory_file(what)?;
                script.write_all(self.script(environment)?.as_bytes()).asking(what)?;
                script.rewind().asking(what)?;
                ssh.stdin(script);
                Ok(ssh)
            }
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

/// A file without a name, for a child: unlike a pipe it never blocks.
fn memory_file(what: impl FnOnce() -> String) -> Result<File> {
    memfd_create(c"recipe", MFdFlags::MFD_CLOEXEC).map(File::from).asking(what)
}

/// What a child has written into it.
fn text_of(file: &File) -> std::io::Result<String> {
    let length = file.metadata()?.len().min(LONGEST);
    let mut octets = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut octets, 0)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
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
    use nix::sys::signal::kill;

    /// What an action of this recipe answers within this number of seconds, and the process that it started in the background.
    fn within(seconds: u64, name: &str, recipe: &str) -> (Result<BTreeMap<String, String>>, Pid) {
        let folder = std::env::temp_dir().join(format!("sixway-recipe-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, background) = (folder.join("recipe.sh"), folder.join("background"));
        std::fs::write(&file, recipe).unwrap();
        let environment = Environment::from([("BACKGROUND".to_owned(), background.display().to_string())]);
        let recipe = Recipe { transport: Transport::Local, file };
        let start = Instant::now();
        let said = recipe.run_within(Duration::from_secs(seconds), "about", &environment);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        let id: i32 = std::fs::read_to_string(&background).unwrap().trim().parse().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        (said, Pid::from_raw(id))
    }

    /// Whether a process runs. One that has ended may still wait for its parent.
    fn runs(id: Pid) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim().starts_with(['Z', 'X']))
    }

    #[test]
    fn what_an_action_leaves_in_the_background_is_not_waited_for() {
        let recipe =
            "about() { sleep 1000 & echo $! >\"$BACKGROUND\"; echo what=x; echo tasks=forwarder; }\n\"$1\"\n";
        let (said, background) = within(40, "background", recipe);
        let still_runs = runs(background);
        kill(background, Signal::SIGKILL).ok();
        let said = said.unwrap();
        assert_eq!((said["what"].as_str(), said["tasks"].as_str(), still_runs), ("x", "forwarder", true));
    }

    #[test]
    fn an_action_that_hangs_or_says_too_much_ends_with_all_that_it_started() {
        let hangs = "sleep 1000 & echo $! >\"$BACKGROUND\"; wait";
        let talks = "sleep 1000 & echo $! >\"$BACKGROUND\"; while :; do echo what=0123456789012345678901234567890123456789; done";
        for (name, does, seconds, why) in
            [("hangs", hangs, 3, "within 3s"), ("talks", talks, 40, "octets of output")]
        {
            let (said, background) = within(seconds, name, does);
            let said = said.unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
            ends_within(Duration::from_secs(5), "sleep", || Ok(!runs(background))).unwrap();
        }
    }

    #[test]
    fn answers_are_lines_of_key_and_value() {
        let two = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x=y".to_owned())]);
        assert_eq!(answers("a=1\n\nb=x=y\n"), Some(two));
        assert_eq!(answers("hello\n"), None);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
