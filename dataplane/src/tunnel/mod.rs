//! What tunnels of IPv6 in IPv4 are composed of (RFC 4213 §3).

pub mod address;
pub mod decision;
pub mod ecn;
pub mod identification;
pub mod neighbour_discovery;
pub mod path_mtu;
mod policy;
pub mod relayed_error;

pub use policy::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
