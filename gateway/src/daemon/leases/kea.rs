//! The lease files of a Kea DHCPv4 server (memfile, CSV): its leases become bindings. The host of a lease is its hardware address, if that is an IPv6
//! address of one of the clients: our own hosts write the end of their tunnel there.
//!
//! Each hour Kea cleans up its lease file: older rows move to other files, and only later ones are in the file of that name.
//!
//! ```text
//! leases.csv ──rename──▶ leases.csv.1 ──┬─kea-lfc─▶ leases.csv.completed ──rename──▶ leases.csv.2
//! leases.csv (begins empty)             └ leases.csv.2 (of the time before)
//! ```

use crate::regular_file;
use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_wire::{Prefix4, Prefix6};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The largest files that are read, in octets of all together.
const LARGEST: u64 = 256 << 20;

/// What Kea appends to the name of the file. All of them together have all leases, and of an address the last file that has it counts.
const OLDER: [&str; 3] = [".completed", ".2", ".1"];

/// Inode, length and time of the last change of a file; `None`: there is no such file.
type Seen = Option<(u64, u64, i64, i64)>;

/// Files that are watched.
#[derive(Debug)]
pub(super) struct KeaFile {
    path: PathBuf,
    /// The older ones and the newest, as they were when they were read.
    seen: [Seen; 4],
}

