//! The lock of a state file, and the lock that serialises start and end.

use super::contents::read;
use super::error::RecordError;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Opens and locks the file. If the previous holder removed it meanwhile, opens the new one.
pub(super) fn lock(path: &Path, name: &str) -> Result<Flock<File>, RecordError> {
    let failed = |error| RecordError::Io(path.into(), error);
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let file =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(file, error)| match error {
                nix::errno::Errno::EWOULDBLOCK => {
                    // Whoever writes it replaces it, so that a damaged one is not the holder's.
                    let process = read(&file).unwrap_or_default().process;
                    RecordError::Taken { name: name.into(), process: (process != 0).then_some(process) }
                }
                error => failed(error.into()),
            })?;
        let locked = file.metadata().map_err(failed)?.ino();
        if fs::metadata(path).is_ok_and(|named| named.ino() == locked) {
            return Ok(file);
        }
    }
}

/// The same; a holder that is ending, as after a SIGKILL, is waited for. It takes a while if it has much memory.
pub(super) fn lock_after_end(path: &Path, name: &str) -> Result<Flock<File>, RecordError> {
    const PATIENCE: Duration = Duration::from_secs(10);
    /// A signal has been sent, and the process does not know it yet.
    const UNKNOWING: Duration = Duration::from_millis(100);
    let start = Instant::now();
    loop {
        match lock(path, name) {
            Err(RecordError::Taken { process: Some(process), .. })
                if start.elapsed() < UNKNOWING || is_ending(process) && start.elapsed() < PATIENCE =>
            {
                sleep(Duration::from_millis(5));
            }
            ended => return ended,
        }
    }
}

/// Whether a process is gone or will never run again: proc_pid_stat(5), the state, and PF_EXITING among the flags.
pub(super) fn is_ending(process: u32) -> bool {
    const EXITING: u32 = 4;
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    // The command's name may contain anything.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_whitespace();
    let state = fields.next();
    let flags = fields.nth(5).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    matches!(state, Some("Z" | "X")) || flags & EXITING != 0
}

/// Waits until no other gateway takes or gives up its state file in the directory, and keeps others from it: of two that end
/// at the same time, one is the last.
pub(super) fn turn(directory: &Path) -> Option<Flock<File>> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_millis(5);
    let path = directory.join("turn.lock");
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        match lock(&path, "") {
            Ok(file) => return Some(file),
            Err(RecordError::Taken { .. }) => sleep(STEP),
            Err(RecordError::Io(..) | RecordError::Damaged(..) | RecordError::Elsewhere(_)) => return None,
        }
    }
    // One that is stuck must not keep others from ending.
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::record::contents::Contents;
    use std::process::Command;

    #[test]
    fn a_process_is_ending_from_its_last_signal_on() {
        assert!(!is_ending(std::process::id()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!is_ending(child.id()));
        child.kill().unwrap();
        let start = Instant::now();
        while !is_ending(child.id()) {
            assert!(start.elapsed() < Duration::from_secs(5));
        }
        child.wait().unwrap();
        assert!(is_ending(child.id()));
    }

    #[test]
    fn a_holder_that_ends_is_waited_for_and_one_that_runs_is_not() {
        let path = std::env::temp_dir().join(format!("sixway-lock-{}.state", std::process::id()));
        let say = |process: u32| {
            let contents = Contents { process, ..Contents::default() };
            fs::write(&path, serde_json::to_vec(&contents).unwrap()).unwrap();
        };
        say(std::process::id());
        let held = lock(&path, "gw").unwrap();
        let start = Instant::now();
        let refused = lock_after_end(&path, "gw").map(drop).unwrap_err();
        assert!(matches!(refused, RecordError::Taken { process: Some(_), .. }), "{refused}");
        assert!(start.elapsed() < Duration::from_secs(5));
        // A process that has ended cannot hold it; a process that inherited its descriptor closes it soon.
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        say(gone.id());
        let closing = std::thread::spawn(move || {
            sleep(Duration::from_millis(400));
            drop(held);
        });
        assert!(lock_after_end(&path, "gw").is_ok());
        closing.join().unwrap();
        fs::remove_file(path).unwrap();
    }
}
