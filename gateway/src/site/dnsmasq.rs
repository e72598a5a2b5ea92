//! The process of dnsmasq: started with the site, started again if it ends, and ended with the site. One that a killed gateway left is
//! known by its command line, and continues with the next one.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
    child: Option<Child>,
    /// What was logged, so that it is logged once.
    trouble: Option<String>,
}

impl Dnsmasq {
    /// The one with this configuration, which is missing if none is to run; it may run already.
    pub(super) fn of(configuration: PathBuf) -> Self {
        Self { configuration, child: None, trouble: None }
    }

    /// Starts it, if it is to run and does not.
    pub(super) fn keep(&mut self) {
        // One that has ended is asked, so that it does not stay in the kernel's table.
        self.child.take_if(|child| child.try_wait().is_ok_and(|ended| ended.is_some()));
        if !self.configuration.exists() || process(&self.configuration).is_some() {
            return;
        }
        let mut file = std::ffi::OsString::from("--conf-file=");
        file.push(&self.configuration);
        let mut command = Command::new(PROGRAM);
        match command.arg("--keep-in-foreground").arg(file).stdin(Stdio::null()).spawn() {
            Ok(child) => (self.child, self.trouble) = (Some(child), None),
            Err(error) => {
                let trouble = error.to_string();
                if self.trouble.as_ref() != Some(&trouble) {
                    tracing::error!("hosts get no IPv4 addresses: dnsmasq: {error}");
                }
                self.trouble = Some(trouble);
            }
        }
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        end(&self.configuration);
        if let Some(child) = &mut self.child {
            let _ = child.try_wait();
        }
    }
}

/// Ends the one with this configuration.
pub(super) fn end(configuration: &Path) {
    let begun = Instant::now();
    let mut signal = Signal::SIGTERM;
    while let Some(process) = process(configuration) {
        if begun.elapsed() > PATIENCE {
            signal = Signal::SIGKILL;
        }
        if begun.elapsed() > 2 * PATIENCE {
            return;
        }
        // It may have ended meanwhile.
        let _ = kill(process, signal);
        std::thread::sleep(STEP);
    }
}

/// Whether the one with this configuration runs.
pub(super) fn runs(configuration: &Path) -> bool {
    process(configuration).is_some()
}

/// The process with this configuration. One that has ended has no command line any more.
fn process(configuration: &Path) -> Option<Pid> {
    let file = format!("--conf-file={}", configuration.display());
    let entries = fs::read_dir("/proc").ok()?;
    let mut processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    processes.find_map(|process| {
        let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let mut words = line.split(|octet| *octet == 0);
        let is_program = words.next().is_some_and(|program| program.ends_with(PROGRAM.as_bytes()));
        (is_program && words.any(|word| word == file.as_bytes())).then(|| Pid::from_raw(process))
    })
}
