//! Why a message is discarded.

use core::fmt;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is shorter than its header or than an option says.
    Truncated,
    /// A DHCPv6 message of another type.
    OtherType(u8),
    /// There is not exactly one DHCPv4 Message option (RFC 7341 §9).
    NoMessage,
    /// More relay agents than RFC 8415 allows.
    TooManyRelays,
    /// Not DHCP: the magic cookie is missing (RFC 2131 §3).
    NoCookie,
    /// `op` or the length of the hardware address is invalid.
    BadHeader,
    /// The DHCP message type is missing or unknown.
    NoType,
    /// An option has an invalid length.
    BadOption(u8),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("truncated"),
            Self::OtherType(kind) => write!(f, "DHCPv6 message type {kind}"),
            Self::NoMessage => f.write_str("not exactly one DHCPv4 Message option"),
            Self::TooManyRelays => f.write_str("too many relay agents"),
            Self::NoCookie => f.write_str("no DHCP magic cookie"),
            Self::BadHeader => f.write_str("invalid op or hardware address length"),
            Self::NoType => f.write_str("no known DHCP message type"),
            Self::BadOption(code) => write!(f, "option {code} has an invalid length"),
        }
    }
}

impl std::error::Error for Malformed {}
