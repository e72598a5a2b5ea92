//! DHCP leases of inside hosts, in the file of dnsmasq: whoever loses an address loses its mappings (RFC 6887 §15). The next host that
//! has the address must not get what strangers send to the last one.
//!
//! ```text
//!     1764200000 52:54:00:12:34:56 192.168.1.77 printer 01:52:54:00:12:34:56        end, hardware address, address, name, client identifier
//! ```
//!
//! dnsmasq writes the file in place, so that a lease may be missing for a moment: it counts as ended at the second look without it.
//! What is known is kept, for leases that end or move while the gateway does not run.

use crate::regular_file;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Octets of the file that are read at most.
const LONGEST: u64 = 16 << 20;
/// Leases that are followed at most: those of the lowest addresses.
const MOST: usize = 65_536;
/// Looks at which a lease is missing before it has ended.
const ABSENCES: u8 = 2;

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    hardware: String,
    /// Its end in seconds since 1970; the largest number if it has none.
    until: u64,
}

/// A lease that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    row: Row,
    /// How often it was missing since it was last seen; `None`: it was not seen by this process, and the file may be a new one.
    missing: Option<u8>,
}

/// The leases, as far as they are known.
#[derive(Debug)]
pub(super) struct InsideLeases {
    path: PathBuf,
    kept: PathBuf,
    known: BTreeMap<Ipv4Addr, Known>,
}

impl InsideLeases {
    /// Those in this file of dnsmasq, and what was known at the last look, which is kept in another file.
    pub(super) fn new(path: PathBuf, kept: PathBuf) -> Self {
        let rows = read(&kept).unwrap_or_default();
        let known = rows.into_iter().map(|(address, row)| (address, Known { row, missing: None })).collect();
        Self { path, kept, known }
    }

    /// Looks at the file, at this time in seconds since 1970. Whose lease has ended, or is another host's.
    pub(super) fn look(&mut self, now: u64) -> Vec<Ipv4Addr> {
        let told = read(&self.path);
        let before = self.rows();
        let ended = self.compare(told, now);
        if self.rows() != before {
            // Without it, leases that move until the next start are not noticed.
            if let Err(error) = write(&self.kept, &self.rows()) {
                tracing::debug!("pcp: {}: {error}", self.kept.display());
            }
        }
        ended
    }

    fn rows(&self) -> BTreeMap<Ipv4Addr, Row> {
        self.known.iter().map(|(address, known)| (*address, known.row.clone())).collect()
    }

    /// `None`: there is no file.
    fn compare(&mut self, told: Option<BTreeMap<Ipv4Addr, Row>>, now: u64) -> Vec<Ipv4Addr> {
        let is_told = told.is_some();
        let mut told = told.unwrap_or_default();
        told.retain(|_, row| row.until > now);
        let mut ended = Vec::new();
        self.known.retain(|address, known| match told.get(address) {
            Some(row) if row.hardware == known.row.hardware => true,
            Some(_) => {
                ended.push(*address);
                false
            }
            None => {
                known.missing =
                    known.missing.map(|times| if is_told { times.saturating_add(1) } else { times });
                let stays = known.row.until > now && known.missing.is_none_or(|times| times < ABSENCES);
                if !stays {
                    ended.push(*address);
                }
                stays
            }
        });
        let seen = told.into_iter().map(|(address, row)| (address, Known { row, missing: Some(0) }));
        self.known.extend(seen);
        ended
    }
}

/// `None`: it cannot be read.
fn read(path: &Path) -> Option<BTreeMap<Ipv4Addr, Row>> {
    let mut octets = Vec::new();
    regular_file::open(path).ok()?.take(LONGEST).read_to_end(&mut octets).ok()?;
    Some(rows(&String::from_utf8_lossy(&octets)))
}

/// Lines that are complete. Those of IPv6 leases and of the server's identifier have another form.
fn rows(text: &str) -> BTreeMap<Ipv4Addr, Row> {
    let row = |line: &str| {
        let mut words = line.strip_suffix('\n')?.split_whitespace();
        let until = match words.next()?.parse().ok()? {
            0 => u64::MAX,
            until => until,
        };
        let hardware = words.next()?.to_ascii_lowercase();
        Some((words.next()?.parse().ok()?, Row { hardware, until }))
    };
    let mut rows: BTreeMap<Ipv4Addr, Row> = text.split_inclusive('\n').filter_map(row).collect();
    while rows.len() > MOST {
        rows.pop_last();
    }
    rows
}

