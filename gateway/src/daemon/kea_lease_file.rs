//! The file of leases of Kea's DHCPv4 server (memfile): a line for each change, the newest at the end. Kea's own cleaner moves what is old to
//! other files from time to time.
//!
//! ```text
//!     address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context
//!     192.168.1.77,52:54:00:12:34:56,01:52:54:00:12:34:56,43200,1764243200,1,0,0,printer,0,
//! ```

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// How the file begins.
const HEADER: &str = "address,hwaddr,client_id,valid_lifetime,expire,";
/// What the names of the files end with that have older changes, the oldest first; not all are there.
const OLDER: [&str; 3] = [".completed", ".2", ".1"];
/// `expire` of a lease without an end: a lifetime of all ones.
const INFINITE: &str = "4294967295";

/// A change of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The address.
    pub address: Ipv4Addr,
    /// Who has it from now on, and until when in seconds since 1970; `None`: nobody.
    pub holder: Option<(String, u64)>,
}

/// Whether a text is of this kind.
pub(super) fn is_keas(text: &str) -> bool {
    text.starts_with(HEADER)
}

/// The files with older changes than this one, the oldest first.
pub(super) fn older(path: &Path) -> impl Iterator<Item = PathBuf> {
    OLDER.into_iter().map(move |suffix| {
        let mut name = OsString::from(path);
        name.push(suffix);
        name.into()
    })
}

/// The changes in a text, in order. A last line that is not complete is left out.
pub(super) fn changes(text: &str) -> impl Iterator<Item = Change> {
    text.split_inclusive('\n').filter_map(change)
}

fn change(line: &str) -> Option<Change> {
    let columns: Vec<&str> = line.strip_suffix('\n')?.split(',').collect();
    let [address, hardware, _, lifetime, expire, _, _, _, _, state, ..] = columns[..] else { return None };
    let address = address.parse().ok()?;
    // State 0: assigned. A lifetime of 0 is how Kea writes that a lease was removed.
    let is_held = state == "0" && lifetime != "0";
    let until = if lifetime == INFINITE { u64::MAX } else { expire.parse().ok()? };
    Some(Change { address, holder: is_held.then(|| (hardware.to_ascii_lowercase(), until)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context\n";

    fn one(line: &str) -> Option<Change> {
        changes(line).next()
    }

    #[test]
    fn leases_that_are_held_declined_removed_and_endless_are_read() {
        let address = Ipv4Addr::new(192, 168, 1, 77);
        let held = |until| Some(Change { address, holder: Some(("52:54:00:12:34:5a".into(), until)) });
        let nobody = Some(Change { address, holder: None });
        for (line, expected) in [
            ("192.168.1.77,52:54:00:12:34:5A,01:02,43200,1764243200,1,0,0,printer,0,\n", held(1_764_243_200)),
            ("192.168.1.77,52:54:00:12:34:5a,,4294967295,1764243200,1,0,0,,0,,0\n", held(u64::MAX)),
            ("192.168.1.77,,,43200,1764243200,1,0,0,,1,\n", nobody.clone()),
            ("192.168.1.77,52:54:00:12:34:5a,,0,1764200000,1,0,0,,0,\n", nobody),
            ("192.168.1.77,52:54:00:12:34:5a,,43200,1764243200,1,0,0,,0,", None),
            ("192.168.1.77,52:54:00:12:34:5a,,43200\n", None),
            (NAMES, None),
            ("\n", None),
        ] {
            assert_eq!(one(line), expected, "{line}");
        }
        assert!(is_keas(NAMES) && !is_keas("1764203600 52:54:00:12:34:56 192.168.1.77 printer *\n"));
    }

    #[test]
    fn older_files_come_first() {
        let names: Vec<PathBuf> = older(Path::new("/var/lib/kea/x.csv")).collect();
        let expected = ["/var/lib/kea/x.csv.completed", "/var/lib/kea/x.csv.2", "/var/lib/kea/x.csv.1"];
        assert_eq!(names, expected.map(PathBuf::from));
    }
}
