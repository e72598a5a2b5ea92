//! A lock on the folder above a BPF file system, so that gateways mount and unmount it one at a time.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another gateway may take to mount or unmount.
const PATIENCE: Duration = Duration::from_millis(500);

/// Waits until no other gateway mounts or unmounts anything there, for [`PATIENCE`] at most: any process can hold this lock, and that must not
/// keep a gateway from starting or ending. `None`: the lock was not available.
pub(crate) fn turn(path: &Path) -> Option<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = File::open(parent).ok()?;
    let asked = Instant::now();
    while parent.try_lock().is_err() {
        if asked.elapsed() > PATIENCE {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_the_parents_lock_keeps_nobody_waiting() {
        let path = std::env::temp_dir().join(format!("sixway-turn-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let held = turn(&path.join("bpf")).unwrap();
        let asked = Instant::now();
        assert!(turn(&path.join("bpf")).is_none() && asked.elapsed() < 4 * PATIENCE);
        drop(held);
        assert!(turn(&path.join("bpf")).is_some());
        std::fs::remove_dir(&path).unwrap();
    }
}
