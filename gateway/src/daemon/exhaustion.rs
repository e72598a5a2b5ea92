//! Exhausted pools, tables and limits, detected by the resulting drops. Each is a warning in the log with a remedy, at most once a minute,
//! and a problem in `sixway show`.

use crate::show::count;
use crate::view::{ProblemKind, ProblemRow};
use sixway_dataplane::{Counters, DropReason};
use std::time::{Duration, Instant};

/// Between two warnings about the same.
const PAUSE: Duration = Duration::from_secs(60);

/// Resources that can be exhausted.
struct Bound {
    reason: DropReason,
    kind: ProblemKind,
    what: &'static str,
    cure: &'static str,
}

const BOUNDS: [Bound; 9] = [
    Bound {
        reason: DropReason::PortPoolEmpty,
        kind: ProblemKind::PortPoolEmpty,
        what: "a pool has no free ports: new bindings are refused",
        cure: "add addresses to the pool, or set max_bindings_per_subscriber; sixway show pools shows the pool, sixway show subscribers the subscribers with most ports",
    },
    Bound {
        reason: DropReason::SessionTableFull,
        kind: ProblemKind::SessionTableFull,
        what: "a session table is full: new sessions are refused",
        cure: "raise max_sessions; sixway show subscribers --by sessions lists their users",
    },
    Bound {
        reason: DropReason::BindingTableFull,
        kind: ProblemKind::BindingTableFull,
        what: "a table of bindings is full: new bindings are refused",
        cure: "raise max_bindings; sixway show subscribers lists their users",
    },
    Bound {
        reason: DropReason::OutsideSessionsFull,
        kind: ProblemKind::OutsideSessionsFull,
        what: "packets from outside have created three quarters of the sessions: more from outside are refused",
        cure: "raise max_sessions, or find the senders: sixway show sessions",
    },
    Bound {
        reason: DropReason::DynamicPoolEmpty,
        kind: ProblemKind::DynamicPoolEmpty,
        what: "a dynamic pool has no free address: further hosts are refused",
        cure: "enlarge siit.dynamic_pool",
    },
    Bound {
        reason: DropReason::FragmentMemory,
        kind: ProblemKind::FragmentMemory,
        what: "the memory for fragments is exhausted: further fragments are dropped",
        cure: "raise fragments.memory",
    },
    Bound {
        reason: DropReason::FragmentShare,
        kind: ProblemKind::FragmentShare,
        what: "a source, a subscriber, or a destination of packets from outside has its share of the memory for fragments: its oldest or its new fragments are dropped",
        cure: "find the sender or receiver (tcpdump -ni sixway0 'ip[6:2] & 0x3fff != 0'); raise fragments.memory and fragments.packets_per_source if the use is legitimate",
    },
    Bound {
        reason: DropReason::SubscriberLimit,
        kind: ProblemKind::SubscriberLimit,
        what: "a subscriber has reached a limit: its new bindings or sessions are refused",
        cure: "sixway show subscribers --by refused names it; raise the limit if the use is legitimate",
    },
    Bound {
        reason: DropReason::SubscriberShare,
        kind: ProblemKind::SubscriberShare,
        what: "a subscriber has most of a session table, or of an address's ports: the rest is reserved for others",
        cure: "sixway show subscribers --by refused names it; limit it (max_sessions_per_subscriber, max_bindings_per_subscriber), or raise max_sessions or add addresses",
    },
];

/// The bounds that were reached within the last minute. `last_grown`: how long ago drops of a reason last grew.
pub(super) fn problems(last_grown: impl Fn(DropReason) -> Option<Duration>) -> Vec<ProblemRow> {
    let reached = BOUNDS.iter().filter(|bound| last_grown(bound.reason).is_some_and(|ago| ago < PAUSE));
    reached
        .map(|bound| match bound.reason {
            // The trouble of one, which protects the others.
            DropReason::SubscriberLimit | DropReason::SubscriberShare | DropReason::FragmentShare => {
                ProblemRow::warning(bound.kind, bound.what, bound.cure)
            }
            _ => ProblemRow::error(bound.kind, bound.what, bound.cure),
        })
        .collect()
}

