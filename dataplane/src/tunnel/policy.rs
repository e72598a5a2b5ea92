//! The choices that the tunnels' RFCs leave to the operator, one set for each configured tunnel.

use super::ecn::{ECN, Ecn};
use crate::translate::HeaderByte;
use sixway_wire::IPV6_MIN_MTU;

/// The largest packet that the tunnel carries whole (RFC 4213 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelMtu {
    /// This number of octets of the inner packet; the outer one has DF clear (§3.2.1).
    Static(u16),
    /// What the path carries, as far as its ICMP errors tell, less the outer header (§3.2.2).
    Dynamic,
}

/// The handling of an outer packet that is larger than the next link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OuterFragments {
    /// It is fragmented.
    #[default]
    Allowed,
    /// It is refused; the sender gets an ICMP error with the MTU.
    Never,
}

/// Options of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelPolicy {
    /// TTL of the outer packets; [`HeaderByte::Copy`]: the inner hop limit (RFC 4213 §3.3 says an administrator's choice).
    pub ttl: HeaderByte,
    /// DSCP of the outer packets, in the upper six bits (RFC 2983 §4.1).
    pub traffic_class: HeaderByte,
    /// Whether what comes out gets the DSCP of the outer packet (RFC 2983 §3.1, the uniform model); else it keeps its own.
    pub copies_dscp_out: bool,
    /// ECN inbound.
    pub ecn: Ecn,
    /// The largest inner packet.
    pub mtu: TunnelMtu,
    /// Outer packets that are too large for the next link.
    pub outer_fragments: OuterFragments,
    /// Whether the MSS option of TCP SYNs is lowered to what fits the tunnel.
    pub clamp_mss: bool,
    /// How many more tunnels a packet in an outer IPv6 header may enter, if it does not say so itself (RFC 2473 §6.6); `None`: any number.
    pub encapsulation_limit: Option<u8>,
}

/// RFC 2473 §6.6 (4.1.1): the default of the Tunnel Encapsulation Limit.
pub const ENCAPSULATION_LIMIT: u8 = 4;

impl TunnelPolicy {
    /// The Traffic Class or TOS of the outer header for an inner one: the DSCP by this policy, the ECN field by RFC 6040.
    #[inline(always)]
    pub const fn outer_traffic_class(&self, inner: u8) -> u8 {
        self.traffic_class.of(inner) & !ECN | self.ecn.outer(inner)
    }

    /// Whether what ICMP errors tell of a path concerns the tunnel: not where its packets may be fragmented wherever they have to be.
    pub const fn learns(&self) -> bool {
        match (self.mtu, self.outer_fragments) {
            (TunnelMtu::Static(_), OuterFragments::Allowed) => false,
            (TunnelMtu::Static(_), OuterFragments::Never) | (TunnelMtu::Dynamic, _) => true,
        }
    }
}

impl Default for TunnelPolicy {
    fn default() -> Self {
        Self {
            ttl: HeaderByte::Set(64),
            traffic_class: HeaderByte::Copy,
            copies_dscp_out: false,
            ecn: Ecn::default(),
            mtu: TunnelMtu::Static(IPV6_MIN_MTU as u16),
            outer_fragments: OuterFragments::default(),
            clamp_mss: true,
            encapsulation_limit: Some(ENCAPSULATION_LIMIT),
        }
    }
}
