//! Size limits of sent packets: the MTU of the link on either side.

/// MTUs of the next link on either side, in octets of IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// MTU towards IPv4; at least 68 (RFC 791 §3.2).
    pub mtu4: u16,
    /// MTU towards IPv6; at least 1,280 (RFC 8200 §5).
    pub mtu6: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self { mtu4: 1_500, mtu6: 1_500 }
    }
}
