//! The files of a log: the one that is written, and the full ones, which have a number: `events.jsonl.00000042`.

use super::index;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Digits of a number; more are written if it has them.
const DIGITS: usize = 8;

/// A full file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FullFile {
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

/// The full files of this log, oldest first.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn full_files(log: &Path) -> io::Result<Vec<FullFile>> {
    let directory = log.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = log.file_name().unwrap_or_default();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let number = number_of(&entry.file_name(), name);
        // What was removed in the meantime has no type.
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if let Some(number) = number.filter(|_| is_file()) {
            found.push(FullFile { number, path: directory.join(entry.file_name()) });
        }
    }
    found.sort();
    Ok(found)
}

fn number_of(file: &OsStr, log: &OsStr) -> Option<u64> {
    let rest = file.to_str()?.strip_prefix(log.to_str()?)?.strip_prefix('.')?;
    let digits = rest.len() >= DIGITS && rest.bytes().all(|octet| octet.is_ascii_digit());
    if digits { rest.parse().ok() } else { None }
}

/// The name of a full file.
pub(super) fn numbered(log: &Path, number: u64) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{number:0DIGITS$}"));
    name.into()
}

/// Gives a file another name, which no other file has.
///
/// # Errors
/// The kernel's; [`io::ErrorKind::AlreadyExists`]: another file has the name.
pub(super) fn rename_alone(from: &Path, to: &Path) -> io::Result<()> {
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            // The file system cannot do it in one step.
            if std::fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(from, to)
        }
        outcome => outcome.map_err(io::Error::from),
    }
}

/// The number of the next full file.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn next_number(log: &Path) -> io::Result<u64> {
    Ok(full_files(log)?.last().map_or(1, |last| last.number + 1))
}

/// Removes the oldest full files but for `keep`, with their indexes.
///
/// # Errors
/// The kernel's.
pub(super) fn prune(log: &Path, keep: u32) -> io::Result<()> {
    let files = full_files(log)?;
    let surplus = files.len().saturating_sub(keep as usize);
    for file in &files[..surplus] {
        match std::fs::remove_file(&file.path) {
            // Somebody else has removed it.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // It may have none.
        let _ = std::fs::remove_file(index::path_of(&file.path));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_other_files_stay() {
        let directory = std::env::temp_dir().join(format!("sixway-rotation-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let log = directory.join("events.jsonl");
        prune(&log, 2).unwrap();
        assert_eq!(next_number(&log).unwrap(), 1);
        for number in [7, 8, 9, 100_000_000] {
            std::fs::write(numbered(&log, number), "").unwrap();
            std::fs::write(index::path_of(&numbered(&log, number)), "").unwrap();
        }
        for other in [
            "events.jsonl",
            "events.jsonl.index",
            "events.jsonl.1",
            "other.jsonl.00000001",
            "events.jsonl.0000000x",
        ] {
            std::fs::write(directory.join(other), "").unwrap();
        }
        std::fs::create_dir(numbered(&log, 1)).unwrap();
        prune(&log, 2).unwrap();
        assert_eq!(next_number(&log).unwrap(), 100_000_001);
        let left: Vec<u64> = full_files(&log).unwrap().iter().map(|file| file.number).collect();
        assert_eq!(left, [9, 100_000_000]);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 4 + 6);
        let refused = rename_alone(&numbered(&log, 9), &numbered(&log, 100_000_000)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        rename_alone(&numbered(&log, 9), &numbered(&log, 10)).unwrap();
        assert_eq!(full_files(&log).unwrap().len(), 2);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
