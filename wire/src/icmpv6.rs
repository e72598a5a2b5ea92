//! Types of ICMPv6 (RFC 4443, RFC 4861 §4); the header is [`crate::IcmpHeader`].

/// Destination Unreachable (RFC 4443 §3.1).
pub const DESTINATION_UNREACHABLE: u8 = 1;
/// Packet Too Big (RFC 4443 §3.2), with the MTU in the last 32 bits.
pub const PACKET_TOO_BIG: u8 = 2;
/// Time Exceeded (RFC 4443 §3.3).
pub const TIME_EXCEEDED: u8 = 3;
/// Parameter Problem (RFC 4443 §3.4).
pub const PARAMETER_PROBLEM: u8 = 4;
/// Echo Request (RFC 4443 §4.1).
pub const ECHO_REQUEST: u8 = 128;
/// Echo Reply (RFC 4443 §4.2).
pub const ECHO_REPLY: u8 = 129;
/// Router Solicitation (RFC 4861 §4.1).
pub const ROUTER_SOLICITATION: u8 = 133;
/// Router Advertisement (RFC 4861 §4.2).
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Neighbor Solicitation (RFC 4861 §4.3).
pub const NEIGHBOUR_SOLICITATION: u8 = 135;
/// Neighbor Advertisement (RFC 4861 §4.4).
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Redirect (RFC 4861 §4.5): not an error, but no error is sent about it (RFC 4443 §2.4 e).
pub const REDIRECT: u8 = 137;

/// Whether a message of this type is an error, which quotes a packet (RFC 4443 §2.1).
#[inline]
pub const fn is_error(kind: u8) -> bool {
    kind < 128
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
    fn the_errors_have_the_lower_half_of_the_types() {
        assert!((0..=u8::MAX).filter(|kind| is_error(*kind)).eq(0..=127));
    }
}
