//! The leases on disk: each change is appended before its answer leaves, and the whole is written again, atomically, when the file has grown long.
//!
//! ```text
//! bound 192.0.2.17 2001:db8:a::1 1764100000
//! ```

use sixway_control::Instant;
use sixway_control::dhcp4o6::{Lease, LeaseState};
use sixway_dataplane::mechanism::siit::dynamic_pool::WallClock;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Minimum number of appended lines before the file is written again.
const FEW_LINES: usize = 1_024;

/// The file.
#[derive(Debug)]
pub(super) struct LeaseFile {
    path: PathBuf,
    whole: usize,
    appended: usize,
}

impl LeaseFile {
    /// Reads the file: the last line of each address counts, lines that are not valid are counted. One that does not exist is empty.
    ///
    /// # Errors
    /// It cannot be read, or it is something else: it would be overwritten.
    pub(super) fn load(path: &Path, wall: WallClock) -> io::Result<(Self, Vec<Lease>, usize)> {
        let text = match fs::read(path) {
            Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let (mut leases, mut faults) = (BTreeMap::new(), 0);
        for line in text.lines() {
            match parse(line, wall) {
                Some(lease) => drop(leases.insert(lease.ipv4, lease)),
                None => faults += 1,
            }
        }
        if leases.is_empty() && faults > 0 && text.contains('\n') {
            return Err(io::Error::other("not a lease file; remove it, or set another `lease_file`"));
        }
        let mut leases: Vec<Lease> = leases.into_values().collect();
        leases.sort_by_key(|lease| lease.until);
        Ok((Self { path: path.into(), whole: 0, appended: leases.len() }, leases, faults))
    }

    /// Appends leases.
    pub(super) fn append(&mut self, leases: &[Lease], wall: WallClock) -> io::Result<()> {
        if leases.is_empty() {
            return Ok(());
        }
        self.make_directory()?;
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(text(leases, wall).as_bytes())?;
        self.appended += leases.len();
        Ok(())
    }

    /// Writes all leases, atomically.
    pub(super) fn rewrite(&mut self, leases: &[Lease], wall: WallClock) -> io::Result<()> {
        self.make_directory()?;
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let fresh = PathBuf::from(name);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(text(leases, wall).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        (self.whole, self.appended) = (leases.len(), 0);
        Ok(())
    }

    /// Whether so much was appended that it should be written again.
    pub(super) fn is_long(&self) -> bool {
        self.appended > FEW_LINES.max(2 * self.whole)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn make_directory(&self) -> io::Result<()> {
        match self.path.parent() {
            Some(directory) => DirBuilder::new().recursive(true).mode(0o755).create(directory),
            None => Ok(()),
        }
    }
}

fn text(leases: &[Lease], wall: WallClock) -> String {
    let line = |lease: &Lease| {
        let state = match lease.state {
            LeaseState::Bound => "bound",
            LeaseState::Ended => "ended",
            // Neither outlives a restart.
            LeaseState::Offered | LeaseState::Declined => return String::new(),
        };
        format!("{state} {} {} {}\n", lease.ipv4, lease.host, unix(lease.until, wall))
    };
    leases.iter().map(line).collect()
}

/// A time on the wall.
pub(super) fn unix(at: Instant, wall: WallClock) -> u64 {
    let now = wall.unix_seconds;
    if at >= wall.now {
        now + at.since(wall.now).as_secs()
    } else {
        now.saturating_sub(wall.now.since(at).as_secs())
    }
}

/// A time of the wall on the clock of the core.
pub(super) fn instant(seconds: u64, wall: WallClock) -> Instant {
    match seconds.checked_sub(wall.unix_seconds) {
        Some(left) => wall.now + Duration::from_secs(left),
        None => {
            Instant(wall.now.0.saturating_sub((wall.unix_seconds - seconds).saturating_mul(1_000_000_000)))
        }
    }
}

/// A lease that has ended meanwhile is an ended one.
fn parse(line: &str, wall: WallClock) -> Option<Lease> {
    let mut words = line.split(' ');
    let (state, ipv4, host, until) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (ipv4, host): (Ipv4Addr, Ipv6Addr) = (ipv4.parse().ok()?, host.parse().ok()?);
    let until = instant(until.parse().ok()?, wall);
    let state = match state {
        "bound" if until > wall.now => LeaseState::Bound,
        "bound" | "ended" => LeaseState::Ended,
        _ => return None,
    };
    words.next().is_none().then_some(Lease { ipv4, host, state, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(seconds: u64) -> WallClock {
        WallClock { now: Instant::from_secs(50 + seconds), unix_seconds: 1_000_000 + seconds }
    }

    fn lease(number: u8, state: LeaseState, seconds: u64) -> Lease {
        Lease {
            ipv4: [192, 0, 2, number].into(),
            host: Ipv6Addr::from_bits(number.into()),
            state,
            until: Instant::from_secs(50 + seconds),
        }
    }

    #[test]
    fn leases_survive_and_those_that_end_meanwhile_are_ended() {
        let directory = std::env::temp_dir().join(format!("sixway-leases-{}", std::process::id()));
        let path = directory.join("deep/a.leases");
        let (mut file, leases, _) = LeaseFile::load(&path, wall(0)).unwrap();
        assert!(leases.is_empty());
        file.rewrite(&[lease(1, LeaseState::Bound, 100), lease(2, LeaseState::Bound, 10)], wall(0)).unwrap();
        let offered = lease(3, LeaseState::Offered, 60);
        file.append(&[lease(1, LeaseState::Bound, 200), offered], wall(0)).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"bound 192.0.2.4 20").unwrap();
        let (_, leases, faults) = LeaseFile::load(&path, wall(20)).unwrap();
        assert_eq!(leases, [lease(2, LeaseState::Ended, 10), lease(1, LeaseState::Bound, 200)]);
        assert_eq!(faults, 1);
        fs::write(&path, "[gateway]\nname = 1\n").unwrap();
        assert!(LeaseFile::load(&path, wall(0)).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
