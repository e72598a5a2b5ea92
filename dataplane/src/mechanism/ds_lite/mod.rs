//! DS-Lite's AFTR (RFC 6333): a NAT44 for IPv4 hosts behind softwires of IPv4 in IPv6.
//!
//! ```text
//!     inside, IPv4 in IPv6                            outside, IPv4
//!     [B4 ─▶ AFTR] (X,x) ─▶ (Z,z)     ── outbound ──▶     (T,t) ─▶ (Z,z)
//!     [AFTR ─▶ B4] (X,x) ◀─ (Z,z)     ◀── inbound ──      (T,t) ◀─ (Z,z)
//!          binding: (B4, X,x) ⇄ (T,t)      session: binding and (Z,z)
//! ```
//!
//! Bindings and sessions are the NAT's ([`crate::nat::Engine`]), which knows a B4 by the number of its softwire. This module has the rules of DS-Lite: which
//! B4s are clients, which inner addresses may pass, and the headers on both sides. One action removes the outer header and translates the inner
//! one, or translates and encapsulates. A packet from inside to an address of the pool is translated in both ways: a hairpin.

mod address_rules;
mod config;
mod contract;
mod icmp_error;
mod time;
mod translator;

pub use config::{AFTR_ADDRESS, DsLiteConfig};
pub use translator::{DsLite, Probe};
