//! The counters of TCP, TLS and HTTPS: one closed list, from which metrics and documents come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the list: variant, name, help.
macro_rules! events {
    ($($variant:ident = $name:literal, $help:literal;)+) => {
        /// An event that is counted.
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

            /// Its meaning.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)+ }
            }
        }
    };
}

events! {
    Accepted = "accepted", "Client connections accepted.";
    Refused = "refused", "Connections refused: the address is not allowed to query.";
    ConnectionLimit = "connection_limit", "Connections refused: all are in use, and none was idle.";
    ClientLimit = "client_limit", "Connections refused: the client has its share.";
    MadeWay = "made_way", "Idle connections closed for connections of other clients.";
    HandshakeLimit = "handshake_limit", "Connections closed before a TLS handshake: the client, or all clients together, had too many in the last 5 s.";
    TlsFailed = "tls_failed", "Connections with a failed TLS handshake, or one that timed out.";
    Idle = "idle", "Connections closed because they were idle.";
    Aborted = "aborted", "Connections aborted: a message that is too long or not a query, no room for it, or a client that does not read answers.";
    HttpError = "http_errors", "Requests answered with an HTTP error.";
    UpstreamOpened = "upstream_opened", "Connections to upstreams established.";
    UpstreamFailed = "upstream_failed", "Connections to upstreams that failed.";
    UpstreamClosed = "upstream_closed", "Connections to upstreams that closed while queries were waiting.";
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
