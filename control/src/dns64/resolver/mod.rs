//! The resolver: from a client's query to its answer.
//!
//! ```text
//!   query ─▶ look ─────────▶ answer
//!             │ ▲  what is needed is known
//!     needs   ▼ │
//!            lookup, validation        each under way once
//! ```
//!
//! A [look](responder) decides from what is known at the moment. If something is missing the query waits, and is examined again when a
//! lookup or a validation it waits for has ended, or when it times out: for fresh data, for AAAA records, or altogether.

mod as_reply;
mod evaluation;
mod failures;
mod forwarder;
mod info_code;
mod kept;
mod leased;
mod lookups;
mod mapping;
mod ptr;
mod reconfigure;
mod refusals;
mod responder;
mod synthesis;
mod upstream_lookups;
mod validating;
mod validation_queue;
mod validations;
mod waiting;

pub use forwarder::Resolver;
pub use kept::KeptAnswers;
