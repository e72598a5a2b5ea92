//! The process of the DHCP server: started with the site, started again if it ends, and ended with the site. The server of a killed
//! gateway continues with the next one.
//!
//! It is identified by its PID and its start time, which are recorded when it starts. Other processes of the host may have the same command
//! line, and the kernel reuses PIDs.

use super::dhcp_program::DhcpProgram;
use super::kea_leases::KeaLeases;
use super::kea_process;
use super::whole_file::write;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use sixway_link::{ProcessHandle, with_no_signal_blocked};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// It writes its leases.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);
/// A server that ends sooner cannot work.
const EARLY: Duration = Duration::from_secs(6);

/// A program with a site's configuration of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// The program.
    pub program: DhcpProgram,
    /// Where its configuration is, if it is to run.
    pub configuration: PathBuf,
    /// Where its process is recorded.
    record: PathBuf,
    /// Its own file of leases, and where they are followed, if that is another file.
    leases: Option<(PathBuf, PathBuf)>,
}

impl Server {
    /// Each program, for the site of this name, whose files are in this directory.
    pub(super) fn all(directory: &Path, site: &str) -> [Self; 2] {
        let record = |program: &str| directory.join(format!("{site}.{program}-process"));
        [
            Self {
                program: DhcpProgram::Dnsmasq,
                configuration: directory.join(format!("{site}.dnsmasq")),
                record: record("dnsmasq"),
                leases: None,
            },
            Self {
                program: DhcpProgram::Kea,
                configuration: kea_process::configuration_file(site),
                record: record("kea"),
                leases: Some((kea_process::leases_file(site), directory.join(format!("{site}.leases")))),
            },
        ]
    }

    /// Writes its configuration. If that is another one than before, the process ends, which reads it at its start only: who keeps the
    /// server running starts it again.
    pub(super) fn configure(&self, text: &str) -> io::Result<()> {
        let is_another = fs::read_to_string(&self.configuration).is_ok_and(|before| before != text);
        if let Some(folder) = self.configuration.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        write(&self.configuration, text)?;
        // Kea reads it as its own user.
        let mode = if self.program == DhcpProgram::Kea { 0o644 } else { 0o600 };
        fs::set_permissions(&self.configuration, Permissions::from_mode(mode))?;
        if is_another {
            self.end();
        }
        Ok(())
    }

    /// Removes its configuration.
    pub(super) fn forget(&self) {
        // It is not always there.
        let _ = fs::remove_file(&self.configuration);
        if self.program == DhcpProgram::Kea {
            let _ = self.configuration.parent().map(fs::remove_dir);
        }
    }

    fn start(&self) -> io::Result<()> {
        let mut command = match self.program {
            DhcpProgram::Dnsmasq => Command::new(self.program.name()),
            DhcpProgram::Kea => kea_process::command(self.program.name())?,
        };
        command.args(self.program.arguments(&self.configuration)).stdin(Stdio::null());
        // This thread does not take the gateway's signals.
        let mut child = with_no_signal_blocked(&mut command).spawn()?;
        let recorded = i32::try_from(child.id())
            .ok()
            .and_then(Started::now)
            .ok_or_else(|| io::Error::other("it ended immediately"))
            .and_then(|started| write(&self.record, &started.written()));
        if recorded.is_err() {
            // Without a record it could not be ended later.
            let _ = child.kill();
            let _ = child.wait();
        }
        recorded
    }

