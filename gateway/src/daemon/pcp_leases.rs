//! DHCP leases of inside hosts, in the file of dnsmasq: a host that loses its address loses its mappings (RFC 6887 §15). The next host with
//! the address must not receive packets for the previous one.
//!
//! ```text
//!     1764200000 52:54:00:12:34:56 192.168.1.77 printer 01:52:54:00:12:34:56        end, hardware address, address, name, client identifier
//! ```
//!
//! An address is lost when another hardware address has it, or when its lease has expired. A lease that is no longer in the file has not
//! ended: every host of the LAN can forge a DHCPRELEASE of a neighbour, or a request for a shorter lease (RFC 2131 §7). So the latest end
//! that dnsmasq ever wrote for a hardware address applies. Known leases are stored, for those that end or move while the gateway does not run.

use crate::regular_file;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Maximum octets of the file that are read.
const LONGEST: u64 = 16 << 20;
/// Maximum followed leases: those in the file before others, and those of the lowest addresses. The other hosts' mappings end when they
/// are not renewed.
const MOST: usize = 65_536;
/// Maximum hosts that a call returns: the translators' tables are searched for each of them, and requests wait meanwhile.
const MOST_TOLD: usize = 64;

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    hardware: String,
    /// Its end in seconds since 1970; the largest number if it has none.
    until: u64,
}

/// The leases, as far as they are known.
#[derive(Debug)]
pub(super) struct InsideLeases {
    path: PathBuf,
    kept: PathBuf,
    known: BTreeMap<Ipv4Addr, Row>,
    /// Hosts whose lease has ended, and that were not returned yet.
    lost: BTreeSet<Ipv4Addr>,
}

impl InsideLeases {
    /// Those in this file of dnsmasq, and those that were known before, which are stored in another file.
    pub(super) fn new(path: PathBuf, kept: PathBuf) -> Self {
        let known = read(&kept).unwrap_or_default();
        Self { path, kept, known, lost: BTreeSet::new() }
    }

    /// Reads the file, at this time in seconds since 1970. Returns hosts whose lease has ended or moved to another host: at most
    /// [`MOST_TOLD`], the others with the next calls.
    pub(super) fn look(&mut self, now: u64) -> Vec<Ipv4Addr> {
        let before = self.known.clone();
        let lost = self.compare(read(&self.path).unwrap_or_default(), now);
        self.lost.extend(lost);
        if self.known != before {
            // Without it, leases that move before the next start are not detected.
            if let Err(error) = write(&self.kept, &self.known) {
                tracing::debug!("pcp: {}: {error}", self.kept.display());
            }
        }
        (0..MOST_TOLD).map_while(|_| self.lost.pop_first()).collect()
    }

    fn compare(&mut self, mut told: BTreeMap<Ipv4Addr, Row>, now: u64) -> Vec<Ipv4Addr> {
        told.retain(|_, row| row.until > now);
        let (mut lost, mut room) = (Vec::new(), MOST.saturating_sub(told.len()));
        self.known.retain(|address, known| {
            let is_lost = match told.get_mut(address) {
                Some(row) if row.hardware == known.hardware => {
                    row.until = row.until.max(known.until);
                    return false;
                }
                Some(_) => true,
                None => known.until <= now,
            };
            if is_lost {
                lost.push(*address);
                return false;
            }
            let stays = room > 0;
            room = room.saturating_sub(1);
            stays
        });
        self.known.extend(told);
        lost
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
        InsideLeases::new(PathBuf::new(), PathBuf::new())
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
        assert_eq!(leases.compare(rows(HOST), NOW), NOBODY);
        assert_eq!(leases.compare(rows(HOST), NOW + 1), NOBODY);
        assert_eq!(leases.compare(rows(OTHER), NOW + 2), [ADDRESS]);
        assert_eq!(leases.compare(rows(OTHER), NOW + 3), NOBODY);
    }

    /// Any host of the LAN can forge a DHCPRELEASE of this one.
    #[test]
    fn a_lease_that_is_released_ends_with_its_time_or_when_another_host_has_the_address() {
        let mut leases = none();
        leases.compare(rows(HOST), NOW);
        for second in 1..10 {
            assert_eq!(leases.compare(rows(""), NOW + second), NOBODY);
        }
        assert_eq!(leases.compare(rows(OTHER), NOW + 10), [ADDRESS], "it is another host's");
        leases.compare(rows(""), NOW + 11);
        assert_eq!(leases.compare(rows(""), NOW + 3_599), NOBODY);
        assert_eq!(leases.compare(rows(""), NOW + 3_600), [ADDRESS], "it is over");
        assert_eq!(leases.compare(rows(""), NOW + 3_601), NOBODY);
        // Also if dnsmasq, which does not run, has not removed it from its file.
        leases.compare(rows(HOST), NOW);
        assert_eq!(leases.compare(rows(HOST), NOW + 3_600), [ADDRESS]);
        assert_eq!(leases.compare(rows(HOST), NOW + 3_601), NOBODY);
    }

    /// A request of the same host for a lease of two minutes can be forged as well.
    #[test]
    fn a_lease_that_becomes_shorter_ends_when_it_would_have_ended() {
        let mut leases = none();
        leases.compare(rows(HOST), NOW);
        leases.compare(rows(&HOST.replace("1764203600", "1764200120")), NOW + 1);
        assert_eq!(leases.compare(rows(""), NOW + 200), NOBODY);
        assert_eq!(leases.compare(rows(""), NOW + 3_600), [ADDRESS]);
        // A renewal makes it longer.
        leases.compare(rows(HOST), NOW);
        leases.compare(rows(&HOST.replace("1764203600", "1764207200")), NOW + 1_800);
        assert_eq!(leases.compare(rows(""), NOW + 7_199), NOBODY);
        assert_eq!(leases.compare(rows(""), NOW + 7_200), [ADDRESS]);
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
        // Without the file, a lease lasts until its end.
        fs::remove_file(&path).unwrap();
        assert_eq!(again().look(NOW + 3_599), NOBODY);
        assert_eq!(again().look(NOW + 3_600), [ADDRESS]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn more_leases_than_are_followed_do_not_grow_the_table() {
        let line = |number: u32| format!("0 aa {}\n", Ipv4Addr::from_bits(0x0a00_0000 + number));
        let text: String = (0..MOST as u32 + 10).map(line).collect();
        assert_eq!(rows(&text).len(), MOST);
        let mut leases = none();
        leases.compare(rows(HOST), NOW);
        assert_eq!(leases.compare(rows(&text), NOW + 1), NOBODY);
        assert_eq!(leases.compare(rows(&line(MOST as u32 + 20)), NOW + 2), NOBODY);
        assert!(leases.known.len() <= MOST, "{}", leases.known.len());
        // All of them have ended, and are returned in parts.
        leases.lost = leases.compare(rows(""), u64::MAX).into_iter().collect();
        let (all, told) = (leases.lost.len(), leases.look(u64::MAX).len());
        assert_eq!((told, leases.lost.len()), (MOST_TOLD, all - MOST_TOLD));
    }
}
