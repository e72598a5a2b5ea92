//! Who may read the log's files.

use crate::config::EventLogFile;
use nix::unistd::{Group, User};
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
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
                let what = "another process writes it; end that, or write another path";
                Err(io::Error::new(io::ErrorKind::AddrInUse, what))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Opens a file for reading and writing, and its directory, which are made if they are not there.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(self.mode).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file; write another path",
            ));
        }
        file.set_permissions(Permissions::from_mode(self.mode))?;
        if self.owner.is_some() || self.group.is_some() {
            fchown(&file, self.owner, self.group).map_err(|error| {
                let what = "changing the owner or group needs CAP_CHOWN; add it, or leave log.file.owner and log.file.group away";
                io::Error::new(error.kind(), format!("{error}: {what}"))
            })?;
        }
        Ok(file)
    }
}
