//! The outcomes of a client's query: one closed list, from which counters, metrics and documents are made.

/// Makes the list: variant, name, help.
macro_rules! outcomes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $help:literal;)+) => {
/// The outcome of a client's query. Each query has exactly one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Outcome {
            $(#[doc = $help] $variant,)+
        }

        impl Outcome {
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

outcomes! {
    Synthesised = "synthesised", "AAAA records were synthesised from A records";
    Mapped = "mapped", "A records of NAT46's pool were given for an IPv6-only name";
    Leased = "leased", "the A record of a host of four_over_six.names was given";
    Forwarded = "forwarded", "the upstream's records, unchanged";
    NoData = "no_data", "the name has no such records, and none were synthesised";
    NameError = "name_error", "the name does not exist";
    Reverse = "reverse", "a PTR query for a translated address was answered";
    Local = "local", "answered locally, without an upstream: ipv4only.arpa, special names, hosts, minimal ANY";
    Stale = "stale", "answered with expired records, because no upstream answered";
    UpstreamFailure = "upstream_failure", "SERVFAIL: no upstream gave a usable answer in time";
    Bogus = "bogus", "SERVFAIL: the answer did not validate";
    Unmapped = "unmapped", "SERVFAIL: NAT46 had no mapping left for the client, or a host of four_over_six.names no address";
    Truncated = "truncated", "an empty truncated answer: the client repeats its query over TCP, since a NAT46 mapping or a lease needs an address that is not forged";
    Overload = "overload", "SERVFAIL or BADCOOKIE: too many queries were pending, in total or from this client";
    Refused = "refused", "REFUSED: the client or the query is not allowed";
    RateLimited = "rate_limited", "the client exceeded its rate limit: REFUSED; where its address may be forged, BADCOOKIE or TC";
    Malformed = "malformed", "FORMERR, NOTIMP or BADVERS: the query could not be understood";
    Ignored = "ignored", "no answer: not a query";
}

/// How often each outcome came, and what else is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that arrived from clients.
    pub queries: u64,
    /// By outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Answered without waiting for an upstream.
    pub cached: u64,
    /// Queries sent to upstreams.
    pub asked: u64,
    /// Replies of upstreams that were accepted.
    pub replies: u64,
    /// Replies that were rejected: for another question, or malformed.
    pub rejected: u64,
    /// Queries without a reply in time.
    pub unanswered: u64,
    /// Entries evicted before they expired.
    pub evicted: u64,
    /// Validations started.
    pub validations: u64,
    /// Entries refreshed before they expired.
    pub prefetched: u64,
    /// Queries for which there was no share of those that may wait.
    pub waiting_refused: u64,
    /// Lookups for which there was no share of the questions to upstreams, or no room to send them.
    pub upstream_queries_refused: u64,
    /// Lookups in zones that do not answer, of clients that have many of them.
    pub silent_zone_refused: u64,
    /// Validations that had to wait for a share.
    pub validations_delayed: u64,
}

impl Counters {
    /// Counts one outcome.
    pub fn count(&mut self, outcome: Outcome) {
        self.outcomes[outcome as usize] += 1;
    }

    /// How often it came.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }
}
