//! Stateful NAT64 (RFC 6146): IPv6 hosts reach IPv4 ones behind a pool of IPv4 addresses.
//!
//! ```text
//!     inside, IPv6                                        outside, IPv4
//!     (X',x) ─▶ (Pref64::Z,z)   ── outbound ──▶    (T,t) ─▶ (Z,z)
//!     (X',x) ◀─ (Pref64::Z,z)   ◀── inbound ──     (T,t) ◀─ (Z,z)
//!          binding: (X',x) ⇄ (T,t)     session: binding and (Z,z)
//! ```
//!
//! Bindings and sessions are the NAT's ([`crate::nat::Engine`]). What is here is NAT64's own: the prefix, which addresses may pass, and
//! the translation of what the NAT decides.
//!
//! A packet costs one lookup. A batch goes through [`Nat64::probe`] and [`Nat64::warm`] first, so that its cache misses
//! overlap, and then through [`Nat64::decide`].

mod address_rules;
mod config;
mod contract;
mod icmp_error;
mod ownership;
mod time;
mod translator;

pub use config::Nat64Config;
pub use ownership::worker_of;
pub use translator::{Nat64, Probe};

#[cfg(test)]
mod tests;
