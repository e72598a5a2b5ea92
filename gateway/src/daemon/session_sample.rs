//! A sample of the sessions, which shows whether packets return. Each call takes a bounded number of rows and begins where the last one
//! ended, so that the work does not grow with the tables.

use crate::host::SilentRouter;
use crate::worker::{Position, SessionEntry};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Rows of a look, all workers together.
pub(super) const ROWS: usize = 512;
/// Maximum number of parts of the tables, of 512 places each, that a pass examines in each worker.
pub(super) const PARTS: u32 = 64;
/// Sessions that are idle for longer show nothing about the present.
const RECENT: Duration = Duration::from_secs(60);
/// An answer takes this long, perhaps.
const PATIENCE: Duration = Duration::from_secs(1);
/// Destinations of sessions whose routes are examined.
const DESTINATIONS: usize = 8;

/// The sample of a mechanism.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleCount {
    /// Sessions with packets both ways.
    pub answered: u64,
    /// Sessions with packets out and none back.
    pub unanswered: u64,
    /// An outside address of one of these.
    pub outside: Option<IpAddr>,
}

/// The observed state.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionSample {
    /// By mechanism, in the order of the configuration.
    pub counts: BTreeMap<u16, SampleCount>,
    /// Some remote hosts, for the routes to them.
    pub remotes: Vec<IpAddr>,
}

/// The last look at sessions and neighbours.
#[derive(Debug, Default)]
pub(super) struct LastLook {
    /// Where the next look begins, by worker.
    pub next: Vec<Position>,
    pub at: Option<Instant>,
    pub sample: SessionSample,
    pub silent: Vec<SilentRouter>,
}

impl SessionSample {
    /// Adds sessions.
    pub(super) fn add(&mut self, entries: &[SessionEntry]) {
        for entry in entries.iter().filter(|entry| entry.idle.is_some_and(|idle| idle <= RECENT)) {
            let remote = IpAddr::V4(entry.remote.address);
            if self.remotes.len() < DESTINATIONS && !self.remotes.contains(&remote) {
                self.remotes.push(remote);
            }
            let count = self.counts.entry(entry.mechanism).or_default();
            match entry.packets {
                Some((out, 0)) if out > 1 || (out == 1 && entry.idle >= Some(PATIENCE)) => {
                    count.unanswered += 1;
                    count.outside.get_or_insert(IpAddr::V4(entry.outside.address));
                }
                Some((out, back)) if out > 0 && back > 0 => count.answered += 1,
                Some(_) | None => {}
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use sixway_wire::Endpoint4;

    /// A session of the first mechanism with these packets.
    pub(in crate::daemon) fn entry(packets: (u64, u64), idle: u64) -> SessionEntry {
        SessionEntry {
            mechanism: 0,
            protocol: 6,
            softwire: None,
            inside: None,
            outside: Endpoint4::new([192, 0, 2, 3].into(), 41_022),
            remote: Endpoint4::new([203, 0, 113, 2].into(), 443),
            state: "inside init",
            idle: Some(Duration::from_secs(idle)),
            ends_in: Duration::from_secs(200),
            packets: Some(packets),
            octets: None,
            offloaded: false,
        }
    }

    #[test]
    fn sessions_without_answers_are_counted_after_a_moment_and_for_a_minute() {
        let mut sample = SessionSample::default();
        sample.add(&[entry((1, 0), 0), entry((0, 3), 0), entry((5, 0), 61)]);
        assert_eq!(sample.counts[&0], SampleCount::default());
        sample.add(&[entry((1, 0), 1), entry((2, 0), 0), entry((4, 4), 60)]);
        let outside = Some(IpAddr::from([192, 0, 2, 3]));
        assert_eq!(sample.counts[&0], SampleCount { answered: 1, unanswered: 2, outside });
        assert_eq!(sample.remotes, [IpAddr::from([203, 0, 113, 2])]);
    }
}
