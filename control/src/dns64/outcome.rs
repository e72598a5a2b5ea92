//! What becomes of a client's query: one closed list, from which counters, metrics and documents come.

/// Makes the list: variant, name, help.
macro_rules! outcomes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $help:literal;)+) => {
        /// What became of a client's query. Each query has exactly one.
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

            /// What it means.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)+ }
            }
        }
    };
}

outcomes! {
    Synthesised = "synthesised", "AAAA records were made of A records";
    PassedOn = "passed_on", "records as the upstream gave them";
    NoData = "no_data", "the name has no such records, and none were made";
    NameError = "name_error", "the name does not exist";
    Reverse = "reverse", "a PTR query for a translated address was answered";
    Local = "local", "answered from what the gateway knows by itself: ipv4only.arpa, minimal ANY";
    Stale = "stale", "answered with what had expired, since no upstream answered";
    UpstreamFailure = "upstream_failure", "SERVFAIL: no upstream gave a usable answer in time";
    Bogus = "bogus", "SERVFAIL: the answer did not validate";
    Overload = "overload", "SERVFAIL: too many queries were waiting";
    Refused = "refused", "REFUSED: the client may not ask, or not this";
    RateLimited = "rate_limited", "REFUSED: the client asked too often";
    Malformed = "malformed", "FORMERR, NOTIMP or BADVERS: the query could not be understood";
    Ignored = "ignored", "no answer: it was no query";
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
    /// Questions put to upstreams.
    pub asked: u64,
    /// Replies of upstreams that were believed.
    pub replies: u64,
    /// Replies that were not: of another question, or malformed.
    pub disbelieved: u64,
    /// Questions without a reply in time.
    pub unanswered: u64,
    /// Entries that made way for others before their end.
    pub evicted: u64,
    /// Validations begun.
    pub validations: u64,
    /// Questions asked ahead of an entry's end.
    pub prefetched: u64,
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
