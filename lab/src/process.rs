//! Children: started with their output in files, waited for with a timeout, ended by their process ID.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A gateway may take 3.5 s to tell hosts that their router goes, and a busy machine more.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// A command line as one would type it.
pub fn typed(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Where commands can be run: a namespace, or a guest with a kernel of its own.
pub trait RunsCommands {
    /// Runs a command to its end, `limit` at most.
    fn run(&self, command: Command, limit: Duration) -> Result<Finished>;
}

/// Command lines of children that were started while a record is kept.
static RECORD: Mutex<Option<Vec<String>>> = Mutex::new(None);
/// The most lines of a record: a load of a thousand fetches has as many children.
const RECORDED: usize = 50;

/// Does some work, and returns the different command lines of children that were started meanwhile.
pub fn recorded<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let record = || RECORD.lock().unwrap_or_else(PoisonError::into_inner);
    *record() = Some(Vec::new());
    let done = work();
    let lines = record().take();
    (done, lines.unwrap_or_default())
}

fn record(typed: &str) {
    if let Some(lines) = RECORD.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        && lines.len() < RECORDED
        && !lines.iter().any(|line| line == typed)
    {
        lines.push(typed.to_owned());
    }
}

/// A running child. It is ended when this is dropped.
pub struct Process {
    child: Child,
    typed: String,
    log: PathBuf,
    ended: Option<ExitStatus>,
    before_its_end: Option<Box<dyn FnOnce() + Send>>,
}

/// What a child that has ended leaves.
#[derive(Debug)]
pub struct Finished {
    /// Its command line.
    pub typed: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Itself if it succeeded, else [`Failure::Program`] with the last lines of its output.
    pub fn succeeded(self) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<_> = said.trim().lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join("\n    ");
        Err(Failure::Program(self.typed, last))
    }
}

/// How long a program may be open for writing.
const BUSY: Duration = Duration::from_secs(5);

/// Starts a program when it is not open for writing any more: a child that another thread is about to start has a copy of the descriptor of a
/// program that was just written, until it executes its own.
fn spawned(command: &mut Command) -> std::io::Result<Child> {
    let until = Instant::now() + BUSY;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == std::io::ErrorKind::ExecutableFileBusy && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            outcome => return outcome,
        }
    }
}

impl Process {
    /// Starts the command from this thread, and so in this thread's network namespace; both outputs go to files next to `log`.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let typed = typed(&command);
        let create = |path: &Path| File::create(path).asking(|| format!("creating {}", path.display()));
        command.stdin(Stdio::null()).stdout(create(log)?).stderr(create(&stderr_of(log))?);
        let child = spawned(&mut command).asking(|| format!("starting `{typed}`"))?;
        record(&typed);
        Ok(Self { child, typed, log: log.to_owned(), ended: None, before_its_end: None })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard output until here.
    pub fn stdout(&self) -> String {
        read(&self.log)
    }

    /// What it wrote to standard error until here.
    pub fn stderr(&self) -> String {
        read(&stderr_of(&self.log))
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> Result<bool> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().asking(|| format!("waiting for `{}`", self.typed))?;
        }
        Ok(self.ended.is_none())
    }

    /// [`Failure::Program`] if it does not run any more.
    pub fn must_run(&mut self) -> Result<()> {
        if self.runs()? {
            return Ok(());
        }
        let said = [self.stderr(), self.stdout()].join("\n");
        Err(Failure::Program(self.typed.clone(), format!("it exited unexpectedly\n    {}", said.trim())))
    }

    /// Waits for its end, `limit` at most, or ends it.
    pub fn finish(mut self, limit: Duration) -> Result<Finished> {
        let what = format!("the end of `{}`", self.typed);
        interrupt::wait_until(limit, &what, || Ok(!self.runs()?))?;
        let Some(status) = self.ended else { return Err(Failure::TimedOut(what)) };
        Ok(Finished { typed: self.typed.clone(), status, stdout: self.stdout(), stderr: self.stderr() })
    }

    /// Registers a closure that runs before the lab ends or kills the process.
    pub fn before_its_end(&mut self, look: impl FnOnce() + Send + 'static) {
        self.before_its_end = Some(Box::new(look));
    }

    fn look(&mut self) {
        if let Some(look) = self.before_its_end.take()
            && self.runs().unwrap_or(false)
        {
            look();
        }
    }

    /// Sends SIGTERM and waits for [`GRACE_PERIOD`] at most before it sends SIGKILL. Returns the exit status if SIGTERM was enough.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        self.look();
        self.signal(Signal::SIGTERM);
        let start = Instant::now();
        while start.elapsed() < GRACE_PERIOD {
            if !self.runs().unwrap_or(false) {
                return self.ended;
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        self.kill();
        None
    }

    /// Kills it (SIGKILL), as a crash would.
    pub fn kill(&mut self) {
        self.look();
        if self.runs().unwrap_or(false) {
            self.child.kill().ok();
            self.ended = self.child.wait().ok();
        }
    }

    /// Sends it a signal, if it runs.
    pub fn signal(&mut self, signal: Signal) {
        if self.runs().unwrap_or(false) {
            kill(Pid::from_raw(self.child.id().cast_signed()), signal).ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn stderr_of(log: &Path) -> PathBuf {
    log.with_extension("err")
}

fn read(path: &Path) -> String {
    std::fs::read(path).map(|octets| String::from_utf8_lossy(&octets).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_still_open_for_writing_is_started_later() {
        let folder = std::env::temp_dir().join(format!("sixway-lab-busy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("true");
        std::fs::copy("/bin/true", &program).unwrap();
        let writer = File::options().write(true).open(&program).unwrap();
        let busy = Command::new(&program).spawn().map_err(|error| error.kind());
        assert_eq!(busy.err(), Some(std::io::ErrorKind::ExecutableFileBusy));
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(writer);
        });
        let status = spawned(&mut Command::new(&program)).and_then(|mut child| child.wait());
        closing.join().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(status.unwrap().success());
    }

    #[test]
    fn a_record_has_each_line_once_and_fifty_at_most() {
        let log = std::env::temp_dir().join(format!("sixway-record-{}.out", std::process::id()));
        let (_, lines) = recorded(|| {
            let mut own = Command::new("true");
            own.arg("recorded");
            Process::start(own, &log).unwrap().finish(Duration::from_secs(5)).unwrap();
            for number in 0..60 {
                record(&format!("x {number}"));
                record(&format!("x {number}"));
            }
        });
        for file in [log.clone(), stderr_of(&log)] {
            std::fs::remove_file(file).unwrap();
        }
        assert!(lines.iter().any(|line| line == "true recorded"), "{lines:?}");
        let different: std::collections::BTreeSet<_> = lines.iter().collect();
        assert_eq!((lines.len(), different.len()), (50, 50));
        record("late");
        assert!(!recorded(|| ()).1.iter().any(|line| line == "late"));
    }
}
