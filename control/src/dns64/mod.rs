//! DNS64 (RFC 6147): a forwarder that synthesises AAAA records from A records, as a state machine.
//!
//! A [`Resolver`] is driven with the time, with clients' queries and with upstreams' replies, and returns what to send:
//!
//! ```text
//!   client ── handle_query ──▶ ┌──────────┐ ── poll_transmit ──▶ upstream
//!          ◀─ the answer ───── │ Resolver │ ◀─ handle_reply ────
//!          ◀─ poll_answer ──── │ (cache)  │ ── poll_cancel ────▶
//!                              └──────────┘
//! ```
//!
//! - [`Resolver::handle_query`] with every query: an answer from the cache is returned immediately, without allocating;
//! - then, and when the time of [`Resolver::poll_timeout`] has come: [`Resolver::poll_transmit`], [`Resolver::poll_cancel`] and [`Resolver::poll_answer`], each until it returns `None`.
//!
//! **The cache** holds upstreams' answers. Synthesis runs for each answer, from the entries for AAAA and A, and so
//! always follows the client, the name and the rules.

pub mod answer;
mod ask;
pub mod cache;
pub mod compose;
mod cookie;
mod hosts;
pub mod key;
mod leased;
mod local;
mod mapping;
pub mod name;
mod outcome;
mod policy;
pub mod query;
mod rate_limit;
mod resolver;
mod reverse;
mod settings;
mod shares;
mod special_address;
pub mod upstream;

pub use ask::{Asker, Exchange, Failure, Heard, QueryTransport, Security, Transmit, Transport};
pub use cookie::CookieSecret;
pub use hosts::{Hosts, HostsFault, MOST_HOSTS};
pub use leased::{LeasedAddress, LeasedNames};
pub use mapping::{MOST_SERVERS, NameMappings};
pub use outcome::{Counters, Outcome};
pub use resolver::{KeptAnswers, Resolver};
pub use settings::{
    Access, Anchor, AnchorKey, CheckingDisabled, Designated, DesignatedTransport, Dnssec, DnssecOk, Family,
    Limits, Reverse, Rule, Settings, SpecialNames, Stale, Synthesis, SynthesisedTtl, Upstream,
    ValidatingClients, Wire,
};
pub use shares::{NoShare, Payer, Place, Shares};