    /// Ends the process, and removes its record.
    pub(super) fn end(&self) {
        let begun = Instant::now();
        let mut signal = Signal::SIGTERM;
        while let Some(process) = self.running() {
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
        let _ = fs::remove_file(&self.record);
    }

    /// Whether it runs.
    pub(super) fn runs(&self) -> bool {
        self.running().is_some()
    }

    /// The recorded process, if it has not ended.
    fn running(&self) -> Option<ProcessHandle> {
        let recorded = Started::read(&fs::read_to_string(&self.record).ok()?)?;
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
}

/// The server of a site, while the site runs.
#[derive(Debug)]
pub(super) struct DhcpServer {
    servers: [Server; 2],
    /// When it was started by this process.
    begun: Option<Instant>,
    /// How often it has ended early without a pause; once, its configuration may have changed.
    early: u32,
    /// The last logged fault, which is logged once.
    trouble: Option<String>,
    /// Kea's leases as far as they are read.
    kea: Option<KeaLeases>,
    /// The leases as they were last written for the PCP server.
    written: Option<String>,
}

impl DhcpServer {
    /// The one of these whose configuration exists, if any is to run; it may run already.
    pub(super) const fn of(servers: [Server; 2]) -> Self {
        Self { servers, begun: None, early: 0, trouble: None, kea: None, written: None }
    }

    /// Starts it, if it should run and does not, and writes its leases for the PCP server.
    pub(super) fn keep(&mut self) {
        self.start();
        self.show_leases();
    }

    fn show_leases(&mut self) {
        let mut running = self.servers.iter().filter(|server| server.configuration.exists());
        let Some((from, to)) = running.find_map(|server| server.leases.as_ref()) else { return };
        let leases = self.kea.get_or_insert_with(|| KeaLeases::of(from.clone())).look();
        if leases.is_none() || leases == self.written {
            return;
        }
        match write(to, leases.as_deref().unwrap_or_default()) {
            Ok(()) => self.written = leases,
            Err(error) => tracing::debug!("{}: {error}", to.display()),
        }
    }

    fn start(&mut self) {
        let is_missing = |server: &&Server| server.configuration.exists() && !server.runs();
        let Some(server) = self.servers.iter().find(is_missing) else { return };
        let is_early = self.begun.replace(Instant::now()).is_some_and(|begun| begun.elapsed() < EARLY);
        self.early = if is_early { self.early.saturating_add(1) } else { 0 };
        let ended = "it ends immediately; does another program have UDP port 67?";
        let ended = (self.early > 1).then(|| ended.to_owned());
        let trouble = server.start().err().map(|error| error.to_string()).or(ended);
        if let (Some(what), true) = (&trouble, trouble != self.trouble) {
            tracing::error!("hosts get no IPv4 addresses: {}: {what}", server.program.name());
        }
        self.trouble = trouble;
    }
}

/// A process, identified by its PID and its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Started {
    process: i32,
    /// Ticks of the kernel's clock since the host's start.
    at: u64,
    /// Boot ID of the host.
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

    /// A server that does not run, and a process that looks like it.
    fn lookalike(name: &str) -> (Server, std::process::Child) {
        let name = format!("sixway-{name}-{}", std::process::id());
        let [server, _] = Server::all(&std::env::temp_dir(), &name);
        let mut shell = Command::new("sh");
        shell.arg0(server.program.name()).args([
            "-c",
            "read line; exit 0",
            "x",
            &format!("--conf-file={}", server.configuration.display()),
        ]);
        // It waits for its input.
        (server, shell.stdin(Stdio::piped()).spawn().unwrap())
    }

    #[test]
    fn a_process_with_the_same_command_line_or_number_is_not_ours() {
        let (server, mut other) = lookalike("not-ours");
        let process = i32::try_from(other.id()).unwrap();
        assert!(!server.runs(), "nothing is recorded");
        let started = Started::now(process).unwrap();
        for wrong in [
            Started { at: started.at + 1, ..started.clone() },
            Started { boot: "another".into(), ..started.clone() },
        ] {
            fs::write(&server.record, wrong.written()).unwrap();
            assert!(!server.runs(), "{wrong:?}");
            server.end();
            assert!(!server.record.exists() && Started::now(process).is_some(), "{wrong:?}");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn the_recorded_process_is_ended_and_its_record_removed() {
        let (server, child) = lookalike("ours");
        let process = i32::try_from(child.id()).unwrap();
        fs::write(&server.record, Started::now(process).unwrap().written()).unwrap();
        assert!(server.runs());
        server.end();
        assert!(!server.runs() && !server.record.exists() && Started::now(process).is_none());
    }

    #[test]
    fn another_configuration_ends_the_process_and_the_same_one_does_not() {
        let (server, child) = lookalike("configured");
        let process = i32::try_from(child.id()).unwrap();
        server.configure("port=53\n").unwrap();
        fs::write(&server.record, Started::now(process).unwrap().written()).unwrap();
        server.configure("port=53\n").unwrap();
        assert!(server.runs());
        server.configure("port=53\ndhcp-option=108,0:0:7:8\n").unwrap();
        assert!(!server.runs() && Started::now(process).is_none());
        server.forget();
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
