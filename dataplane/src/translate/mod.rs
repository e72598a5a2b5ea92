//! IP/ICMP translation (RFC 7915): headers, ICMP messages, the packets that ICMP errors quote, and addresses.

pub mod address;
pub mod header;
pub mod icmp;
mod policy;

pub use policy::{HeaderByte, Policy, UdpZeroChecksum};
