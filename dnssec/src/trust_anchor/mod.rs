//! Trust anchors of DNSSEC that keep themselves up to date (RFC 5011): a zone's keys sign new ones, which are trusted after 30 days.
//!
//! ```text
//!           NewKey           AddTime          RevBit           RemTime
//!   (none) ───────▶ Pending ───────▶ Valid ──────────▶ Revoked ───────▶ Removed
//!          ◀───────              KeyRem │ ▲ KeyPres      ▲
//!           KeyRem                      ▼ │              │ RevBit
//!                                     Missing ───────────┘
//! ```
//!
//! Time is the wall clock's, in Unix seconds: states outlive the process, as text ([`TrustAnchors::text`]) that the gateway keeps in a file.
//! What is queried ([`TrustAnchors::poll_lookup`]) is verified here, by the anchors alone; no other validation is relied on.
//!
//! A clock that is wrong does little harm: a signature counts only within its own time, so a clock that is ahead by more than some weeks verifies nothing,
//! and a key that seems to have been seen in the future begins to wait again.

mod anchors;
mod dnskey;
mod event;
mod observation;
mod point;
mod presentation;
mod root;
mod row;
mod state;
mod text;
mod timers;

#[cfg(test)]
mod tests;

pub use anchors::TrustAnchors;
pub use event::{Change, Event};
pub use presentation::{Fault, read};
pub use root::root;
pub use row::Row;
pub use text::Damaged;
