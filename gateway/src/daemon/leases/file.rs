//! The leases on disk: each change is appended before its answer is sent, and the file is rewritten atomically when it is long.
//!
//! ```text
//! bound 192.0.2.17 2001:db8:a::1 1764100000
//! waits 192.0.2.18 2001:db8:a::2 1764100100 203.0.113.53 proven        a client looked up this host's name
//! ```

use sixway_control::Instant;
use sixway_control::dhcp4o6::{Asker, Lease, LeaseState};
use sixway_dataplane::mechanism::siit::dynamic_pool::WallClock;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Minimum number of appended lines before the file is written again.
const FEW_LINES: usize = 1_024;
/// Time from a failure to the next attempt to rewrite the file: attempts must not fill a full disk.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// A lease, and the client that looked up its host's name, if the lease waits for the host.
pub(super) type Line = (Lease, Option<Asker>);

/// The file.
#[derive(Debug)]
pub(super) struct LeaseFile {
    path: PathBuf,
    whole: usize,
    appended: usize,
    /// Lines are missing in it since something could not be written.
    lacks: bool,
    /// When it could not be written.
    failed: Option<Instant>,
}

impl LeaseFile {
    /// Reads the file: the last line of each address counts, lines that are not valid are counted. One that does not exist is empty.
    /// What follows the last end of a line was not written to its end: it is not a lease, though it may look like one, and nothing is appended to it.
    ///
    /// # Errors
    /// It cannot be read, or it is something else: it would be overwritten.
    pub(super) fn load(path: &Path, wall: WallClock) -> io::Result<(Self, Vec<Line>, usize)> {
        let text = match fs::read(path) {
            Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let written = text.rfind('\n').map_or("", |end| &text[..=end]);
        let is_torn = written.len() < text.len();
        let (mut leases, mut faults) = (BTreeMap::new(), usize::from(is_torn));
        for line in written.lines() {
            match parse(line, wall) {
                Some((lease, asker)) => drop(leases.insert(lease.ipv4, (lease, asker))),
                None => faults += 1,
            }
        }
        if leases.is_empty() && faults > 0 && !written.is_empty() {
            return Err(io::Error::other("not a lease file; remove it, or set another `lease_file`"));
        }
        let mut leases: Vec<Line> = leases.into_values().collect();
        leases.sort_by_key(|(lease, _)| lease.until);
        let (whole, lines) = (leases.len(), written.lines().count());
        let file = Self { path: path.into(), whole, appended: lines - whole, lacks: is_torn, failed: None };
        Ok((file, leases, faults))
    }

    /// Appends lines.
    ///
    /// # Errors
    /// The kernel's: the lines are added when the file is rewritten.
    pub(super) fn append(&mut self, lines: &[Line], wall: WallClock) -> io::Result<()> {
        if lines.is_empty() || self.lacks {
            return Ok(());
        }
        let outcome = self.try_append(lines, wall);
        if outcome.is_err() {
            (self.lacks, self.failed) = (true, Some(wall.now));
        }
        outcome
    }

    fn try_append(&mut self, lines: &[Line], wall: WallClock) -> io::Result<()> {
        self.make_directory()?;
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(text(lines, wall).as_bytes())?;
        self.appended += lines.len();
        Ok(())
    }

    /// Whether the file should be rewritten: much was appended, or lines are missing; not immediately after a failure.
    pub(super) fn is_to_be_rewritten(&self, now: Instant) -> bool {
        let is_long = self.appended > FEW_LINES.max(2 * self.whole);
        let has_rested = self.failed.is_none_or(|failed| now.since(failed) >= AFTER_FAILURE);
        (is_long || self.lacks) && has_rested
    }

    /// Writes all leases, atomically. `page` gives those that follow an address, none at the end.
    ///
    /// # Errors
    /// The kernel's: the file is as it was.
    pub(super) fn rewrite(
        &mut self,
        page: impl FnMut(Option<Ipv4Addr>) -> Vec<Line>,
        wall: WallClock,
    ) -> io::Result<()> {
        match self.try_rewrite(page, wall) {
            Ok(lines) => {
                (self.whole, self.appended, self.lacks, self.failed) = (lines, 0, false, None);
                Ok(())
            }
            Err(error) => {
                self.failed = Some(wall.now);
                Err(error)
            }
        }
    }

    fn try_rewrite(
        &self,
        mut page: impl FnMut(Option<Ipv4Addr>) -> Vec<Line>,
        wall: WallClock,
    ) -> io::Result<usize> {
        self.make_directory()?;
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let fresh = PathBuf::from(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        let (mut file, mut lines, mut last) = (BufWriter::new(file), 0, None);
        loop {
            let more = page(last);
            let Some((lease, _)) = more.last() else { break };
            last = Some(lease.ipv4);
            lines += more.len();
            file.write_all(text(&more, wall).as_bytes())?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        Ok(lines)
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

fn text(lines: &[Line], wall: WallClock) -> String {
    let line = |(lease, asker): &Line| {
        let state = match (lease.state, asker) {
            (LeaseState::Bound, Some(_)) => "waits",
            (LeaseState::Bound, None) => "bound",
            (LeaseState::Ended, _) => "ended",
            // Neither outlives a restart.
            (LeaseState::Offered | LeaseState::Declined, _) => return String::new(),
        };
        let asker = match asker.filter(|_| lease.state == LeaseState::Bound) {
            Some(Asker { client, is_proven: true }) => format!(" {client} proven"),
            Some(Asker { client, is_proven: false }) => format!(" {client} unproven"),
            None => String::new(),
        };
        format!("{state} {} {} {}{asker}\n", lease.ipv4, lease.host, unix(lease.until, wall))
    };
    lines.iter().map(line).collect()
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
fn parse(line: &str, wall: WallClock) -> Option<Line> {
    let mut words = line.split(' ');
    let (state, ipv4, host, until) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (ipv4, host): (Ipv4Addr, Ipv6Addr) = (ipv4.parse().ok()?, host.parse().ok()?);
    let until = instant(until.parse().ok()?, wall);
    let asker = match state {
        "waits" => {
            let client = words.next()?.parse().ok()?;
            let is_proven = match words.next()? {
                "proven" => true,
                "unproven" => false,
                _ => return None,
            };
            Some(Asker { client, is_proven })
        }
        _ => None,
    };
    let state = match state {
        "bound" | "waits" if until > wall.now => LeaseState::Bound,
        "bound" | "waits" | "ended" => LeaseState::Ended,
        _ => return None,
    };
    words.next().is_none().then_some((Lease { ipv4, host, state, until }, asker))
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

    fn plain(lease: Lease) -> Line {
        (lease, None)
    }

    /// All of them in one page.
    fn once(lines: &[Line]) -> impl FnMut(Option<Ipv4Addr>) -> Vec<Line> {
        move |last| if last.is_none() { lines.to_vec() } else { Vec::new() }
    }

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sixway-leases-{name}-{}", std::process::id()))
    }

    #[test]
    fn leases_survive_and_those_that_end_meanwhile_are_ended() {
        let directory = directory("all");
        let path = directory.join("deep/a.leases");
        let (mut file, leases, _) = LeaseFile::load(&path, wall(0)).unwrap();
        assert!(leases.is_empty());
        let first = [lease(1, LeaseState::Bound, 100), lease(2, LeaseState::Bound, 10)].map(plain);
        file.rewrite(once(&first), wall(0)).unwrap();
        let waits = |is_proven| Some(Asker { client: Ipv4Addr::new(203, 0, 113, 53).into(), is_proven });
        let (proven, forged) = (lease(5, LeaseState::Bound, 120), lease(6, LeaseState::Bound, 121));
        let lines = [
            plain(lease(1, LeaseState::Bound, 200)),
            plain(lease(3, LeaseState::Offered, 60)),
            (proven, waits(true)),
            (forged, waits(false)),
        ];
        file.append(&lines, wall(0)).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"bound 192.0.2.4 20").unwrap();
        let (_, leases, faults) = LeaseFile::load(&path, wall(20)).unwrap();
        let [one, two] = [lease(2, LeaseState::Ended, 10), lease(1, LeaseState::Bound, 200)].map(plain);
        assert_eq!(leases, [one, (proven, waits(true)), (forged, waits(false)), two]);
        assert_eq!(faults, 1);
        fs::write(&path, "[gateway]\nname = 1\n").unwrap();
        assert!(LeaseFile::load(&path, wall(0)).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }

    /// A full disk, or a loss of power.
    #[test]
    fn a_line_that_was_not_written_to_its_end_is_no_lease_and_spoils_none() {
        let directory = directory("torn");
        fs::create_dir_all(&directory).unwrap();
        let (path, wall) = (directory.join("torn.leases"), wall(1_000));
        let good = "bound 192.0.2.1 2001:db8::1 1999999999\n";
        let renewed = "bound 192.0.2.1 2001:db8::1 2000000000\n";
        for length in 1..renewed.len() {
            fs::write(&path, [good, &renewed[..length]].concat()).unwrap();
            let (mut file, leases, faults) = LeaseFile::load(&path, wall).unwrap();
            assert_eq!((leases.len(), faults), (1, 1), "{length}");
            assert_eq!(
                (leases[0].0.state, unix(leases[0].0.until, wall)),
                (LeaseState::Bound, 1_999_999_999)
            );
            assert!(file.is_to_be_rewritten(wall.now));
            file.append(&leases, wall).unwrap();
            let mut pages = vec![Vec::new(), leases.clone()];
            file.rewrite(|_| pages.pop().unwrap_or_default(), wall).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), good);
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn after_a_failure_the_whole_is_written_again_and_not_at_each_change() {
        let directory = directory("full");
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a.leases");
        let (mut file, _, _) = LeaseFile::load(&path, wall(0)).unwrap();
        let lines = [plain(lease(1, LeaseState::Bound, 100))];
        // No line can be appended to a directory.
        fs::create_dir(&path).unwrap();
        assert!(file.append(&lines, wall(0)).is_err());
        assert!(!file.is_to_be_rewritten(wall(9).now));
        assert!(file.append(&lines, wall(9)).is_ok(), "it is not tried before the whole is written");
        assert!(file.is_to_be_rewritten(wall(10).now));
        assert!(file.rewrite(once(&lines), wall(10)).is_err());
        assert!(!file.is_to_be_rewritten(wall(19).now));
        fs::remove_dir(&path).unwrap();
        assert!(file.is_to_be_rewritten(wall(20).now));
        file.rewrite(once(&lines), wall(20)).unwrap();
        assert!(!file.is_to_be_rewritten(wall(100).now));
        assert_eq!(LeaseFile::load(&path, wall(20)).unwrap().1, lines);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_that_is_long_when_it_is_read_is_written_again() {
        let directory = directory("long");
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a.leases");
        let line = "bound 192.0.2.1 2001:db8::1 2000000\n";
        fs::write(&path, line.repeat(FEW_LINES + 2)).unwrap();
        assert!(LeaseFile::load(&path, wall(0)).unwrap().0.is_to_be_rewritten(wall(0).now));
        fs::write(&path, line.repeat(FEW_LINES)).unwrap();
        assert!(!LeaseFile::load(&path, wall(0)).unwrap().0.is_to_be_rewritten(wall(0).now));
        fs::remove_dir_all(&directory).unwrap();
    }
}
