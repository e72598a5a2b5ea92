//! A neighbour that packets are sent to.

use std::net::IpAddr;
use std::time::Duration;

/// A neighbour that the programs send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedHop {
    /// The device of the kernel's route.
    pub ifindex: u32,
    /// Its address.
    pub address: IpAddr,
    /// The Ethernet address that is sent to.
    pub mac: [u8; 6],
    /// How long ago a packet was sent.
    pub idle: Duration,
}
