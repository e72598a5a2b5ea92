//! What is counted about streams: one closed list, from which metrics and documents come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the list: variant, name, help.
macro_rules! events {
    ($($variant:ident = $name:literal, $help:literal;)+) => {
        /// Something that is counted about streams.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Event {
            $(#[doc = $help] $variant,)+
        }

        impl Event {
            /// All, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)+ }
            }
        }
    };
}

events! {
    Accepted = "accepted", "Connections of clients that were let in.";
    Refused = "refused", "Connections refused: their address may not ask.";
    Crowded = "crowded", "Connections refused: there were as many as there may be.";
    Greedy = "greedy", "Connections refused: their address or /64 had as many as it may have.";
    NoTls = "no_tls", "Connections on which TLS was not agreed on, or not in time.";
    Idle = "idle", "Connections closed since nothing came.";
    Cut = "cut", "Connections cut: too long or not a query, no room for it, or the client took no answers.";
    HttpFault = "http_fault", "Requests answered with an HTTP error.";
    UpstreamOpened = "upstream_opened", "Connections to upstreams that were made.";
    UpstreamFailed = "upstream_failed", "Connections to upstreams that could not be made.";
    UpstreamClosed = "upstream_closed", "Connections to upstreams that ended while questions waited.";
}

/// How often each came.
#[derive(Clone, Debug, Default)]
pub struct StreamCounters(Arc<[AtomicU64; Event::ALL.len()]>);

impl StreamCounters {
    /// Counts one.
    pub fn count(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often it came.
    #[must_use]
    pub fn of(&self, event: Event) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }
}