/// A bound that was reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exhausted {
    pub(super) reason: DropReason,
    /// Packets dropped for it since the last report.
    pub(super) packets: u64,
    /// The same in words, with the cure.
    pub(super) text: String,
}

/// What was reported of each limit.
#[derive(Debug, Default)]
pub(super) struct ExhaustionLog {
    bounds: [Told; BOUNDS.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// Drops that the log has.
    dropped: u64,
    at: Option<Instant>,
}

impl ExhaustionLog {
    /// The warnings that are due: of each bound at most one in a minute, with the drops since the last one.
    pub(super) fn due(&mut self, counters: &Counters, now: Instant) -> Vec<Exhausted> {
        let mut due = Vec::new();
        for (told, bound) in self.bounds.iter_mut().zip(&BOUNDS) {
            let dropped = counters.dropped[bound.reason as usize];
            let is_new = dropped > told.dropped;
            if is_new && told.at.is_none_or(|at| now.duration_since(at) >= PAUSE) {
                let packets = dropped - told.dropped;
                let counted = match packets {
                    1 => "1 packet".to_owned(),
                    more => format!("{} packets", count(more)),
                };
                let text = format!("{} ({counted}, {}): {}", bound.what, bound.reason.name(), bound.cure);
                due.push(Exhausted { reason: bound.reason, packets, text });
                *told = Told { dropped, at: Some(now) };
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(due: Vec<Exhausted>) -> Vec<String> {
        due.into_iter().map(|one| one.text).collect()
    }

    fn dropped(reason: DropReason, number: u64) -> Counters {
        let mut counters = Counters::default();
        counters.dropped[reason as usize] = number;
        counters
    }

    #[test]
    fn exhaustion_is_told_once_in_a_minute_with_the_number_since() {
        let (mut log, start) = (ExhaustionLog::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(texts(log.due(&Counters::default(), start)), [""; 0]);
        let first = texts(log.due(&dropped(DropReason::PortPoolEmpty, 1), start));
        assert!(
            first.len() == 1 && first[0].contains("(1 packet, PortPoolEmpty): add addresses"),
            "{first:?}"
        );
        for second in 1..60 {
            assert_eq!(
                texts(log.due(&dropped(DropReason::PortPoolEmpty, 1 + 100 * second), at(second))),
                [""; 0]
            );
        }
        let again = log.due(&dropped(DropReason::PortPoolEmpty, 6_001), at(60));
        assert_eq!((again[0].reason, again[0].packets), (DropReason::PortPoolEmpty, 6_000));
        let again = texts(again);
        assert!(again[0].contains("(6,000 packets, "), "{again:?}");
        assert_eq!(
            texts(log.due(&dropped(DropReason::PortPoolEmpty, 6_001), at(600))),
            [""; 0],
            "it is over"
        );
        assert_eq!(texts(log.due(&dropped(DropReason::NoBinding, 9), at(700))), [""; 0], "not a bound");
    }

    #[test]
    fn each_bound_is_told_for_itself() {
        let (mut log, now) = (ExhaustionLog::default(), Instant::now());
        let mut counters = Counters::default();
        BOUNDS.iter().for_each(|bound| counters.dropped[bound.reason as usize] = 2);
        assert_eq!(log.due(&counters, now).len(), BOUNDS.len());
    }

    #[test]
    fn a_bound_is_a_problem_for_a_minute() {
        let ago = |seconds| {
            move |reason| (reason == DropReason::SessionTableFull).then_some(Duration::from_secs(seconds))
        };
        let found = problems(ago(59));
        assert_eq!((found.len(), &*found[0].kind), (1, "session_table_full"));
        assert_eq!(problems(ago(60)), []);
    }
}
