//! Queries to a concentrator by outcome, and those refused recently.

use super::trouble::{LeaseTrouble, NoLease};
use sixway_control::Instant;
use sixway_control::dhcp4o6::ServerCounters;
use std::collections::VecDeque;
use std::time::Duration;

/// A host without answers queries again after 64 s.
const LATELY: Duration = Duration::from_secs(120);
/// This number of refused queries indicates a scan or a mistake, although hosts have leases.
const SEVERAL: u64 = 3;

/// Queries by what became of them.
pub(in crate::daemon) fn outcomes(counters: &ServerCounters) -> [(&'static str, u64); 12] {
    let ServerCounters {
        offers,
        acks,
        naks,
        releases,
        declines,
        malformed,
        not_clients,
        not_relays,
        limited,
        refused_share,
        refused_empty,
        not_ours,
    } = *counters;
    [
        ("offer", offers),
        ("ack", acks),
        ("nak", naks),
        ("release", releases),
        ("decline", declines),
        ("malformed", malformed),
        ("not_client", not_clients),
        ("not_relay", not_relays),
        ("rate_limit", limited),
        ("client_limit", refused_share),
        ("pool_empty", refused_empty),
        ("not_ours", not_ours),
    ]
}

/// All queries without an answer because of their contents or their sender.
pub(super) const fn refused(counters: &ServerCounters) -> u64 {
    counters.malformed
        + counters.not_clients
        + counters.not_relays
        + counters.limited
        + counters.refused_share
        + counters.refused_empty
}

/// Queries of unknown senders in each second.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    seen: VecDeque<(Instant, u64, u64)>,
    /// Whether it was logged.
    told: bool,
}

impl Strangers {
    /// Each second.
    pub(super) fn note(&mut self, name: &str, now: Instant, counters: &ServerCounters) {
        let is_old = |(at, ..): &(Instant, u64, u64)| now.since(*at) > LATELY;
        while self.seen.front().is_some_and(is_old) {
            self.seen.pop_front();
        }
        self.seen.push_back((now, counters.not_clients, counters.not_relays));
        let (not_clients, not_relays) = self.lately(counters);
        let is_some = not_clients + not_relays > 0;
        if is_some && !self.told {
            tracing::warn!(
                "{name}: queries are refused: the senders are not within clients, or the relay agents not within relays; log = \"debug\" shows them"
            );
        }
        self.told = is_some;
    }

    fn lately(&self, counters: &ServerCounters) -> (u64, u64) {
        let Some((_, clients, relays)) = self.seen.front() else { return (0, 0) };
        (counters.not_clients.saturating_sub(*clients), counters.not_relays.saturating_sub(*relays))
    }

    /// Refused queries to report: several of them, or any while no host has a lease.
    pub(super) fn trouble(&self, name: &str, counters: &ServerCounters, bound: u32) -> Option<LeaseTrouble> {
        let (not_clients, not_relays) = self.lately(counters);
        let all = not_clients + not_relays;
        let why = NoLease::Strangers { not_clients, not_relays };
        (all >= SEVERAL || all > 0 && bound == 0).then(|| LeaseTrouble { mechanism: name.into(), why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_strangers_are_told_for_two_minutes_and_a_single_one_only_while_nobody_has_a_lease() {
        let mut strangers = Strangers::default();
        let at = |seconds: u64| Instant::from_secs(1_000 + seconds);
        let with = |not_clients| ServerCounters { not_clients, ..ServerCounters::default() };
        strangers.note("hub", at(0), &with(7));
        assert_eq!(strangers.trouble("hub", &with(7), 0), None, "before the start");
        strangers.note("hub", at(1), &with(8));
        assert!(strangers.trouble("hub", &with(8), 0).is_some());
        assert_eq!(strangers.trouble("hub", &with(8), 1), None, "a single stranger");
        let found = strangers.trouble("hub", &with(10), 1).unwrap();
        assert_eq!(found.why, NoLease::Strangers { not_clients: 3, not_relays: 0 });
        (2..400).for_each(|second| strangers.note("hub", at(second), &with(10)));
        assert_eq!(strangers.trouble("hub", &with(10), 0), None);
        assert!(strangers.seen.len() <= 122, "{}", strangers.seen.len());
    }

    #[test]
    fn every_outcome_of_a_query_has_a_name_and_what_is_refused_is_counted_together() {
        let counters = ServerCounters {
            acks: 3,
            not_clients: 4,
            not_relays: 5,
            refused_empty: 1,
            ..ServerCounters::default()
        };
        let named = outcomes(&counters);
        assert!(named.contains(&("not_relay", 5)) && named.contains(&("ack", 3)), "{named:?}");
        assert_eq!(refused(&counters), 10);
    }
}
