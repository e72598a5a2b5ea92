//! The program `nft`: text in, text out, bounded in time and size.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than this a ruleset of some hundred thousand elements does not take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum octets of output that are read.
const ANSWER: u64 = 16 << 20;

/// Why nft did not do it.
#[derive(Debug)]
pub enum NftError {
    /// It is not installed.
    Missing,
    /// It did not run, or did not finish.
    Io(io::Error),
    /// It refused: its words.
    Refused(String),
}

impl fmt::Display for NftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("nft not found; install the package nftables"),
            Self::Io(error) => write!(f, "nft: {error}"),
            Self::Refused(what) => write!(f, "nft: {what}"),
        }
    }
}

impl std::error::Error for NftError {}

/// Has nft do what the text says: all of it or nothing.
pub(super) fn execute(text: &str) -> Result<(), NftError> {
    run(&["-f", "-"], text).map(drop)
}

/// All tables, chains and rules, as JSON.
pub(super) fn ruleset() -> Result<serde_json::Value, NftError> {
    let text = run(&["-j", "list", "ruleset"], "")?;
    serde_json::from_str(&text).map_err(|error| NftError::Io(error.into()))
}

/// A chain's rules with their handles, as text. The chain: family, table, name.
pub(super) fn chain(chain: &str) -> Result<String, NftError> {
    let arguments: Vec<&str> = ["-a", "list", "chain"].into_iter().chain(chain.split(' ')).collect();
    run(&arguments, "")
}

/// A table of the family inet, as text.
pub(super) fn table(name: &str) -> Result<String, NftError> {
    run(&["list", "table", "inet", name], "")
}

fn run(arguments: &[&str], input: &str) -> Result<String, NftError> {
    let mut command = Command::new("nft");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NftError::Missing,
        _ => NftError::Io(error),
    })?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        // What it writes is read while it reads, or both would wait for ever.
        let write = scope.spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes())));
        let said = scope.spawn(move || stdout.map(read).unwrap_or_default());
        let complained = scope.spawn(move || stderr.map(read).unwrap_or_default());
        let ended = wait(&mut child);
        let (said, complained) = (said.join().unwrap_or_default(), complained.join().unwrap_or_default());
        let written = write.join();
        if !ended.map_err(NftError::Io)? {
            let line = complained.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
            return Err(NftError::Refused(line.trim().to_owned()));
        }
        match written {
            Ok(Ok(())) => Ok(said),
            Ok(Err(error)) => Err(NftError::Io(error)),
            Err(_) => Err(NftError::Io(io::Error::other("the thread panicked"))),
        }
    })
}

fn read(from: impl io::Read) -> String {
    let mut octets = Vec::new();
    let mut from = from.take(ANSWER);
    let _ = from.read_to_end(&mut octets);
    // What is more is thrown away, so that it ends.
    let _ = io::copy(from.get_mut(), &mut io::sink());
    String::from_utf8_lossy(&octets).into_owned()
}

/// Waits until it exits; whether it succeeded.
fn wait(child: &mut Child) -> io::Result<bool> {
    const STEP: Duration = Duration::from_millis(2);
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not finish"));
        }
        std::thread::sleep(STEP);
    }
}
