//! Packet formats: bytes to values and back. No allocation, no unsafe code, no policy.
//!
//! Each format has a file with the header drawn above its fields. Lengths are checked once; then no accessor can fail.
#![no_std]
#[cfg(test)]
extern crate std;

pub mod checksum;
mod endpoint;
mod prefix;
pub mod protocol;

pub use endpoint::{Endpoint4, Endpoint6};
pub use prefix::{Prefix4, Prefix6, PrefixError};
