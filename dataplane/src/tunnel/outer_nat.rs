//! A NAT44 of this gateway that translates what a tunnel sends (RFC 3022): the outer header is written with the outside address, and the two are
//! one hop.

use crate::verdict::{MechanismId, Next};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// The NAT44 of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterNat {
    /// The NAT44.
    pub nat: MechanismId,
    /// Outer destinations that are inside, or that inside hosts reach with their own addresses.
    pub except: Vec<Prefix4>,
}

impl OuterNat {
    /// Whether it translates tunnel packets to this destination.
    pub fn covers(&self, destination: Ipv4Addr) -> bool {
        !self.except.iter().any(|prefix| prefix.contains(destination))
    }

    /// Where a tunnel packet to this destination goes. A whole decision from a function of its own would go through memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn next(&self, destination: Ipv4Addr) -> Next {
        if self.covers(destination) { Next::To(self.nat) } else { Next::Leave }
    }
}

/// A tunnel packet of this gateway on its way to a NAT44.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterPacket {
    /// Outer source: the local end.
    pub source: Ipv4Addr,
    /// Outer destination.
    pub destination: Ipv4Addr,
    /// The protocol number in the outer header.
    pub protocol: u8,
    /// Packets on the wire, and their octets, the outer header included.
    pub counts: (u32, u32),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn what_goes_to_an_inside_host_is_not_translated() {
        let nat = MechanismId { kind: Kind::Nat44, index: 0 };
        let outer = OuterNat { nat, except: vec!["10.0.0.0/8".parse().unwrap()] };
        let next = |destination: [u8; 4]| outer.next(destination.into());
        assert_eq!(next([10, 255, 255, 255]), Next::Leave);
        assert_eq!(next([11, 0, 0, 0]), Next::To(nat));
    }
}
