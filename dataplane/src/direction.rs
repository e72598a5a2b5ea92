//! The direction of a packet through the gateway.

/// The direction in which a packet passes a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// To the IPv4 network, to the outside of a NAT, or into a tunnel.
    Out = 0,
    /// To the IPv6 hosts, to the inside of a NAT, or out of a tunnel.
    In = 1,
}
