//! Why a neighbour discovery message is discarded (RFC 4861 §6.1, §7.1): silently, and counted.

use core::fmt;
use sixway_wire::HeaderError;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Malformed {
    /// The packet ends before its headers, or before the length that its header says.
    Truncated,
    /// Not an IPv6 packet whose only header is ICMPv6's; what comes in fragments is refused too (RFC 6980 §5).
    NotIcmpv6,
    /// Not one of the four messages: another ICMPv6 type.
    OtherType,
    /// The hop limit is not 255: the packet may have been forwarded.
    HopLimit,
    /// The ICMPv6 checksum is wrong.
    Checksum,
    /// The code is not 0.
    Code,
    /// The message is shorter than its fixed part.
    TooShort,
    /// An option of length zero.
    ZeroLengthOption,
    /// An option that extends beyond the end of the message.
    OptionBeyondEnd,
    /// A multicast source address.
    MulticastSource,
    /// A router advertisement from an address that is not link-local.
    NotLinkLocal,
    /// A source link-layer address option from the unspecified address.
    LinkLayerOfNobody,
    /// A neighbour solicitation from the unspecified address to an address that is not a solicited-node address.
    NotSolicitedNode,
    /// A multicast target address.
    MulticastTarget,
    /// A neighbour advertisement to a multicast address with the Solicited flag.
    SolicitedMulticast,
}

impl From<HeaderError> for Malformed {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::WrongVersion => Self::NotIcmpv6,
            HeaderError::Truncated | HeaderError::LengthTooSmall | HeaderError::OptionBeyondEnd => {
                Self::Truncated
            }
        }
    }
}

impl Malformed {
    /// Every reason.
    pub const ALL: [Self; 15] = [
        Self::Truncated,
        Self::NotIcmpv6,
        Self::OtherType,
        Self::HopLimit,
        Self::Checksum,
        Self::Code,
        Self::TooShort,
        Self::ZeroLengthOption,
        Self::OptionBeyondEnd,
        Self::MulticastSource,
        Self::NotLinkLocal,
        Self::LinkLayerOfNobody,
        Self::NotSolicitedNode,
        Self::MulticastTarget,
        Self::SolicitedMulticast,
    ];

    /// Its meaning, in a line.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Truncated => "the packet ends before its headers or its own length",
            Self::NotIcmpv6 => "no IPv6 packet with an ICMPv6 message right behind its header",
            Self::OtherType => "an ICMPv6 type other than 133 to 136",
            Self::HopLimit => "the hop limit is not 255, so the packet may have been forwarded",
            Self::Checksum => "the ICMPv6 checksum is wrong",
            Self::Code => "the ICMPv6 code is not 0",
            Self::TooShort => "the message is shorter than its fixed part",
            Self::ZeroLengthOption => "an option of length zero",
            Self::OptionBeyondEnd => "an option that extends beyond the end of the message",
            Self::MulticastSource => "a multicast source address",
            Self::NotLinkLocal => "a router advertisement whose source is not link-local",
            Self::LinkLayerOfNobody => "a source link-layer address option from the unspecified address",
            Self::NotSolicitedNode => {
                "a solicitation from the unspecified address to an address that is not a solicited-node address"
            }
            Self::MulticastTarget => "a multicast target address",
            Self::SolicitedMulticast => "a multicast neighbour advertisement with the Solicited flag",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.help())
    }
}

impl core::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_its_own_index_and_says_something() {
        for (index, reason) in Malformed::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
            assert!(!reason.help().is_empty());
        }
    }
}
