//! Commands to a guest: a script in a shared folder, and a line with its number on the guest's console; its results are files.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::process::Finished;
use crate::topology::Network;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A guest is up after two or three seconds, on a busy machine later.
const BOOT: Duration = Duration::from_secs(60);

/// The console of a guest that a network runs as a process.
pub struct Console {
    process: u32,
    control: PathBuf,
    commands: AtomicU32,
}

impl Console {
    /// Of a guest with this process id; its init looks for scripts in this folder, and its console reads the pipe `orders` there.
    pub fn new(process: u32, control: PathBuf) -> Self {
        Self { process, control, commands: AtomicU32::new(0) }
    }

    /// The folder for a guest on this host, without what an earlier one left there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(network: &Network, host: &str) -> Result<PathBuf> {
        let control = network.folder().join(format!("guest-{host}"));
        std::fs::remove_dir_all(&control).ok();
        std::fs::create_dir(&control).asking(|| format!("creating {}", control.display()))?;
        Ok(control)
    }

    /// The guest's process id on the machine.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The folder.
    pub fn control(&self) -> &Path {
        &self.control
    }

    /// Runs a shell script in the guest to its end, `limit` at most. What it starts with `&` continues.
    ///
    /// # Errors
    /// The guest is gone, or the script does not end.
    pub fn run_script(&self, network: &Network, script: &str, limit: Duration) -> Result<Finished> {
        self.wait_until_up(network)?;
        let number = self.next_number();
        let file = |ending: &str| self.control.join(format!("{number}.{ending}"));
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text).asking(|| format!("writing {}", path.display()))
        };
        write(file("sh"), script)?;
        self.order(&number.to_string())?;
        let what = format!("the end of `{script}` in a guest");
        let status = file("status");
        interrupt::wait_until(limit, &what, || {
            self.must_run(network)?;
            Ok(status.is_file())
        })?;
        let read = |ending: &str| {
            std::fs::read(file(ending))
                .map(|octets| String::from_utf8_lossy(&octets).into_owned())
                .asking(|| format!("reading the {ending} of `{script}`"))
        };
        let code: i32 = read("status")?.trim().parse().unwrap_or(255);
        Ok(Finished {
            typed: script.to_owned(),
            status: ExitStatus::from_raw(code << 8),
            stdout: read("out")?,
            stderr: read("err")?,
        })
    }

    /// The first line of a file in the guest, which starts no program for it.
    ///
    /// # Errors
    /// The guest is gone, or does not answer within `limit`.
    pub fn first_line(&self, network: &Network, file: &str, limit: Duration) -> Result<String> {
        self.wait_until_up(network)?;
        let number = self.next_number();
        self.order(&format!("{number} {file}"))?;
        let answer = self.control.join(format!("{number}.line"));
        let mut line = String::new();
        interrupt::wait_until(limit, &format!("the first line of {file} in a guest"), || {
            self.must_run(network)?;
            line = std::fs::read_to_string(&answer).unwrap_or_default();
            Ok(line.ends_with('\n'))
        })?;
        Ok(line.trim_end().to_owned())
    }

    /// Waits until the guest takes commands.
    ///
    /// # Errors
    /// It does not boot, or lacks a module.
    pub fn wait_until_up(&self, network: &Network) -> Result<()> {
        let up = self.control.join("up");
        interrupt::wait_until(BOOT, "the guest's boot", || {
            self.must_run(network)?;
            Ok(up.is_file())
        })?;
        match std::fs::read_to_string(self.control.join("not-loaded")) {
            Ok(modules) => Err(Failure::Unexpected(format!("the guest did not load {}", modules.trim()))),
            Err(_) => Ok(()),
        }
    }

    fn next_number(&self) -> u32 {
        self.commands.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn order(&self, line: &str) -> Result<()> {
        let orders = self.control.join("orders");
        let mut pipe = std::fs::File::options()
            .write(true)
            .open(&orders)
            .asking(|| format!("opening {}", orders.display()))?;
        pipe.write_all(format!("{line}\n").as_bytes()).asking(|| "writing to the guest's console".to_owned())
    }

    fn must_run(&self, network: &Network) -> Result<()> {
        network.with_process(self.process, |process| process.must_run())?
    }
}
