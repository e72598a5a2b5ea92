//! Packet formats: bytes to values and back. No allocation, no unsafe code, no policy.
//!
//! Each format has a file with the header drawn above its fields. Lengths are checked once; then no accessor can fail.
//! A header is a value: `write` and `octets` give its octets, `read` takes it from the start of some, and `split` also hands out what it
//! carries.
#![no_std]
#[cfg(test)]
extern crate std;

pub mod checksum;
mod encapsulation_limit;
mod endpoint;
mod header_error;
mod icmp;
pub mod icmpv4;
pub mod icmpv6;
mod ipv4;
mod ipv6;
mod prefix;
pub mod protocol;
pub mod tcp;
pub mod teredo;
mod udp;

pub use encapsulation_limit::{ENCAPSULATION_LIMIT_HEADER, EncapsulationLimit};
pub use endpoint::{Endpoint4, Endpoint6};
pub use header_error::HeaderError;
pub use icmp::{ICMP_HEADER, IcmpHeader};
pub use ipv4::{IPV4_HEADER, Ipv4Header};
pub use ipv6::{FRAGMENT_HEADER, FragmentHeader, IPV6_HEADER, IPV6_MIN_MTU, Ipv6Header};
pub use prefix::{Prefix4, Prefix6, PrefixError};
pub use tcp::{TCP_HEADER, TcpHeader};
pub use udp::{UDP_HEADER, UdpHeader};
