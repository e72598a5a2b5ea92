//! The stored state of a Teredo client for its next start: its port and its address. With both, it has the same address behind the same
//! mapping.

use sixway_wire::teredo::TeredoAddress;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::Ipv6Addr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The stored state.
pub(super) struct Kept {
    path: PathBuf,
    /// The port; 0: none.
    pub(super) port: u16,
    /// The address.
    pub(super) address: Option<TeredoAddress>,
    /// Whether it was in use to the end: the next process keeps it on the device.
    pub(super) in_use: bool,
}

impl Kept {
    /// The stored state of a gateway of this name; empty if there is no such file.
    pub(super) fn load(gateway: &str) -> Self {
        let path = directory().join(format!("{gateway}.teredo"));
        let (port, address, in_use) =
            fs::read_to_string(&path).map_or((0, None, false), |text| parsed(&text));
        Self { path, port, address, in_use }
    }

    /// The address, if it was in use to the end.
    pub(super) fn used(&self) -> Option<TeredoAddress> {
        self.address.filter(|_| self.in_use)
    }

    /// Removes the file of a test.
    #[cfg(test)]
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Writes it. After a failure, the next start has another address.
    pub(super) fn save(&self) {
        let address = self.address.map_or_else(|| "-".to_owned(), |own| own.address().to_string());
        let used = if self.in_use { "used" } else { "unused" };
        let written = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let fresh = self.path.with_extension("teredo.new");
        let text = format!("{} {address} {used}\n", self.port);
        let written = written.and_then(|()| write(&fresh, &text));
        let written = written.and_then(|()| fs::rename(&fresh, &self.path));
        if let Err(error) = written {
            tracing::warn!("{}: {error}: the Teredo address changes at the next start", self.path.display());
        }
    }
}

/// Only root may read it: the address contains the port on which its packets are received.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // A file left by a killed process has the mode with which it was created.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// A directory that survives a restart of this host. Tests run without privileges.
fn directory() -> PathBuf {
    if cfg!(test) { std::env::temp_dir() } else { PathBuf::from("/var/lib/sixway") }
}

fn parsed(text: &str) -> (u16, Option<TeredoAddress>, bool) {
    let mut words = text.split_whitespace();
    let port = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let address = words.next().and_then(|word| word.parse::<Ipv6Addr>().ok());
    (port, address.and_then(TeredoAddress::of), words.next() == Some("used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_ours_keeps_nothing() {
        assert_eq!(parsed("40001 2001:0:c633:6401::1\n").0, 40_001);
        assert!(parsed("40001 2001:0:c633:6401::1\n").1.is_some());
        assert_eq!(parsed("40001 2001:db8::1"), (40_001, None, false));
        assert_eq!(parsed(""), (0, None, false));
        assert_eq!(parsed("70000 -"), (0, None, false));
    }

    #[test]
    fn only_root_reads_what_is_kept() {
        let kept = Kept::load("mode-of-kept");
        let fresh = kept.path.with_extension("teredo.new");
        fs::write(&fresh, "half").unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o644)).unwrap();
        kept.save();
        let mode = fs::metadata(&kept.path).unwrap().permissions().mode();
        kept.remove();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_address_that_was_given_up_is_kept_but_not_used() {
        let kept = |text: &str| {
            let (port, address, in_use) = parsed(text);
            Kept { path: PathBuf::new(), port, address, in_use }
        };
        assert!(kept("40001 2001:0:c633:6401::1 used\n").used().is_some());
        for text in ["40001 2001:0:c633:6401::1 unused\n", "40001 2001:0:c633:6401::1\n"] {
            assert!(kept(text).used().is_none() && kept(text).address.is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let directory = std::env::temp_dir().join(format!("sixway-kept-{}", std::process::id()));
        let path = directory.join("gateway.teredo");
        let address = TeredoAddress::of("2001:0:c633:6401::1".parse().unwrap());
        for in_use in [true, false] {
            Kept { path: path.clone(), port: 40_001, address, in_use }.save();
            assert_eq!(parsed(&fs::read_to_string(&path).unwrap()), (40_001, address, in_use));
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
