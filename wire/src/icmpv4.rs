//! Types and codes of ICMP for IPv4 (RFC 792); the header is [`crate::IcmpHeader`].

/// Echo Reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination Unreachable.
pub const DESTINATION_UNREACHABLE: u8 = 3;
/// Source Quench, deprecated (RFC 6633).
pub const SOURCE_QUENCH: u8 = 4;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo.
pub const ECHO_REQUEST: u8 = 8;
/// Time Exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Parameter Problem.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Timestamp.
pub const TIMESTAMP: u8 = 13;
/// Timestamp Reply.
pub const TIMESTAMP_REPLY: u8 = 14;

/// Destination Unreachable's code for "fragmentation needed and DF set"; with the next hop's MTU in the last 16 bits (RFC 1191 §4).
pub const FRAGMENTATION_NEEDED: u8 = 4;
/// Time Exceeded's code for "time to live exceeded in transit".
pub const EXCEEDED_IN_TRANSIT: u8 = 0;

/// Whether a message of this type is an error, which quotes a packet (RFC 1122 §3.2.2; redirects among them).
#[inline]
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, DESTINATION_UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// Whether a message of this type is a query or its answer, with an identifier in the fifth and sixth octet: echo and timestamp. The other
/// queries are deprecated (RFC 6918 §3).
#[inline]
pub const fn has_identifier(kind: u8) -> bool {
    is_echo(kind) || matches!(kind, TIMESTAMP | TIMESTAMP_REPLY)
}

/// Whether a message of this type is an echo request or reply, which has an identifier.
#[inline]
pub const fn is_echo(kind: u8) -> bool {
    matches!(kind, ECHO_REQUEST | ECHO_REPLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_are_those_of_rfc_1122() {
        assert!((0..=u8::MAX).filter(|kind| is_error(*kind)).eq([3, 4, 5, 11, 12]));
    }
}
