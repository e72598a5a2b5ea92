//! NAT44, the traditional NAT (RFC 3022, RFC 4787, RFC 5382, RFC 5508): IPv4 hosts reach others behind a pool of IPv4 addresses.
//!
//! ```text
//!     inside, IPv4                            outside, IPv4
//!     (X,x) ─▶ (Z,z)      ── outbound ──▶     (T,t) ─▶ (Z,z)
//!     (X,x) ◀─ (Z,z)      ◀── inbound ──      (T,t) ◀─ (Z,z)
//!          binding: (X,x) ⇄ (T,t)      session: binding and (Z,z)
//! ```
//!
//! Bindings and sessions are the NAT's ([`crate::nat::Engine`]). This module has the rest: who is inside, which addresses may pass,
//! and the new addresses. A packet whose source is inside goes out; any other comes in. To an address of the pool, a packet
//! from inside goes out and comes in again: a hairpin.

mod address_rules;
mod config;
mod contract;
mod icmp_error;
mod own_tunnels;
mod ownership;
mod portless;
mod portless_packets;
mod time;
mod translator;

pub use config::Nat44Config;
pub use portless::{PORTLESS_DEFAULT, PORTLESS_MIN, PortlessBinding, PortlessConfig, PortlessProtocol};
pub use translator::{Nat44, Probe};
