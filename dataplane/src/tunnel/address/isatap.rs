//! The interface identifiers of ISATAP (RFC 5214 §6.1):
//!
//! ```text
//!     |0              1|1              3|3                              6|
//!     |0              5|6              1|2                              3|
//!     +----------------+----------------+--------------------------------+
//!     |000000ug00000000|0101111011111110|          IPv4 address          |
//! ```
//!
//! u says that the IPv4 address is globally unique. Senders disagree about which are, so both forms are read.

use super::embedded;
use crate::translate::address::non_global::non_global;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// The first half of an identifier whose IPv4 address need not be unique.
const LOCAL: u64 = 0x0000_5efe;
/// The first half of an identifier with a globally unique IPv4 address.
const UNIVERSAL: u64 = 0x0200_5efe;

/// The prefix of link-local addresses with an interface identifier (RFC 4291 §2.5.6).
pub const LINK_LOCAL: Prefix6 = Prefix6::holding(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 64);

/// The IPv4 address in an ISATAP interface identifier; `None` for every other identifier.
#[inline(always)]
pub const fn locator_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let identifier = address.to_bits() as u64;
    if identifier >> 32 & !(UNIVERSAL ^ LOCAL) == LOCAL {
        Some(Ipv4Addr::from_bits(identifier as u32))
    } else {
        None
    }
}

/// The address under a prefix of 64 bits that a node forms (RFC 5214 §6.2); u is set for an address that is known to be
/// globally unique (§6.1), which those of documentation and benchmarks are not.
pub fn address(prefix: Prefix6, locator: Ipv4Addr) -> Ipv6Addr {
    let is_unique = embedded::is_public(locator) && non_global(locator).is_none();
    let half = if is_unique { UNIVERSAL } else { LOCAL };
    let identifier = half << 32 | u64::from(locator.to_bits());
    Ipv6Addr::from_bits(prefix.address().to_bits() & !u128::from(u64::MAX) | u128::from(identifier))
}

/// The link-local address that a node forms.
pub fn link_local(locator: Ipv4Addr) -> Ipv6Addr {
    address(LINK_LOCAL, locator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_identifier_are_read() {
        for text in ["fe80::5efe:10.1.2.3", "fe80::200:5efe:10.1.2.3", "2001:db8:1:2:200:5efe:a01:203"] {
            assert_eq!(locator_of(text.parse().unwrap()), Some(Ipv4Addr::new(10, 1, 2, 3)), "{text}");
        }
    }

    #[test]
    fn other_identifiers_have_no_locator() {
        for text in [
            "fe80::1",
            "fe80::100:5efe:a01:203",
            "fe80::300:5efe:a01:203",
            "fe80::5eff:a01:203",
            "fe80::1:0:5efe:1",
        ] {
            assert_eq!(locator_of(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn a_node_forms_its_address_from_its_locator_and_marks_a_public_one() {
        let private = link_local(Ipv4Addr::new(10, 1, 2, 3));
        assert_eq!(private, "fe80::5efe:10.1.2.3".parse::<Ipv6Addr>().unwrap());
        for documentation in [Ipv4Addr::new(192, 0, 2, 8), Ipv4Addr::new(198, 18, 0, 1)] {
            assert_eq!(link_local(documentation).segments()[4..6], [0, 0x5efe], "{documentation}");
        }
        let public = address("2001:db8:1:2::/64".parse().unwrap(), Ipv4Addr::new(9, 1, 2, 3));
        assert_eq!(public, "2001:db8:1:2:200:5efe:901:203".parse::<Ipv6Addr>().unwrap());
    }
}
