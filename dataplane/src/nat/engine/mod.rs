//! The NAT itself: the session and the binding of a packet, for any kind of inside endpoint.
//!
//! ```text
//!     inside                                 outside, IPv4
//!     I ─▶ (Z,z)       ── outbound ──▶       (T,t) ─▶ (Z,z)
//!     I ◀─ (Z,z)       ◀── inbound ──        (T,t) ◀─ (Z,z)
//!          binding: I ⇄ (T,t)       session: binding and (Z,z)
//! ```
//!
//! A mechanism reads the five-tuple, says which addresses it admits, and turns the decision into an edit.
//! NAT64, NAT44 and DS-Lite each have an engine of their own kind, chosen at compile time by its [`InsideKey`].
//!
//! A packet costs one lookup. A batch goes through [`Engine::look_inside`] or [`Engine::look_outside`] and through [`Engine::warm`]
//! first, so that its cache misses overlap, and then through [`Engine::outbound`] or [`Engine::inbound`].

mod adoption;
mod blocks;
mod contract;
mod explicit;
mod icmp_error;
mod inbound;
mod lookups;
mod operator;
mod outbound;
mod probe;
mod state;

#[cfg(test)]
mod tests;

pub(crate) use adoption::Entry;
pub use blocks::Blocks;
pub use contract::{Arriving, Mechanism};
pub use probe::{Ports, Probe, Side};
pub use state::Engine;
