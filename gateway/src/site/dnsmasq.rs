//! The process of dnsmasq: started with the site, started again if it ends, and ended with the site. One that a killed gateway left
//! continues with the next one.
//!
//! It is known by what was recorded at its start: its number, and when the kernel began it. Anybody on the host may have a process with the
//! same command line, and the kernel gives numbers again.

use super::whole_file::write;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use sixway_link::ProcessHandle;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "dnsmasq";
/// It writes its leases.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);

/// Whether the program is installed.
///
/// # Errors
/// It is not.
pub(super) fn demand() -> Result<(), String> {
    let asked = Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "dnsmasq not found; install the package dnsmasq-base, or leave out --dhcp".into()
        }
        _ => format!("dnsmasq: {error}"),
    })
}

/// The process.
#[derive(Debug)]
pub(super) struct Dnsmasq {
    configuration: PathBuf,
    /// What was logged, so that it is logged once.
    trouble: Option<String>,
}

impl Dnsmasq {
    /// The one with this configuration, which is missing if none is to run; it may run already.
    pub(super) fn of(configuration: PathBuf) -> Self {
        Self { configuration, trouble: None }
    }

    /// Starts it, if it is to run and does not.
    pub(super) fn keep(&mut self) {
        if !self.configuration.exists() || runs(&self.configuration) {
            return;
        }
        let trouble = start(&self.configuration).err().map(|error| error.to_string());
        if let (Some(what), true) = (&trouble, trouble != self.trouble) {
            tracing::error!("hosts get no IPv4 addresses: dnsmasq: {what}");
        }
        self.trouble = trouble;
    }

    /// Ends it.
    pub(super) fn end(&self) {
        end(&self.configuration);
    }
}

fn start(configuration: &Path) -> io::Result<()> {
    let mut file = std::ffi::OsString::from("--conf-file=");
    file.push(configuration);
    let mut command = Command::new(PROGRAM);
    let mut child = command.arg("--keep-in-foreground").arg(file).stdin(Stdio::null()).spawn()?;
    let recorded = i32::try_from(child.id())
        .ok()
        .and_then(Started::now)
        .ok_or_else(|| io::Error::other("it ended immediately"))
        .and_then(|started| write(&record(configuration), &started.written()));
    if recorded.is_err() {
        // Nobody would know it.
        let _ = child.kill();
        let _ = child.wait();
    }
    recorded
}

/// Ends the one with this configuration, and forgets it.
pub(super) fn end(configuration: &Path) {
    let begun = Instant::now();
    let mut signal = Signal::SIGTERM;
    while let Some(process) = running(configuration) {
        if begun.elapsed() > PATIENCE {
            signal = Signal::SIGKILL;
        }
        if begun.elapsed() > 2 * PATIENCE {
            return;
        }
        // It may have ended meanwhile.
        let _ = process.signal(signal as i32);
        std::thread::sleep(STEP);
    }
    // It is not always there.
    let _ = fs::remove_file(record(configuration));
}

/// Whether the one with this configuration runs.
pub(super) fn runs(configuration: &Path) -> bool {
    running(configuration).is_some()
}

/// Where its process is recorded.
fn record(configuration: &Path) -> PathBuf {
    configuration.with_extension("dnsmasq-process")
}

/// The recorded process, if it has not ended.
fn running(configuration: &Path) -> Option<ProcessHandle> {
    let recorded = Started::read(&fs::read_to_string(record(configuration)).ok()?)?;
    let handle = ProcessHandle::open(recorded.process).ok()?;
    let (started, has_ended) = Started::look(recorded.process)?;
    if started != recorded {
        return None;
    }
    if has_ended {
        // A child of this process stays in the kernel's table until its status is read.
        let _ = waitpid(Pid::from_raw(recorded.process), Some(WaitPidFlag::WNOHANG));
    }
    (!has_ended).then_some(handle)
}

/// A process, and when the kernel began it: no other one is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Started {
    process: i32,
    /// Ticks of the kernel's clock since the host's start.
    at: u64,
    /// Which start of the host.
    boot: String,
}

impl Started {
    /// The process that has this number and has not ended.
    fn now(process: i32) -> Option<Self> {
        let (started, has_ended) = Self::look(process)?;
        (!has_ended).then_some(started)
    }

    /// The process that has this number, and whether it has ended and is only in the kernel's table.
    fn look(process: i32) -> Option<(Self, bool)> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // proc(5): a name in parentheses, which may have any character, the state, and the start as the 22nd column.
        let mut columns = stat.rsplit_once(") ")?.1.split_whitespace();
        let state = columns.next()?;
        let at = columns.nth(18)?.parse().ok()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Some((Self { process, at, boot: boot.trim().into() }, matches!(state, "Z" | "X")))
    }

    fn written(&self) -> String {
        format!("{} {} {}\n", self.process, self.at, self.boot)
    }

    fn read(text: &str) -> Option<Self> {
        let (process, rest) = text.trim_end().split_once(' ')?;
        let (at, boot) = rest.split_once(' ')?;
        let process = process.parse().ok().filter(|process| *process > 0)?;
        Some(Self { process, at: at.parse().ok()?, boot: boot.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;

    /// A file that is the configuration of no dnsmasq, and a process that looks like one with it.
    fn lookalike(name: &str) -> (PathBuf, std::process::Child) {
        let file = std::env::temp_dir().join(format!("sixway-{name}-{}.dnsmasq", std::process::id()));
        let mut shell = Command::new("sh");
        shell.arg0(PROGRAM).args([
            "-c",
            "read line; exit 0",
            "x",
            &format!("--conf-file={}", file.display()),
        ]);
        // It waits for its input.
        (file, shell.stdin(Stdio::piped()).spawn().unwrap())
    }

    #[test]
    fn a_process_with_the_same_command_line_or_number_is_not_ours() {
        let (file, mut other) = lookalike("not-ours");
        let process = i32::try_from(other.id()).unwrap();
        assert!(!runs(&file), "nothing is recorded");
        let started = Started::now(process).unwrap();
        for wrong in [
            Started { at: started.at + 1, ..started.clone() },
            Started { boot: "another".into(), ..started.clone() },
        ] {
            fs::write(record(&file), wrong.written()).unwrap();
            assert!(!runs(&file), "{wrong:?}");
            end(&file);
            assert!(!record(&file).exists() && Started::now(process).is_some(), "{wrong:?}");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn the_recorded_process_is_ended_and_forgotten() {
        let (file, child) = lookalike("ours");
        let process = i32::try_from(child.id()).unwrap();
        fs::write(record(&file), Started::now(process).unwrap().written()).unwrap();
        assert!(runs(&file));
        end(&file);
        assert!(!runs(&file) && !record(&file).exists() && Started::now(process).is_none());
    }

    #[test]
    fn a_damaged_record_is_none() {
        for text in ["", "12", "12 7", "x 7 b", "-1 7 b", "0 7 b"] {
            assert_eq!(Started::read(text), None, "{text}");
        }
        let started = Started { process: 12, at: 7, boot: "b".into() };
        assert_eq!(Started::read(&started.written()), Some(started));
    }
}
