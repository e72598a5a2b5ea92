//! What tunnels of IPv6 in IPv4 are composed of (RFC 4213 §3).

pub mod address;
pub mod decision;
pub mod neighbour_discovery;
mod policy;

pub use policy::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
