//! The mappings of the PCP server and its Epoch Time, for its next start: after a reload, an upgrade, a sudden end or a restart of the host.

use sixway_control::pcp::{Kept, kept};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The directory of the file, which survives a restart of this host.
const DIRECTORY: &str = "/var/lib/sixway";
/// Octets that are read at most: far more than the mappings of the largest table.
const LONGEST: u64 = 512 * 1024 * 1024;

/// The file.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    /// Whether the last attempt to write it failed.
    failed: bool,
}

impl KeptFile {
    /// That of a gateway of this name.
    pub(super) fn of(gateway: &str) -> Self {
        Self::new(Path::new(DIRECTORY), gateway)
    }

    /// That of a gateway of this name, in this directory.
    pub(super) fn new(directory: &Path, gateway: &str) -> Self {
        Self { path: directory.join(format!("{gateway}.pcp")), failed: false }
    }

    /// The file with the DHCP leases of inside hosts, in the same directory.
    pub(super) fn leases(&self) -> PathBuf {
        self.path.with_extension("pcp-leases")
    }

    /// The state of the last server: its current Epoch Time, and mappings. `None`: none.
    pub(super) fn read(&self) -> Option<Kept> {
        let length = fs::metadata(&self.path).ok().filter(fs::Metadata::is_file)?.len();
        if length > LONGEST {
            return None;
        }
        kept::read(&fs::read_to_string(&self.path).ok()?, seconds())
    }

    /// Writes it. A failure costs mappings and the Epoch Time at the next start.
    pub(super) fn write(&mut self, kept: &Kept) {
        let written = self.replace(&kept::write(seconds(), kept));
        if let (Err(error), false) = (&written, self.failed) {
            let path = self.path.display();
            tracing::warn!(
                "{path}: {error}: mappings by PCP are lost at the next start; make the directory writable"
            );
        }
        self.failed = written.is_err();
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let fresh = self.path.with_extension("pcp.new");
        // An earlier process may have left it, with other permissions.
        let _ = fs::remove_file(&fresh);
        // A process that can read a nonce can change its mapping.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&fresh, &self.path)
    }
}

/// Seconds since 1970.
pub(super) fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn nobody_else_reads_the_nonces() {
        let directory = std::env::temp_dir().join(format!("sixway-pcp-mode-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("gateway.pcp");
        for left in [path.clone(), directory.join("gateway.pcp.new")] {
            fs::write(&left, "of an earlier process").unwrap();
            fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).unwrap();
        }
        KeptFile::new(&directory, "gateway").write(&Kept::default());
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let entries = fs::read_dir(&directory).unwrap().count();
        fs::remove_dir_all(directory).unwrap();
        assert_eq!((mode, entries), (0o600, 1));
    }

    #[test]
    fn the_epoch_goes_on_and_a_file_that_is_not_ours_keeps_nothing() {
        let directory = std::env::temp_dir().join(format!("sixway-pcp-{}", std::process::id()));
        let mut file = KeptFile::new(&directory, "gateway");
        assert!(file.read().is_none());
        file.write(&Kept { epoch: 77, ..Kept::default() });
        assert!((77..=79).contains(&file.read().unwrap().epoch));
        fs::write(directory.join("gateway.pcp"), "something else\n").unwrap();
        assert!(file.read().is_none());
        fs::remove_dir_all(directory).unwrap();
    }
}
