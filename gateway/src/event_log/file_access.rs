//! Permissions of the log's files, and which files are opened: only regular files with one name, never through a link.

use crate::config::EventLogFile;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::libc::ELOOP;
use nix::unistd::{AccessFlags, Group, User, faccessat, geteuid};
use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::Path;

/// Mode, owner and group of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileAccess {
    mode: u32,
    owner: Option<u32>,
    group: Option<u32>,
}

/// Mode of directories that are made: those who may read the files may find them.
const DIRECTORY_MODE: u32 = 0o755;
/// The permissions in a file's mode.
const PERMISSIONS: u32 = 0o7777;

impl FileAccess {
    /// As configured.
    ///
    /// # Errors
    /// There is no such user or group.
    pub(super) fn of(config: &EventLogFile) -> io::Result<Self> {
        let missing = |key: &str, name: &str, make: &str| {
            let what = format!("log.file.{key}: there is no {key} {name}; create it: {make} --system {name}");
            io::Error::new(io::ErrorKind::NotFound, what)
        };
        let owner = config.owner.as_deref().map(|name| {
            let user = User::from_name(name)?.map(|user| user.uid.as_raw());
            user.ok_or_else(|| missing("owner", name, "useradd"))
        });
        let group = config.group.as_deref().map(|name| {
            let group = Group::from_name(name)?.map(|group| group.gid.as_raw());
            group.ok_or_else(|| missing("group", name, "groupadd"))
        });
        Ok(Self { mode: config.mode, owner: owner.transpose()?, group: group.transpose()? })
    }

    /// For this process alone.
    pub(super) const fn private() -> Self {
        Self { mode: 0o600, owner: None, group: None }
    }

    /// Opens a file that this process alone writes.
    ///
    /// # Errors
    /// The kernel's, or another process writes it.
    pub(super) fn open_alone(&self, path: &Path) -> io::Result<File> {
        let file = self.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let what = "another process writes it; end that, or set another path in the configuration";
                Err(io::Error::new(io::ErrorKind::AddrInUse, what))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Opens a file for reading and writing, and its directory, which are made if they are not there.
    ///
    /// # Errors
    /// The kernel's, or it is not a regular file with one name.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
        }
        let mut options = options();
        let file = options.create(true).truncate(false).mode(self.mode).open(path).map_err(explained)?;
        // Before anything is changed: it may belong to another user.
        let metadata = file.metadata()?;
        check(&metadata)?;
        self.give(&file, &metadata)?;
        Ok(file)
    }

    /// Sets the mode, owner and group where they are different.
    fn give(&self, file: &File, metadata: &Metadata) -> io::Result<()> {
        let needs = |error: io::Error, what: &str| io::Error::new(error.kind(), format!("{error}: {what}"));
        if metadata.mode() & PERMISSIONS != self.mode {
            file.set_permissions(Permissions::from_mode(self.mode)).map_err(|error| {
                needs(
                    error,
                    "changing the mode of another user's file needs CAP_FOWNER; add it, or remove the file",
                )
            })?;
        }
        // A file that another user has put there changes its owner.
        let owner = self.owner.unwrap_or_else(|| geteuid().as_raw());
        if metadata.uid() != owner || self.group.is_some_and(|group| metadata.gid() != group) {
            fchown(file, Some(owner), self.group).map_err(|error| {
                needs(error, "changing the owner or group needs CAP_CHOWN; add it, or leave log.file.owner and log.file.group away")
            })?;
        }
        Ok(())
    }
}

/// Whether a file could be opened, or made. Nothing is changed.
///
/// # Errors
/// The kernel's, or it is not a regular file with one name.
pub(super) fn probe(path: &Path) -> io::Result<()> {
    match options().open(path) {
        Ok(file) => check(&file.metadata()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_there = |path: &&Path| path.as_os_str().is_empty() || path.exists();
            let directory = path.ancestors().skip(1).find(is_there).unwrap_or(Path::new("/"));
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            let rights = AccessFlags::W_OK | AccessFlags::X_OK;
            faccessat(AT_FDCWD, directory, rights, AtFlags::AT_EACCESS).map_err(|error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
            })
        }
        Err(error) => Err(explained(error)),
    }
}

/// Neither a link that leads elsewhere, nor a pipe that is waited for.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    options
}

fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(ELOOP) => {
            let what = "a symbolic link, which is not followed; write the path that it leads to";
            io::Error::new(io::ErrorKind::InvalidInput, what)
        }
        Some(_) | None => error,
    }
}

fn check(metadata: &Metadata) -> io::Result<()> {
    let what = if !metadata.is_file() {
        "not a regular file; set another path in the configuration"
    } else if metadata.nlink() > 1 {
        "it has another name as well, by which others may write it; remove that (find -samefile), or set another path in the configuration"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Why a file cannot be opened, and what mends it.
pub(super) fn refused(key: &str, path: &Path, error: &io::Error) -> String {
    let mend = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; give the process write access to it, for example by LogsDirectory= in the unit"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; set another path in the configuration",
        _ => "",
    };
    format!("{key}: {}: {error}{mend}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        let probed = probe(path).unwrap_err().to_string();
        let opened = FileAccess::private().open(path).unwrap_err().to_string();
        assert_eq!(probed, opened);
        opened
    }

    #[test]
    fn only_a_regular_file_with_one_name_is_opened_and_others_are_left_as_they_are() {
        let directory = std::env::temp_dir().join(format!("sixway-access-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let path = directory.join("log").join("events.jsonl");
        probe(&path).unwrap();
        assert!(!directory.exists(), "a probe makes nothing");
        drop(FileAccess::private().open(&path).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & PERMISSIONS;
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let link = directory.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(refused(&link), "a symbolic link, which is not followed; write the path that it leads to");
        let dangling = directory.join("dangling");
        std::os::unix::fs::symlink(directory.join("nobody"), &dangling).unwrap();
        assert!(refused(&dangling).starts_with("a symbolic link"));
        assert!(!directory.join("nobody").exists());
        let second = directory.join("second");
        std::fs::hard_link(&path, &second).unwrap();
        assert!(refused(&second).starts_with("it has another name"));
        assert_eq!(mode(&path), 0o640, "the mode of what was refused is not changed");
        let pipe = directory.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(refused(&pipe), "not a regular file; set another path in the configuration");
        let beneath = path.join("file");
        assert!(probe(&beneath).is_err() && FileAccess::private().open(&beneath).is_err());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
