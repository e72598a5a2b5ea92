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
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Octets that are read at a time. A line is shorter.
const PART: u64 = 1 << 20;
/// Parts that are read in one look, at most; the rest in the next ones.
const PARTS: usize = 64;
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

/// The leases in a file and those with older changes. What is added to the file is read once: every host of the LAN can make it long by renewals.
#[derive(Debug)]
pub(super) struct KeaLeases {
    path: PathBuf,
    /// The device and number of the file that was read, and how many octets of it.
    file: Option<((u64, u64), u64)>,
    leases: BTreeMap<Ipv4Addr, (String, u64)>,
}

impl KeaLeases {
    /// Those in this file, none of which has been read.
    pub(super) const fn of(path: PathBuf) -> Self {
        Self { path, file: None, leases: BTreeMap::new() }
    }

    /// Reads what is new. The leases as dnsmasq writes them; `None`: they cannot be read, or there is more to read.
    pub(super) fn look(&mut self) -> Option<String> {
        self.read().ok()?.then(|| self.as_dnsmasqs())
    }

    /// Whether everything is read.
    fn read(&mut self) -> io::Result<bool> {
        let mut newest = regular_file::open(&self.path)?;
        let found = newest.metadata()?;
        let is = (found.dev(), found.ino());
        let mut from = match self.file {
            Some((file, read)) if file == is && read <= found.len() => read,
            Some(_) | None => {
                self.leases.clear();
                self.file = None;
                if !self.read_older()? {
                    return Ok(false);
                }
                0
            }
        };
        let mut has_more = true;
        for _ in 0..PARTS {
            has_more = has_more && self.part(&mut newest, &mut from)?;
        }
        self.file = Some((is, from));
        Ok(!has_more)
    }

    /// Reads the files with older changes; not if the cleaner has made others of them meanwhile: a lease may have been in none of them.
    fn read_older(&mut self) -> io::Result<bool> {
        let before = self.older_files();
        for older in older(&self.path).collect::<Vec<_>>() {
            // Not all are there.
            if let Ok(mut file) = regular_file::open(&older) {
                let mut from = 0;
                while self.part(&mut file, &mut from)? {}
            }
        }
        Ok(self.older_files() == before)
    }

    fn older_files(&self) -> Vec<Option<u64>> {
        older(&self.path).map(|path| Some(fs::metadata(path).ok()?.ino())).collect()
    }

    /// Reads the next part of a file: complete lines. Whether there may be more.
    fn part(&mut self, file: &mut File, from: &mut u64) -> io::Result<bool> {
        file.seek(SeekFrom::Start(*from))?;
        let mut octets = Vec::new();
        file.take(PART).read_to_end(&mut octets)?;
        octets.truncate(octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1));
        *from += octets.len() as u64;
        for change in changes(&String::from_utf8_lossy(&octets)) {
            match change.holder {
                Some(holder) => drop(self.leases.insert(change.address, holder)),
                None => drop(self.leases.remove(&change.address)),
            }
            if self.leases.len() > MOST {
                self.leases.pop_last();
            }
        }
        Ok(!octets.is_empty())
    }

    fn as_dnsmasqs(&self) -> String {
        let mut written = String::new();
        for (address, (hardware, until)) in &self.leases {
            // Without an end, dnsmasq writes 0.
            let until = if *until == u64::MAX { 0 } else { *until };
            let _ = writeln!(written, "{until} {hardware} {address} * *");
        }
        written
    }
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

    fn line(last: u8, hardware: &str, lifetime: u32) -> String {
        format!("192.168.1.{last},{hardware},,{lifetime},1764243200,1,0,0,,0,\n")
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("sixway-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn the_files_of_kea_are_read_in_the_order_of_their_changes() {
        let folder = folder("kea-leases");
        let path = folder.join("leases.csv");
        let mut leases = KeaLeases::of(path.clone());
        assert_eq!(leases.look(), None);
        let add = |suffix: &str, text: &str| {
            fs::write(folder.join(format!("leases.csv{suffix}")), format!("{NAMES}{text}")).unwrap();
        };
        add(".2", &(line(77, "aa", 43_200) + &line(78, "aa", 43_200)));
        add(".1", &(line(77, "bb", 43_200) + &line(79, "cc", u32::MAX)));
        add("", &line(78, "aa", 0));
        let expected = "1764243200 bb 192.168.1.77 * *\n0 cc 192.168.1.79 * *\n";
        assert_eq!(leases.look().as_deref(), Some(expected));
        // What is added, of which the last line is not complete yet, and a file that begins again.
        let mut text = fs::read_to_string(&path).unwrap() + &line(79, "dd", 43_200);
        fs::write(&path, text.clone() + "192.168.1.77,,,4").unwrap();
        let expected = "1764243200 bb 192.168.1.77 * *\n1764243200 dd 192.168.1.79 * *\n";
        assert_eq!(leases.look().as_deref(), Some(expected));
        text += &line(77, "ee", 43_200);
        fs::write(&path, text).unwrap();
        let after = expected.replace("bb", "ee");
        assert_eq!(leases.look().as_deref(), Some(&*after));
        fs::rename(&path, folder.join("leases.csv.1")).unwrap();
        add("", "");
        assert_eq!(leases.look(), Some(after));
        fs::remove_dir_all(folder).unwrap();
    }

    /// A host that renews its lease many times a second must not hide that another one has an address.
    #[test]
    fn a_change_behind_many_renewals_is_noticed() {
        let folder = folder("kea-renewals");
        let path = folder.join("leases.csv");
        let renewals = line(78, "aa", 43_200).repeat(400_000);
        fs::write(&path, NAMES.to_owned() + &line(77, "aa", 43_200) + &renewals + &line(77, "bb", 43_200))
            .unwrap();
        let mut leases = KeaLeases::of(path);
        let expected = "1764243200 bb 192.168.1.77 * *\n1764243200 aa 192.168.1.78 * *\n";
        assert_eq!(leases.look().as_deref(), Some(expected));
        fs::remove_dir_all(folder).unwrap();
    }
}
