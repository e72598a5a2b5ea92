//! Kea's leases in dnsmasq's format, which the PCP server reads: its thread does not have the privileges to read Kea's own
//! files.
//!
//! Kea's file has a line for each change, the newest at the end. Its lease file cleanup (LFC) moves old lines to other files.
//!
//! ```text
//!     address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context
//!     192.168.1.77,52:54:00:12:34:56,01:52:54:00:12:34:56,43200,1764243200,1,0,0,printer,0,
//! ```

use crate::regular_file;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Octets of a file that are read at most.
const LONGEST: u64 = 16 << 20;
/// Leases that are followed at most: those of the lowest addresses.
const MOST: usize = 65_536;
/// Suffixes of the files that have older changes, the oldest first; not all of them exist.
const OLDER: [&str; 3] = [".completed", ".2", ".1"];
/// `expire` of a lease without an end: a lifetime of all ones.
const INFINITE: &str = "4294967295";

/// A change of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    address: Ipv4Addr,
    /// The hardware address that has it from then on, and the end of the lease in seconds since 1970; `None`: no host.
    holder: Option<(String, u64)>,
}

/// The leases in this file and those with older changes, as dnsmasq writes them; `None`: it cannot be read.
pub(super) fn as_dnsmasqs(path: &Path) -> Option<String> {
    let newest = text(path)?;
    let older = older(path).filter_map(|path| text(&path));
    let mut leases = BTreeMap::new();
    for text in older.chain([newest]) {
        for change in changes(&text) {
            match change.holder {
                Some(holder) => drop(leases.insert(change.address, holder)),
                None => drop(leases.remove(&change.address)),
            }
            if leases.len() > MOST {
                leases.pop_last();
            }
        }
    }
    let mut written = String::new();
    for (address, (hardware, until)) in leases {
        // Without an end, dnsmasq writes 0.
        let until = if until == u64::MAX { 0 } else { until };
        let _ = writeln!(written, "{until} {hardware} {address} * *");
    }
    Some(written)
}

fn text(path: &Path) -> Option<String> {
    let mut octets = Vec::new();
    regular_file::open(path).ok()?.take(LONGEST).read_to_end(&mut octets).ok()?;
    Some(String::from_utf8_lossy(&octets).into_owned())
}

/// The files with older changes than this one, the oldest first.
fn older(path: &Path) -> impl Iterator<Item = PathBuf> {
    OLDER.into_iter().map(move |suffix| {
        let mut name = OsString::from(path);
        name.push(suffix);
        name.into()
    })
}

/// The changes in a text, in order. An incomplete last line is omitted.
fn changes(text: &str) -> impl Iterator<Item = Change> {
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
    use std::fs;

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
    }

    #[test]
    fn the_files_of_kea_are_read_in_the_order_of_their_changes() {
        let folder = std::env::temp_dir().join(format!("sixway-kea-leases-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("leases.csv");
        assert_eq!(as_dnsmasqs(&path), None);
        let line = |last: u8, hardware: &str, lifetime: u32| {
            format!("192.168.1.{last},{hardware},,{lifetime},1764243200,1,0,0,,0,\n")
        };
        let add = |suffix: &str, text: &str| {
            fs::write(folder.join(format!("leases.csv{suffix}")), format!("{NAMES}{text}")).unwrap();
        };
        add(".2", &(line(77, "aa", 43_200) + &line(78, "aa", 43_200)));
        add(".1", &(line(77, "bb", 43_200) + &line(79, "cc", u32::MAX)));
        add("", &line(78, "aa", 0));
        let expected = "1764243200 bb 192.168.1.77 * *\n0 cc 192.168.1.79 * *\n";
        assert_eq!(as_dnsmasqs(&path).as_deref(), Some(expected));
        fs::remove_dir_all(folder).unwrap();
    }
}
