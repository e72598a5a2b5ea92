//! The lock of a state file, and the turn of those who take or give up theirs.

use super::contents::read;
use super::error::RecordError;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

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

/// Waits until no other gateway takes or gives up its state file in the directory, and keeps others from it: of two that end
/// at the same time, one is the last.
pub(super) fn turn(directory: &Path) -> Option<Flock<File>> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_millis(5);
    let path = directory.join("turn.lock");
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        match lock(&path, "") {
            Ok(file) => return Some(file),
            Err(RecordError::Taken { .. }) => std::thread::sleep(STEP),
            Err(RecordError::Io(..) | RecordError::Damaged(..) | RecordError::Elsewhere(_)) => return None,
        }
    }
    // One that is stuck must not keep others from ending.
    None
}
