//! The state of the Teredo server, for other threads.

use crate::config::TeredoServer;
use crate::view::{CountedRow, TeredoServerRow};
use sixway_control::teredo_server::{Counts, Refusal};
use sixway_wire::teredo::TEREDO_PORT;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

/// Seconds that are summed up as the last minute.
const MINUTE: usize = 60;

/// Further counters, in the order of [`TeredoServerView::note`].
const LOST: [(&str, &str); 3] = [
    ("overflowed", "Datagrams lost because the socket buffer was full."),
    ("unsent", "Datagrams that the kernel did not send."),
    ("native_unsent", "Packets to native hosts that the kernel did not send, for example without a route."),
];

/// The state of the Teredo server.
#[derive(Debug)]
pub(super) struct TeredoServerView {
    exposes: String,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    counts: Counts,
    lost: [u64; 3],
    /// Addresses without a socket, and the kernel's error if this host has them.
    waits: Vec<(Ipv4Addr, Option<String>)>,
    /// The counts at each of the last seconds, the oldest first.
    past: VecDeque<Counts>,
}

impl TeredoServerView {
    pub(super) fn new(section: &TeredoServer) -> Self {
        Self { exposes: section.exposes(), seen: Mutex::default() }
    }

    /// Takes note of what was counted: once a second.
    pub(super) fn note(&self, counts: &Counts, lost: [u64; 3], waits: Vec<(Ipv4Addr, Option<String>)>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.past.len() > MINUTE {
            seen.past.pop_front();
        }
        seen.past.push_back(*counts);
        (seen.counts, seen.lost, seen.waits) = (*counts, lost, waits);
    }

    /// The row of the admin API.
    pub(super) fn row(&self) -> TeredoServerRow {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let counted =
            |name: &str, help: &str, value| CountedRow { name: name.into(), help: help.into(), value };
        let now = &seen.counts;
        let then = seen.past.front().copied().unwrap_or_default();
        let absent = seen.waits.iter().filter(|(_, trouble)| trouble.is_none());
        let failed = seen.waits.iter().filter_map(|(address, trouble)| {
            Some(format!("UDP {address}:{TEREDO_PORT}: {}", trouble.as_ref()?))
        });
        let refused = |counts: &Counts| counts.refused().map(|(_, count)| count).sum::<u64>();
        TeredoServerRow {
            exposes: self.exposes.clone(),
            waits: absent.map(|(address, _)| address.to_string()).collect(),
            troubles: failed.collect(),
            received_last_minute: now.received() - then.received(),
            refused_last_minute: refused(now) - refused(&then),
            over_total_rate_last_minute: now.of(Refusal::TotalRate) - then.of(Refusal::TotalRate),
            handled: vec![
                counted("advertised", "Solicitations that were answered.", now.advertised),
                counted("forwarded", "Bubbles and echo messages sent to clients.", now.forwarded),
                counted("native", "Echo messages sent to native hosts.", now.native),
            ],
            refused: now
                .refused()
                .map(|(reason, count)| counted(reason.name(), reason.help(), count))
                .collect(),
            counters: std::iter::once(counted(
                "authentic",
                "Solicitations that were answered to clients with a secret.",
                now.authentic,
            ))
            .chain(LOST.iter().zip(seen.lost).map(|((name, help), count)| counted(name, help, count)))
            .collect(),
        }
    }
}
