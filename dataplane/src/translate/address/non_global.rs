//! IPv4 addresses that mean nothing outside some network: the special-purpose registry of RFC 6890 §2.2.2, and multicast.
//!
//! The well-known prefix of RFC 6052 must not represent one of these (§3.1). 192.88.99.0/24 is global by the registry.

use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// One block of the registry and what it is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonGlobal {
    /// The addresses.
    pub block: Prefix4,
    /// Their purpose, in the registry's words.
    pub purpose: &'static str,
}

/// The blocks, in ascending order and without overlaps.
pub const NON_GLOBAL: [NonGlobal; 14] = [
    row([0, 0, 0, 0], 8, "this host on this network"),
    row([10, 0, 0, 0], 8, "private use"),
    row([100, 64, 0, 0], 10, "shared address space"),
    row([127, 0, 0, 0], 8, "loopback"),
    row([169, 254, 0, 0], 16, "link local"),
    row([172, 16, 0, 0], 12, "private use"),
    row([192, 0, 0, 0], 24, "IETF protocol assignments"),
    row([192, 0, 2, 0], 24, "documentation"),
    row([192, 168, 0, 0], 16, "private use"),
    row([198, 18, 0, 0], 15, "benchmarking"),
    row([198, 51, 100, 0], 24, "documentation"),
    row([203, 0, 113, 0], 24, "documentation"),
    row([224, 0, 0, 0], 4, "multicast"),
    row([240, 0, 0, 0], 4, "reserved, and limited broadcast"),
];

const fn row(address: [u8; 4], length: u8, purpose: &'static str) -> NonGlobal {
    let [a, b, c, d] = address;
    NonGlobal { block: Prefix4::holding(Ipv4Addr::new(a, b, c, d), length), purpose }
}

/// For each first octet the rows that can hold such an address: most octets have none, no octet has more than three.
const ROWS_BY_FIRST_OCTET: [(u8, u8); 256] = {
    let mut spans = [(0, 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let whole = Prefix4::holding(Ipv4Addr::new(octet as u8, 0, 0, 0), 8);
        let mut index = 0;
        while index < NON_GLOBAL.len() {
            if NON_GLOBAL[index].block.overlaps(whole) {
                let (from, to) = spans[octet];
                spans[octet] = (if from == to { index as u8 } else { from }, index as u8 + 1);
            }
            index += 1;
        }
        octet += 1;
    }
    spans
};

/// The block that holds the address; `None` for a global one.
#[inline]
pub fn non_global(address: Ipv4Addr) -> Option<&'static NonGlobal> {
    let (from, to) = ROWS_BY_FIRST_OCTET[usize::from(address.octets()[0])];
    NON_GLOBAL[usize::from(from)..usize::from(to)].iter().find(|row| row.block.contains(address))
}

/// The first block that shares an address with the prefix; `None` if all of it is global.
pub fn non_global_part(prefix: Prefix4) -> Option<&'static NonGlobal> {
    NON_GLOBAL.iter().find(|row| row.block.overlaps(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slowly(address: Ipv4Addr) -> Option<&'static NonGlobal> {
        NON_GLOBAL.iter().find(|row| row.block.contains(address))
    }

    #[test]
    fn both_ends_of_every_block_are_non_global_and_their_neighbours_follow_the_list() {
        for row in &NON_GLOBAL {
            for address in [row.block.address(), row.block.last()] {
                assert_eq!(non_global(address), Some(row));
                for step in [1, u32::MAX] {
                    let neighbour = Ipv4Addr::from_bits(address.to_bits().wrapping_add(step));
                    assert_eq!(non_global(neighbour), slowly(neighbour), "{neighbour}");
                }
            }
        }
    }

    #[test]
    fn public_neighbours_of_private_blocks_are_global() {
        for text in [
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.88.99.1",
            "198.17.0.1",
            "8.8.8.8",
            "203.0.112.1",
        ] {
            assert_eq!(non_global(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn a_prefix_is_non_global_if_any_of_it_is() {
        assert_eq!(
            non_global_part("192.0.0.0/16".parse().unwrap()).unwrap().purpose,
            "IETF protocol assignments"
        );
        assert_eq!(non_global_part("192.168.1.0/24".parse().unwrap()).unwrap().purpose, "private use");
        assert_eq!(non_global_part("8.8.8.0/24".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn the_table_by_first_octet_answers_as_the_list_does(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(non_global(address), slowly(address));
        }
    }
}
