//! ICMP messages that are not errors: of them only echo has a counterpart (RFC 7915 §4.2, §5.2).

use crate::drop_reason::DropReason;

/// ICMPv4 Echo Reply and Echo (RFC 792).
pub(super) const ECHO_REPLY4: u8 = 0;
pub(super) const ECHO4: u8 = 8;
/// ICMPv6 Echo Request and Echo Reply (RFC 4443 §4).
pub(super) const ECHO6: u8 = 128;
pub(super) const ECHO_REPLY6: u8 = 129;

/// Type and code of the ICMPv6 message that an ICMPv4 query becomes (RFC 7915 §4.2): an echo request or reply, its code kept.
/// Every other type is dropped with [`DropReason::IcmpUntranslatable`]; errors are not translated here.
pub const fn query_v4_to_v6(kind: u8, code: u8) -> Result<(u8, u8), DropReason> {
    match kind {
        ECHO4 => Ok((ECHO6, code)),
        ECHO_REPLY4 => Ok((ECHO_REPLY6, code)),
        _ => Err(DropReason::IcmpUntranslatable),
    }
}

/// Type and code of the ICMPv4 message that an ICMPv6 informational message becomes (RFC 7915 §5.2): as [`query_v4_to_v6`].
pub const fn query_v6_to_v4(kind: u8, code: u8) -> Result<(u8, u8), DropReason> {
    match kind {
        ECHO6 => Ok((ECHO4, code)),
        ECHO_REPLY6 => Ok((ECHO_REPLY4, code)),
        _ => Err(DropReason::IcmpUntranslatable),
    }
}
