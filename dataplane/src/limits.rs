//! Size limits of sent packets: the MTU of the link on either side.

/// MTUs of the next link on either side, in octets of IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// MTU towards IPv4; at least 68 (RFC 791 §3.2).
    pub mtu4: u16,
    /// MTU towards IPv6; at least 1,280 (RFC 8200 §5).
    pub mtu6: u16,
}

impl Limits {
    /// The largest MSS, in octets, that fits an IPv4 path: IP and TCP headers without options (RFC 9293 §3.7.1).
    #[must_use]
    pub const fn mss4(self) -> u16 {
        self.mtu4.saturating_sub(40)
    }

    /// The largest MSS, in octets, that fits a translated path: both sides' IP and TCP headers without options (RFC 9293 §3.7.1).
    #[must_use]
    pub const fn translated_mss(self) -> u16 {
        let (v4, v6) = (self.mss4(), self.mtu6.saturating_sub(60));
        if v4 < v6 { v4 } else { v6 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { mtu4: 1_500, mtu6: 1_500 }
    }
}
