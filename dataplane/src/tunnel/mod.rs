//! What tunnels are composed of: IPv6 in IPv4 (RFC 4213 §3), and either family in IPv6 or IPv4 (RFC 2473, RFC 2003).

pub mod address;
pub mod decision;
pub mod ecn;
pub mod encapsulation_limit;
pub mod ends;
pub mod four_in_six;
pub mod identification;
pub mod ip_in_ip_error;
pub mod neighbour_discovery;
pub mod outer_nat;
pub mod pair;
pub mod path_mtu;
mod policy;
pub mod relayed_error;

pub use ecn::Ecn;
pub use policy::{ENCAPSULATION_LIMIT, OuterFragments, TunnelMtu, TunnelPolicy};
