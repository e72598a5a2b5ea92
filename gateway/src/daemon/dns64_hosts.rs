//! The hosts file of a DNS64: it is read at the start, and again when it changes.

use crate::regular_file;
use sixway_control::dns64::Hosts;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A longer file is not read: 100,000 lines take a fraction of that.
const LONGEST: u64 = 64 << 20;

/// What tells a changed file.
type Trace = Option<(u64, u64, u64, i64, i64)>;

/// The file.
#[derive(Debug)]
pub(super) struct HostsFile {
    path: PathBuf,
    trace: Trace,
    hosts: Arc<Hosts>,
}

impl HostsFile {
    /// Reads it. A file that cannot be read has no records, and the log says so.
    pub(super) fn open(path: &Path) -> Self {
        // Before it is read: if it changes meanwhile, it is read again.
        let mut file = Self { path: path.to_owned(), trace: trace(path), hosts: Arc::default() };
        match read(path) {
            Ok(hosts) => file.hosts = Arc::new(hosts),
            Err(error) => tracing::error!("DNS64: {}: {error}", path.display()),
        }
        file
    }

    /// What is in it.
    pub(super) fn hosts(&self) -> Arc<Hosts> {
        Arc::clone(&self.hosts)
    }

    /// Reads it again if it has changed; returns the records if they changed. If it cannot be read, the previous ones stay.
    pub(super) fn look_again(&mut self) -> Option<Arc<Hosts>> {
        let now = trace(&self.path);
        if now == self.trace {
            return None;
        }
        self.trace = now;
        match read(&self.path) {
            Ok(hosts) if hosts == *self.hosts => None,
            Ok(hosts) => {
                tracing::info!("DNS64: {} was read again", self.path.display());
                self.hosts = Arc::new(hosts);
                Some(self.hosts())
            }
            Err(error) => {
                tracing::error!("DNS64: {}: {error}; its records stay as they were", self.path.display());
                None
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Hosts> {
    let mut octets = Vec::new();
    regular_file::open(path)?.take(LONGEST + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > LONGEST {
        return Err(io::Error::other("larger than 64 MiB"));
    }
    let (hosts, faults) = Hosts::read(&String::from_utf8_lossy(&octets));
    for fault in faults {
        tracing::warn!("DNS64: {}:{} {}: it is left out", path.display(), fault.line, fault.what);
    }
    Ok(hosts)
}

fn trace(path: &Path) -> Trace {
    let there = fs::metadata(path).ok()?;
    Some((there.dev(), there.ino(), there.len(), there.mtime(), there.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_read_again_and_one_that_is_gone_leaves_its_records() {
        let path = std::env::temp_dir().join(format!("sixway-hosts-{}", std::process::id()));
        fs::write(&path, "192.0.2.7 printer.home.example\n").unwrap();
        let mut file = HostsFile::open(&path);
        let first = file.hosts();
        assert_ne!(*first, Hosts::default());
        assert_eq!(file.look_again(), None);
        fs::write(&path, "192.0.2.8 printer.home.example\n# longer\n").unwrap();
        let second = file.look_again().unwrap();
        assert_ne!(second, first);
        fs::remove_file(&path).unwrap();
        assert_eq!(file.look_again(), None);
        assert_eq!(file.hosts(), second);
        assert_eq!(*HostsFile::open(&path).hosts(), Hosts::default());
        assert_eq!(*HostsFile::open(Path::new("/dev/null")).hosts(), Hosts::default());
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read(&path).is_err(), "and nobody waits for a writer");
        fs::remove_file(&path).unwrap();
    }
}
