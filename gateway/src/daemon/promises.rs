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
struct Promise {
    /// The interface.
    link: String,
    prefix: String,
    on_link: bool,
    autonomous: bool,
    /// When no host can use it any more, in seconds since 1970.
    until: u64,
}

impl Promise {
    /// Whether it is about the same, but for the time.
    fn is_like(&self, other: &Self) -> bool {
        Self { until: 0, ..self.clone() } == Self { until: 0, ..other.clone() }
    }
}

/// The promises of a gateway.
#[derive(Debug)]
pub(super) struct Promises {
    path: PathBuf,
    kept: Vec<Promise>,
    written: Instant,
    failing: bool,
}

impl Promises {
    /// Those that a gateway of this name made in an earlier run.
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
        let promises = self.kept.iter().filter(|promise| promise.link == link);
        let left = |promise: &Promise| promise.until.checked_sub(wall.unix_seconds).filter(|left| *left > 0);
        let stale = promises.filter_map(|promise| {
            Some(StalePrefix {
                prefix: promise.prefix.parse().ok()?,
                on_link: promise.on_link,
                autonomous: promise.autonomous,
                until: wall.now + Duration::from_secs(left(promise)?),
            })
        });
        stale.collect()
    }

    /// Records the prefixes in use on the links; writes the file on changes and when it is old.
    pub(super) fn keep(&mut self, believed: &[(String, Vec<StalePrefix>)], clock: Clock) {
        let wall = clock.wall();
        let promises = believed.iter().flat_map(|(link, prefixes)| {
            prefixes.iter().map(|stale| Promise {
                link: link.clone(),
                prefix: stale.prefix.to_string(),
                on_link: stale.on_link,
                autonomous: stale.autonomous,
                until: wall.unix_seconds + stale.until.since(wall.now).as_secs(),
            })
        });
        let promises: Vec<Promise> = promises.collect();
        let same = promises.len() == self.kept.len()
            && promises.iter().zip(&self.kept).all(|(new, old)| new.is_like(old));
        if same && (self.written.elapsed() < BEHIND || promises.is_empty()) {
            return;
        }
        (self.kept, self.written) = (promises, Instant::now());
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
    fn promises_are_read_again_as_long_as_hosts_believe_in_them() {
        let path = std::env::temp_dir().join(format!("sixway-promises-{}.advertised", std::process::id()));
        let clock = Clock::start();
        let stale = |text: &str, seconds| StalePrefix {
            prefix: text.parse().unwrap(),
            on_link: true,
            autonomous: false,
            until: clock.now() + Duration::from_secs(seconds),
        };
        let mut promises = Promises::load_from(path.clone());
        assert!(promises.of("eth1", clock).is_empty());
        let believed = vec![stale("2001:db8:1::/64", 5_400), stale("2001:db8:2::/64", 0)];
        promises.keep(&[("eth1".into(), believed)], clock);

        let again = Promises::load_from(path.clone());
        let found = again.of("eth1", clock);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].prefix.to_string(), found[0].autonomous), ("2001:db8:1::/64".into(), false));
        assert!(found[0].until.since(clock.now()).as_secs().abs_diff(5_400) <= 2);
        assert!(again.of("eth2", clock).is_empty());
        promises.keep(&[], clock);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_holds_nothing() {
        let path = std::env::temp_dir().join(format!("sixway-garbled-{}.advertised", std::process::id()));
        fs::write(&path, "[{").unwrap();
        assert!(Promises::load_from(path.clone()).of("eth1", Clock::start()).is_empty());
        fs::remove_file(path).unwrap();
    }
}
