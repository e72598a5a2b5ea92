//! One network namespace: a host of an experiment, with a unique name.

use crate::failure::{Asking as _, Failure, Result};
use crate::process::{Finished, Process, RunsCommands};
use crate::programs;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a command that configures something may take.
const SHORT: Duration = Duration::from_secs(20);

/// A network namespace that exists as long as this value, unless it is kept.
pub struct Namespace {
    name: String,
    handle: File,
    folder: PathBuf,
    commands: AtomicU32,
    keep: bool,
}

impl Namespace {
    /// Makes a namespace; the outputs of what runs in it go to files in `folder`.
    pub fn create(name: String, folder: &Path) -> Result<Self> {
        ip(folder, &["netns", "add", &name])?;
        let path = Path::new("/run/netns").join(&name);
        let handle = File::open(&path).asking(|| format!("opening {}", path.display()))?;
        let new = Self { name, handle, folder: folder.to_owned(), commands: AtomicU32::new(0), keep: false };
        new.ip("link set lo up")?;
        Ok(new)
    }

    /// Its name, as `ip netns` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Leaves it there when this value goes.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Does `work` inside: sockets opened, files of `/proc/sys/net` written and children started there belong to it.
    /// Only the network is another one; files are the same.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(self.handle.as_fd(), CloneFlags::CLONE_NEWNET)
                    .asking(|| format!("entering the namespace {} (setns)", self.name))?;
                Ok(work())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` with these words for this namespace.
    pub fn ip(&self, words: &str) -> Result<String> {
        let words: Vec<_> = ["-n", &self.name].into_iter().chain(words.split_whitespace()).collect();
        ip(&self.folder, &words)
    }

    /// Writes a sysctl under `/proc/sys/net`, such as `ipv6/conf/all/forwarding`.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = Path::new("/proc/sys/net").join(key);
        self.enter(|| std::fs::write(&path, value))?
            .asking(|| format!("writing {value} to {} in {}", path.display(), self.name))
    }

    /// Reads a sysctl under `/proc/sys/net`.
    pub fn read_sysctl(&self, key: &str) -> Result<String> {
        let path = Path::new("/proc/sys/net").join(key);
        let text = self
            .enter(|| std::fs::read_to_string(&path))?
            .asking(|| format!("reading {} in {}", path.display(), self.name))?;
        Ok(text.trim().to_owned())
    }

    /// Starts a child inside, which runs until it is stopped.
    pub fn start(&self, command: Command) -> Result<Process> {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
        let log = self.folder.join(format!("{}-{number:03}-{program}.out", self.name));
        self.enter(|| Process::start(command, &log))?
    }

    /// Runs a child inside to its end, `limit` at most.
    pub fn run(&self, command: Command, limit: Duration) -> Result<Finished> {
        self.start(command)?.finish(limit)
    }

    /// One of the kernel's counters of IPv6 and its protocols, such as `Icmp6InPktTooBigs`.
    pub fn counter6(&self, name: &str) -> Result<u64> {
        let said = self
            .enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp6"))?
            .asking(|| format!("reading /proc/net/snmp6 in {}", self.name))?;
        said.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
            .ok_or_else(|| Failure::Unexpected(format!("no counter {name} in {}", self.name)))
    }

    /// Packets that a device has received.
    pub fn received_packets(&self, device: &str) -> Result<u64> {
        let said = self.kernel_says("dev")?;
        said.lines()
            .find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))
            .and_then(|figures| figures.split_whitespace().nth(1)?.parse().ok())
            .ok_or_else(|| Failure::Unexpected(format!("no device {device} in {}", self.name)))
    }

    /// Datagrams over IPv4 and IPv6 that came for sockets of this host, those included that the socket refused: those of a filter one by one, but
    /// what finds the socket full is counted once for a GSO packet.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn received_datagrams(&self) -> Result<u64> {
        let (four, six) = (self.kernel_says("snmp")?, self.kernel_says("snmp6")?);
        // A line of names, and one of figures.
        let mut lines = four.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, figures) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let in_four = names.split_whitespace().zip(figures.split_whitespace());
        let in_four = in_four.filter(|(name, _)| ["InDatagrams", "InErrors"].contains(name));
        let in_six = six.lines().filter_map(|line| {
            let (name, figure) = line.split_once(char::is_whitespace)?;
            ["Udp6InDatagrams", "Udp6InErrors"].contains(&name).then(|| figure.trim())
        });
        Ok(in_four.map(|(_, figure)| figure).chain(in_six).filter_map(|it| it.parse::<u64>().ok()).sum())
    }

    fn kernel_says(&self, file: &str) -> Result<String> {
        self.enter(|| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")))?
            .asking(|| format!("reading /proc/net/{file} in {}", self.name))
    }
}

impl RunsCommands for Namespace {
    fn run(&self, command: Command, limit: Duration) -> Result<Finished> {
        Self::run(self, command, limit)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(said) = remove(&self.name) {
            eprintln!("could not remove the namespace {}: {said}", self.name);
        }
    }
}

/// Ends what runs in a namespace and removes it, whatever signals have come.
pub fn remove(name: &str) -> std::result::Result<(), String> {
    end_what_runs_in(name);
    let mut command = command("ip").map_err(|failure| failure.to_string())?;
    let done = command.args(["netns", "del", name]).output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()) }
}

/// Kills every process whose network namespace is this one (grandchildren that outlived our children).
pub fn end_what_runs_in(name: &str) {
    let Ok(mut command) = command("ip") else { return };
    let Ok(listed) = command.args(["netns", "pids", name]).output() else { return };
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        if let Ok(id) = line.trim().parse() {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL).ok();
        }
    }
}

/// A command for an installed program, or [`Failure::Missing`].
pub fn command(program: &'static str) -> Result<Command> {
    Ok(Command::new(programs::require(program)?))
}

fn ip(folder: &Path, words: &[&str]) -> Result<String> {
    let mut command = command("ip")?;
    command.args(words);
    let log = folder.join(format!("ip-{}.out", unique()));
    Ok(Process::start(command, &log)?.finish(SHORT)?.succeeded()?.stdout)
}

fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
