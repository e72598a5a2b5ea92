//! DNSSEC validation (RFC 4033 to 4035, 5155, 6840, 9276): is an answer what its zone's owner signed?
//!
//! ```text
//!   begin ─────────▶ ┌───────────┐ ── poll_lookup ──▶ DS and DNSKEY records, from the cache or an upstream
//!                    │ Validator │ ◀─ handle_lookup ──
//!   poll_verdict ◀── └───────────┘
//! ```
//!
//! The path from a trust anchor to a name is followed downwards, label by label: each DS record, or the proof that there is none, is
//! verified with the keys of the zone that has been reached, and nothing else is trusted. What was found on the way is kept for other
//! names, with a bound. All work that an answer can cause is bounded (`limits`): an answer that wants more is bogus.

mod anchors;
mod answer_validation;
mod cuts;
mod delegation;
mod denial;
mod digest;
mod fault;
mod limits;
mod links;
mod lookups;
mod signature;
#[cfg(test)]
mod tests;
mod validations;
mod walk;
mod zone;

pub use limits::MOST_LINKS;
pub use validations::Validator;
