//! The report of a DNS thread.

use sixway_control::dns64::Counters;
use sixway_control::dns64::upstream::{Health, Row};

/// A thread's counters, and how full its tables are; several threads' are added up.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The resolver's counters.
    pub counters: Counters,
    /// The sockets' counters.
    pub sockets: SocketCounters,
    /// Queries waiting for an answer.
    pub waiting: usize,
    /// Exchanges with upstreams that are under way.
    pub exchanges: usize,
    /// Answers in the cache.
    pub entries: usize,
    /// Octets of the cache.
    pub octets: usize,
    /// Each upstream, in the order of the configuration.
    pub upstreams: Vec<Row>,
}

/// What is counted of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounters {
    /// Queries that there was no room for when they came.
    pub overflowed: u64,
    /// Answers that the kernel refused to send.
    pub unsent: u64,
    /// Queries to upstreams not sent: no file descriptor or no room in the socket buffer.
    pub lost: u64,
}

impl Report {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        add_counters(&mut self.counters, &other.counters);
        self.sockets.overflowed += other.sockets.overflowed;
        self.sockets.unsent += other.sockets.unsent;
        self.sockets.lost += other.sockets.lost;
        self.waiting += other.waiting;
        self.exchanges += other.exchanges;
        self.entries += other.entries;
        self.octets += other.octets;
        if self.upstreams.is_empty() {
            self.upstreams.clone_from(&other.upstreams);
        } else {
            self.upstreams.iter_mut().zip(&other.upstreams).for_each(|(sum, row)| add_upstream(sum, row));
        }
    }

    /// Upstreams that do not answer.
    #[must_use]
    pub fn down(&self) -> usize {
        self.upstreams.iter().filter(|row| row.health == Health::Down).count()
    }
}

/// Every field by name, so that a new one is not forgotten here.
fn add_counters(sum: &mut Counters, other: &Counters) {
    let Counters {
        queries,
        outcomes,
        cached,
        asked,
        replies,
        rejected,
        unanswered,
        evicted,
        validations,
        prefetched,
        waiting_refused,
        upstream_queries_refused,
        silent_zone_refused,
        validations_delayed,
    } = other;
    sum.outcomes.iter_mut().zip(outcomes).for_each(|(sum, count)| *sum += count);
    sum.queries += queries;
    sum.cached += cached;
    sum.asked += asked;
    sum.replies += replies;
    sum.rejected += rejected;
    sum.unanswered += unanswered;
    sum.evicted += evicted;
    sum.validations += validations;
    sum.prefetched += prefetched;
    sum.waiting_refused += waiting_refused;
    sum.upstream_queries_refused += upstream_queries_refused;
    sum.silent_zone_refused += silent_zone_refused;
    sum.validations_delayed += validations_delayed;
}

/// An upstream is as healthy as the thread finds it that finds it best; its latency is that of the thread that asked it most.
fn add_upstream(sum: &mut Row, other: &Row) {
    if other.latency.is_some() && (sum.latency.is_none() || other.replies > sum.replies) {
        sum.latency = other.latency;
    }
    sum.health = sum.health.min(other.health);
    sum.open += other.open;
    sum.asked += other.asked;
    sum.replies += other.replies;
    sum.failed += other.failed;
    sum.unanswered += other.unanswered;
    sum.unreachable += other.unreachable;
    sum.rejected += other.rejected;
    sum.truncated += other.truncated;
    sum.without_edns |= other.without_edns;
    sum.by_stream |= other.by_stream;
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_control::dns64::Outcome;
    use std::time::Duration;

    #[test]
    fn threads_are_added_up_and_an_upstream_is_healthy_if_one_of_them_finds_it_so() {
        let row = |health, replies, milliseconds| Row {
            health,
            replies,
            latency: Some(Duration::from_millis(milliseconds)),
            ..Row::default()
        };
        let mut counters = Counters::default();
        counters.count(Outcome::Synthesised);
        let one = Report {
            counters,
            entries: 3,
            upstreams: vec![row(Health::Down, 9, 20), row(Health::Down, 1, 7)],
            ..Report::default()
        };
        let other =
            Report { upstreams: vec![row(Health::Up, 1, 30), row(Health::Down, 2, 8)], ..one.clone() };
        let mut sum = Report::default();
        sum.add(&one);
        sum.add(&other);
        assert_eq!((sum.counters.of(Outcome::Synthesised), sum.entries, sum.down()), (2, 6, 1));
        let latencies: Vec<u128> =
            sum.upstreams.iter().filter_map(|row| Some(row.latency?.as_millis())).collect();
        assert_eq!(latencies, [20, 8]);
    }
}
