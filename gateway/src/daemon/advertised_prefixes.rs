//! The prefixes advertised to hosts, stored on disk, so that the next run deprecates those that it does not advertise (RFC 9096 §3.5).

use crate::worker::Clock;
use serde::{Deserialize, Serialize};
use sixway_control::router_advert::StalePrefix;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where the files are.
const DIRECTORY: &str = "/var/lib/sixway";
/// Lifetimes are extended by each advertisement: the file lags behind by at most this time.
const BEHIND: Duration = Duration::from_secs(300);

/// A stored prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredPrefix {
    /// The interface.
    link: String,
    prefix: String,
    on_link: bool,
    autonomous: bool,
    /// When no host can use it any more, in seconds since 1970.
    until: u64,
}

impl StoredPrefix {
    /// Whether both differ at most in their end.
    fn is_like(&self, other: &Self) -> bool {
        Self { until: 0, ..self.clone() } == Self { until: 0, ..other.clone() }
    }
}

/// The prefixes of a gateway.
#[derive(Debug)]
pub(super) struct AdvertisedPrefixes {
    path: PathBuf,
    kept: Vec<StoredPrefix>,
    written: Instant,
    failing: bool,
}

impl AdvertisedPrefixes {
    /// Those that a gateway of this name advertised in an earlier run.
    pub(super) fn load(name: &str) -> Self {
        Self::load_from(PathBuf::from(format!("{DIRECTORY}/{name}.advertised")))
    }

    fn load_from(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        // Prefixes in an unreadable file cannot be deprecated; that must not prevent the start.
        let kept = serde_json::from_str(&text).unwrap_or_default();
        Self { path, kept, written: Instant::now(), failing: false }
    }

    /// The prefixes advertised on a link, in this run's time.
    pub(super) fn of(&self, link: &str, clock: Clock) -> Vec<StalePrefix> {
        let wall = clock.wall();
        let prefixes = self.kept.iter().filter(|prefix| prefix.link == link);
        let left =
            |prefix: &StoredPrefix| prefix.until.checked_sub(wall.unix_seconds).filter(|left| *left > 0);
        let stale = prefixes.filter_map(|prefix| {
            Some(StalePrefix {
                prefix: prefix.prefix.parse().ok()?,
                on_link: prefix.on_link,
                autonomous: prefix.autonomous,
                until: wall.now + Duration::from_secs(left(prefix)?),
            })
        });
        stale.collect()
    }

    /// Records the prefixes in use on the links; writes the file on changes and when it is old.
    pub(super) fn keep(&mut self, believed: &[(String, Vec<StalePrefix>)], clock: Clock) {
        let wall = clock.wall();
        let prefixes = believed.iter().flat_map(|(link, prefixes)| {
            prefixes.iter().map(|stale| StoredPrefix {
                link: link.clone(),
                prefix: stale.prefix.to_string(),
                on_link: stale.on_link,
                autonomous: stale.autonomous,
                until: wall.unix_seconds + stale.until.since(wall.now).as_secs(),
            })
        });
        let prefixes: Vec<StoredPrefix> = prefixes.collect();
        let same = prefixes.len() == self.kept.len()
            && prefixes.iter().zip(&self.kept).all(|(new, old)| new.is_like(old));
        if same && (self.written.elapsed() < BEHIND || prefixes.is_empty()) {
            return;
        }
        (self.kept, self.written) = (prefixes, Instant::now());
        let outcome = self.write();
        match outcome {
            Ok(()) => self.failing = false,
            Err(_) if self.failing => {}
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; after a restart, advertised prefixes cannot be withdrawn; make the file writable",
                    self.path.display()
                );
                self.failing = true;
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        if self.kept.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let fresh = self.path.with_extension("advertised.new");
        fs::write(&fresh, serde_json::to_vec_pretty(&self.kept)?)?;
        fs::rename(&fresh, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_restored_until_their_lifetime_ends() {
        let path = std::env::temp_dir().join(format!("sixway-prefixes-{}.advertised", std::process::id()));
        let clock = Clock::start();
        let stale = |text: &str, seconds| StalePrefix {
            prefix: text.parse().unwrap(),
            on_link: true,
            autonomous: false,
            until: clock.now() + Duration::from_secs(seconds),
        };
        let mut prefixes = AdvertisedPrefixes::load_from(path.clone());
        assert!(prefixes.of("eth1", clock).is_empty());
        let believed = vec![stale("2001:db8:1::/64", 5_400), stale("2001:db8:2::/64", 0)];
        prefixes.keep(&[("eth1".into(), believed)], clock);

        let again = AdvertisedPrefixes::load_from(path.clone());
        let found = again.of("eth1", clock);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].prefix.to_string(), found[0].autonomous), ("2001:db8:1::/64".into(), false));
        assert!(found[0].until.since(clock.now()).as_secs().abs_diff(5_400) <= 2);
        assert!(again.of("eth2", clock).is_empty());
        prefixes.keep(&[], clock);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_holds_nothing() {
        let path = std::env::temp_dir().join(format!("sixway-garbled-{}.advertised", std::process::id()));
        fs::write(&path, "[{").unwrap();
        assert!(AdvertisedPrefixes::load_from(path.clone()).of("eth1", Clock::start()).is_empty());
        fs::remove_file(path).unwrap();
    }
}
