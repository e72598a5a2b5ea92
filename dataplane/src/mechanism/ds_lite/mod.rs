//! DS-Lite's AFTR (RFC 6333): IPv4 hosts reach others behind a pool of IPv4 addresses, over softwires of IPv4 in IPv6.
//!
//! ```text
//!     inside, IPv4 in IPv6                            outside, IPv4
//!     [B4 ─▶ AFTR] (X,x) ─▶ (Z,z)     ── outbound ──▶     (T,t) ─▶ (Z,z)
//!     [AFTR ─▶ B4] (X,x) ◀─ (Z,z)     ◀── inbound ──      (T,t) ◀─ (Z,z)
//!          binding: (B4, X,x) ⇄ (T,t)      session: binding and (Z,z)
//! ```
//!
//! Bindings and sessions are the NAT's ([`crate::nat::Engine`]), which knows a B4 by the number of its softwire. What is here is DS-Lite's own: who
//! is a client, which inner addresses may pass, and the headers on both sides. The outer header goes and the inner one is renumbered in one
//! action; so it is the other way. To an address of the pool, a packet from inside goes out and comes in again: a hairpin.

mod address_rules;
mod config;
mod contract;
mod icmp_error;
mod time;
mod translator;

pub use config::{AFTR_ADDRESS, DsLiteConfig};
pub use translator::{DsLite, Probe};