impl KeaFile {
    /// Watches the file of this name, and those that Kea makes of it.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.into(), seen: [None; 4] }
    }

    /// Their texts, the oldest first, if they have changed. Without the file of this name they count as unchanged.
    ///
    /// # Errors
    /// One of them cannot be read, or they are too large.
    pub(super) fn changed(&mut self) -> io::Result<Option<Vec<String>>> {
        let seen = self.look()?;
        let [completed, .., newest] = seen;
        if newest.is_none() || seen == self.seen {
            return Ok(None);
        }
        // The completed file has the rows of the two others, which are removed only afterwards.
        let skipped = if completed.is_some() { 1..3 } else { 0..1 };
        let (mut texts, mut left) = (Vec::new(), LARGEST);
        let there = self.paths().into_iter().zip(seen).enumerate();
        for (_, (path, _)) in there.filter(|(place, (_, seen))| seen.is_some() && !skipped.contains(place)) {
            match read(&path, &mut left) {
                Ok(text) => texts.push(text),
                // It was moved meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let inodes = |all: [Seen; 4]| all.map(|one| one.map(|(inode, ..)| inode));
        if inodes(self.look()?) != inodes(seen) {
            // The same lease may have been in none of them, or an old one in the last: they are read again the next time.
            return Ok(None);
        }
        self.seen = seen;
        Ok(Some(texts))
    }

    fn paths(&self) -> [PathBuf; 4] {
        let [completed, second, first] = OLDER.map(|end| {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        });
        [completed, second, first, self.path.clone()]
    }

    fn look(&self) -> io::Result<[Seen; 4]> {
        let mut all = [None; 4];
        for (seen, path) in all.iter_mut().zip(self.paths()) {
            *seen = match fs::metadata(&path) {
                Ok(found) => Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        Ok(all)
    }

    /// Where they are.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// A file as text, if it is no longer than what is left.
fn read(path: &Path, left: &mut u64) -> io::Result<String> {
    let mut octets = Vec::new();
    let length = regular_file::open(path)?.take(*left + 1).read_to_end(&mut octets)?;
    *left =
        left.checked_sub(length as u64).ok_or_else(|| io::Error::other("is too large for a lease file"))?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// The bindings that a lease file describes, and when each ends, in seconds since 1970.
pub(super) type KeaBindings = BTreeMap<Ipv4Addr, (Binding, u64)>;

/// The bindings that lease files describe at a time, in seconds since 1970, and when each ends. The last row of an address counts.
pub(super) fn bindings(texts: &[String], clients: &[Prefix6], now: u64) -> KeaBindings {
    let mut all = BTreeMap::new();
    texts.iter().for_each(|text| take_up(text, clients, now, &mut all));
    all
}

/// Takes up the rows of a file.
fn take_up(text: &str, clients: &[Prefix6], now: u64, all: &mut KeaBindings) {
    // Text after the last end of a line was not written completely.
    let mut lines = text.rfind('\n').map_or("", |end| &text[..end]).lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let (Some(address), Some(hardware), Some(expire), Some(state)) =
        (place("address"), place("hwaddr"), place("expire"), place("state"))
    else {
        return;
    };
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or_default();
        let Ok(ipv4) = field(address).parse::<Ipv4Addr>() else { continue };
        let until = field(expire).parse().unwrap_or(0);
        let host = host(field(hardware)).filter(|host| clients.iter().any(|prefix| prefix.contains(*host)));
        // State 0 is an assigned lease.
        match host.filter(|_| field(state) == "0" && until > now) {
            Some(host) => {
                let binding = Binding { ipv4: Prefix4::holding(ipv4, 32), host, local: 0 };
                all.insert(ipv4, (binding, until));
            }
            None => drop(all.remove(&ipv4)),
        }
    }
}

/// A hardware address of sixteen octets.
fn host(text: &str) -> Option<Ipv6Addr> {
    let octets: Option<Vec<u8>> = text.split(':').map(|octet| u8::from_str_radix(octet, 16).ok()).collect();
    let octets: [u8; 16] = octets?.try_into().ok()?;
    Some(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context
192.0.2.17,20:01:0d:b8:00:0a:00:00:00:00:00:00:00:00:00:01,ff:00,3600,2000,1,0,0,,0,
192.0.2.18,20:01:0d:b9:00:0a:00:00:00:00:00:00:00:00:00:01,ff:00,3600,2000,1,0,0,,0,
192.0.2.19,02:00:00:00:00:01,,3600,2000,1,0,0,,0,
192.0.2.20,20:01:0d:b8:00:0a:00:00:00:00:00:00:00:00:00:02,,3600,2000,1,0,0,,0,
192.0.2.20,20:01:0d:b8:00:0a:00:00:00:00:00:00:00:00:00:02,,3600,900,1,0,0,,2,
";

    fn now(texts: &[&str], clients: &[Prefix6], now: u64) -> KeaBindings {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        bindings(&texts, clients, now)
    }

    #[test]
    fn assigned_leases_of_clients_are_bindings_until_they_end() {
        let clients = ["2001:db8::/32".parse().unwrap()];
        let found = now(&[FILE], &clients, 1_000);
        let hosts: Vec<(String, String)> =
            found.iter().map(|(ipv4, (binding, _))| (ipv4.to_string(), binding.host.to_string())).collect();
        assert_eq!(hosts, [("192.0.2.17".to_owned(), "2001:db8:a::1".to_owned())]);
        assert!(now(&[FILE], &clients, 2_000).is_empty());
    }

    #[test]
    fn what_is_cut_or_mangled_is_no_binding_and_nothing_worse() {
        let clients = ["::/0".parse().unwrap()];
        for length in 0..FILE.len() {
            now(&[&FILE[..length]], &clients, 1_000);
            now(&[&FILE[length..]], &clients, 1_000);
        }
        assert!(now(&[""], &clients, 0).is_empty() && now(&["a,b\n1,2\n"], &clients, 0).is_empty());
    }

    /// A renewal whose time is cut would end the lease.
    #[test]
    fn a_row_that_is_being_written_changes_nothing() {
        let clients = ["2001:db8::/32".parse().unwrap()];
        let row = FILE.lines().nth(1).unwrap();
        let before = now(&[FILE], &clients, 1_000);
        for length in 0..row.len() {
            assert_eq!(now(&[&format!("{FILE}{}", &row[..length])], &clients, 1_000), before, "{length}");
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("sixway-kea-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Kea's lease file cleanup, step by step: no lease is missing at any time, and a newer file counts more.
    #[test]
    fn leases_stay_while_kea_tidies_up_and_afterwards() {
        let folder = folder("tidies");
        let path = folder.join("leases.csv");
        let at = |end: &str| folder.join(format!("leases.csv{end}"));
        let (header, rows) = FILE.split_once('\n').unwrap();
        let row = rows.lines().next().unwrap();
        let text = |rows: &str| format!("{header}\n{rows}");
        let second = row.replace("192.0.2.17", "192.0.2.21");
        let mut file = KeaFile::new(&path);
        assert_eq!(file.changed().unwrap(), None, "not there yet");
        let clients = ["2001:db8::/32".parse().unwrap()];
        let mut known = KeaBindings::new();
        let mut bound = |file: &mut KeaFile| {
            if let Some(texts) = file.changed().unwrap() {
                known = bindings(&texts, &clients, 1_000);
            }
            known.keys().map(|ipv4| u32::from(ipv4.octets()[3])).collect::<Vec<_>>()
        };
        fs::write(&path, text(&format!("{row}\n"))).unwrap();
        assert_eq!(bound(&mut file), [17]);
        fs::rename(&path, at(".1")).unwrap();
        assert_eq!(bound(&mut file), [17], "the new one is not there yet");
        fs::write(&path, text("")).unwrap();
        assert_eq!(bound(&mut file), [17]);
        fs::write(at(".output"), text("")).unwrap();
        fs::write(&path, text(&format!("{second}\n"))).unwrap();
        assert_eq!(bound(&mut file), [17, 21]);
        fs::write(at(".output"), text(&format!("{row}\n"))).unwrap();
        fs::rename(at(".output"), at(".completed")).unwrap();
        assert_eq!(bound(&mut file), [17, 21]);
        fs::remove_file(at(".1")).unwrap();
        assert_eq!(bound(&mut file), [17, 21]);
        fs::rename(at(".completed"), at(".2")).unwrap();
        assert_eq!(bound(&mut file), [17, 21]);
        let released = row.replace(",0,", ",2,").replace(",3600,2000,", ",3600,900,");
        fs::write(&path, text(&format!("{second}\n{released}\n"))).unwrap();
        assert_eq!(bound(&mut file), [21], "the newest file counts");
        assert_eq!(file.changed().unwrap(), None, "nothing is new");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_does_not_block_and_is_not_read_for_ever() {
        let folder = folder("fifo");
        let path = folder.join("leases.csv");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let fault = || KeaFile::new(&path).changed().unwrap_err().kind();
        assert_eq!(fault(), io::ErrorKind::InvalidInput);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(fault(), io::ErrorKind::InvalidInput);
        fs::remove_dir_all(&folder).unwrap();
    }
}
