//! The configuration of protocols without ports.

use super::protocol::PortlessProtocol;
use crate::nat::{Inside, Outside};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

/// The least lifetime of a session without ports: that of UDP (RFC 4787 REQ-5). No RFC has one for these protocols.
pub const PORTLESS_MIN: Duration = Duration::from_secs(2 * 60);
/// The default, that of UDP.
pub const PORTLESS_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// All packets of a protocol to an outside address go to one inside host, and what this host sends has that address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortlessBinding {
    /// The protocol.
    pub protocol: PortlessProtocol,
    /// The host inside.
    pub inside: Inside<Ipv4Addr>,
    /// The address of the pool that represents it.
    pub outside: Outside<Ipv4Addr>,
}

/// How protocols without ports are translated.
#[derive(Clone, Debug)]
pub struct PortlessConfig {
    /// Bindings that the administrator configures.
    pub bindings: Vec<PortlessBinding>,
    /// Maximum number of sessions of a worker; 0: only static bindings.
    pub sessions: u32,
    /// Maximum number of sessions of a subscriber; 0: no limit.
    pub sessions_per_subscriber: u32,
    /// Bits of a subscriber's prefix.
    pub subscriber_bits: u8,
    /// How long a session lives without packets; at least [`PORTLESS_MIN`].
    pub timeout: Duration,
}

impl Default for PortlessConfig {
    /// 16,384 sessions, 64 of a subscriber.
    fn default() -> Self {
        Self {
            bindings: Vec::new(),
            sessions: 1 << 14,
            sessions_per_subscriber: 64,
            subscriber_bits: 32,
            timeout: PORTLESS_DEFAULT,
        }
    }
}