fn write(path: &Path, rows: &BTreeMap<Ipv4Addr, Row>) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let fresh = path.with_extension("pcp-leases.new");
    // An earlier process may have left it, with other permissions.
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let line = |(address, row): (&Ipv4Addr, &Row)| format!("{} {} {address}\n", row.until, row.hardware);
    file.write_all(rows.iter().map(line).collect::<String>().as_bytes())?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_764_200_000;
    const HOST: &str = "1764203600 52:54:00:12:34:56 192.168.1.77 printer 01:52:54:00:12:34:56\n";
    const OTHER: &str = "1764203600 52:54:00:12:34:99 192.168.1.77 * *\n";
    const NOBODY: [Ipv4Addr; 0] = [];
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 77);

    fn none() -> InsideLeases {
        InsideLeases { path: PathBuf::new(), kept: PathBuf::new(), known: BTreeMap::new() }
    }

    #[test]
    fn the_file_of_dnsmasq_is_read_with_what_else_is_in_it() {
        let text =
            "duid 00:01:00:01:30\n1764203600 12345 2001:db8::5 * 00:01\n0 06-aa:bb 192.168.1.78 * *\nx\n";
        let all = rows(&(HOST.to_owned() + text + "1764203600 52:54:00:00:00:01 192.168.1.7"));
        assert_eq!(
            all.keys().collect::<Vec<_>>(),
            [&ADDRESS, &Ipv4Addr::new(192, 168, 1, 78)],
            "the last line is not complete"
        );
        assert_eq!(
            all[&Ipv4Addr::new(192, 168, 1, 78)],
            Row { hardware: "06-aa:bb".into(), until: u64::MAX }
        );
    }

    #[test]
    fn an_address_that_another_host_has_is_told_immediately() {
        let mut leases = none();
        assert_eq!(leases.compare(Some(rows(HOST)), NOW), NOBODY);
        assert_eq!(leases.compare(Some(rows(HOST)), NOW + 1), NOBODY);
        assert_eq!(leases.compare(Some(rows(OTHER)), NOW + 2), [ADDRESS]);
        assert_eq!(leases.compare(Some(rows(OTHER)), NOW + 3), NOBODY);
    }

    #[test]
    fn a_lease_that_is_released_or_over_has_ended() {
        let mut leases = none();
        leases.compare(Some(rows(HOST)), NOW);
        assert_eq!(leases.compare(Some(rows("")), NOW + 1), NOBODY, "dnsmasq is writing it");
        assert_eq!(leases.compare(Some(rows(HOST)), NOW + 2), NOBODY);
        assert_eq!(leases.compare(Some(rows("")), NOW + 3), NOBODY);
        assert_eq!(leases.compare(Some(rows("")), NOW + 4), [ADDRESS]);
        assert_eq!(leases.compare(Some(rows("")), NOW + 5), NOBODY);
        leases.compare(Some(rows(HOST)), NOW + 6);
        assert_eq!(leases.compare(Some(rows(HOST)), NOW + 3_600), [ADDRESS]);
    }

    #[test]
    fn without_a_file_a_lease_lasts_until_its_end() {
        let mut leases = none();
        leases.compare(Some(rows(HOST)), NOW);
        for second in 1..10 {
            assert_eq!(leases.compare(None, NOW + second), NOBODY);
        }
        assert_eq!(leases.compare(None, NOW + 3_600), [ADDRESS]);
    }

    #[test]
    fn a_lease_that_moved_while_nobody_looked_is_noticed_at_the_start() {
        let folder = std::env::temp_dir().join(format!("sixway-pcp-leases-{}", std::process::id()));
        let (path, kept) = (folder.join("site.leases"), folder.join("kept/site.pcp-leases"));
        fs::create_dir_all(&folder).unwrap();
        let again = || InsideLeases::new(path.clone(), kept.clone());
        assert_eq!(again().look(NOW), NOBODY);
        fs::write(&path, HOST).unwrap();
        assert_eq!(again().look(NOW), NOBODY);
        // A new file of dnsmasq, after the host's restart, does not have the lease yet.
        fs::write(&path, "").unwrap();
        let mut leases = again();
        for second in 1..5 {
            assert_eq!(leases.look(NOW + second), NOBODY);
        }
        fs::write(&path, OTHER).unwrap();
        assert_eq!(again().look(NOW + 6), [ADDRESS]);
        assert_eq!(again().look(NOW + 7), NOBODY);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn more_leases_than_are_followed_do_not_grow_the_table() {
        let line = |number: u32| format!("0 aa {}\n", Ipv4Addr::from_bits(0x0a00_0000 + number));
        let text: String = (0..MOST as u32 + 10).map(line).collect();
        assert_eq!(rows(&text).len(), MOST);
    }
}
