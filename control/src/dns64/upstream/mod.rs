//! Questions to upstreams: which upstream to query, when to query again, which reply to accept.
//!
//! [`Upstreams`] has no sockets and no clock. Every question that is [asked](Upstreams::ask) gets exactly one [outcome](Upstreams::poll_outcome),
//! within [`DEADLINE`], unless it is [abandoned](Upstreams::abandon):
//!
//! ```text
//!   ask ──▶ ┌───────────┐ ── poll_transmit ──▶ upstream      each try is an exchange of its own: another ID, another port
//!           │ Upstreams │ ◀─ handle_reply ────
//!   ◀────── │           │ ── poll_cancel ────▶               every exchange that was transmitted ends with a poll_cancel,
//!   poll_   └───────────┘                                    or with a failure that handle_reply gets
//!   outcome
//! ```
//!
//! After each call of anything, and when the time of [`Upstreams::poll_timeout`] has come (then [`Upstreams::handle_timeout`] first), each
//! `poll_…` is to be called until it returns `None`.

mod abilities;
mod in_flight;
mod latency;
mod liveness;
mod numbered;
mod peer;
mod probes;
mod query_message;
mod question;
mod reconfigure;
mod replies;
mod reply;
mod row;
mod timers;
mod tries;
mod upstreams;
mod zone_health;
mod zones;

pub use in_flight::{DEADLINE, MAX_TRIES};
pub use question::{Exhausted, Number, Question, Reply};
pub(super) use reconfigure::Moves;
pub use row::{Event, Health, Row};
pub use upstreams::{MAX_QUESTIONS, Upstreams};
