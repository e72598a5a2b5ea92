//! Runs programs: text in, text out, bounded in time and size.

use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum octets of output that are read.
const ANSWER: u64 = 16 << 20;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status was 0.
    pub succeeded: bool,
    /// What it printed.
    pub said: String,
    /// What it printed on standard error.
    pub complained: String,
}

impl Ended {
    /// Why it failed, in its own words.
    pub fn reason(&self) -> &str {
        self.complained.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").trim()
    }
}

/// Runs a program to its end, with this input.
///
/// # Errors
/// `NotFound`: it is not installed. Else it did not run, or did not end in time and was killed.
pub fn run(command: &mut Command, input: &[u8], patience: Duration) -> io::Result<Ended> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        // What it writes is read while it reads, or both would wait for ever.
        let write = scope.spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input)));
        let said = scope.spawn(move || stdout.map(read).unwrap_or_default());
        let complained = scope.spawn(move || stderr.map(read).unwrap_or_default());
        let succeeded = wait(&mut child, patience);
        let (said, complained) = (said.join().unwrap_or_default(), complained.join().unwrap_or_default());
        let written = write.join();
        let ended = Ended { succeeded: succeeded?, said, complained };
        match written {
            // One that fails need not have read all.
            Ok(Err(error)) if ended.succeeded => Err(error),
            Ok(_) => Ok(ended),
            Err(_) => Err(io::Error::other("the thread panicked")),
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
fn wait(child: &mut Child, patience: Duration) -> io::Result<bool> {
    const STEP: Duration = Duration::from_millis(2);
    let until = Instant::now() + patience;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8]) -> io::Result<Ended> {
        run(Command::new("sh").args(["-c", script]), input, Duration::from_millis(500))
    }

    #[test]
    fn more_than_a_pipe_holds_passes_both_ways() {
        let input = vec![b'x'; 1 << 20];
        let ended = run(&mut Command::new("cat"), &input, Duration::from_secs(10)).unwrap();
        assert!(ended.succeeded && ended.said.len() == input.len());
    }

    #[test]
    fn a_failure_has_the_programs_own_words_and_who_does_not_end_is_killed() {
        let ended = shell("echo; echo 'no such table' >&2; exit 1", b"not read").unwrap();
        assert_eq!((ended.succeeded, ended.reason()), (false, "no such table"));
        assert_eq!(shell("exec sleep 20", b"").unwrap_err().kind(), io::ErrorKind::TimedOut);
        let absent = run(&mut Command::new("no-such-program"), b"", Duration::from_secs(1));
        assert_eq!(absent.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
