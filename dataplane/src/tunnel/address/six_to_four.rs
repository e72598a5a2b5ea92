//! The addresses of 6to4 (RFC 3056 §2):
//!
//! ```text
//!     |  16  |    32     |   16   |          64 bits               |
//!     | 2002 |  V4ADDR   | subnet |     interface identifier       |
//! ```

use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// RFC 3056 §2: the prefix of all 6to4 addresses, 2002::/16.
pub const PREFIX: Prefix6 = Prefix6::holding(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// RFC 3068 §2.4: the address by which any relay was to be reached, deprecated by RFC 7526 §4.
pub const RELAY_ANYCAST: Ipv4Addr = Ipv4Addr::new(192, 88, 99, 1);

/// RFC 3068 §2.3: the prefix of [`RELAY_ANYCAST`], from which only relays send.
pub const RELAY_ANYCAST_PREFIX: Prefix4 = Prefix4::holding(RELAY_ANYCAST, 24);

/// V4ADDR of a 6to4 address; `None` for every other address.
#[inline(always)]
pub const fn site_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    if bits >> 112 == 0x2002 { Some(Ipv4Addr::from_bits((bits >> 80) as u32)) } else { None }
}

/// The prefix of a site, 2002:V4ADDR::/48.
pub const fn prefix_of(site: Ipv4Addr) -> Prefix6 {
    let bits = 0x2002 << 112 | (site.to_bits() as u128) << 80;
    Prefix6::holding(Ipv6Addr::from_bits(bits), 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_the_prefixes_of_the_rfcs_examples() {
        for (site, prefix) in [
            ("192.1.2.3", "2002:c001:203::/48"),
            ("9.254.253.252", "2002:9fe:fdfc::/48"),
            ("192.88.99.1", "2002:c058:6301::/48"),
            ("192.0.2.8", "2002:c000:208::/48"),
            ("80.64.79.254", "2002:5040:4ffe::/48"),
        ] {
            let (site, prefix): (Ipv4Addr, Prefix6) = (site.parse().unwrap(), prefix.parse().unwrap());
            assert_eq!(prefix_of(site), prefix);
            assert_eq!(site_of(prefix.address()), Some(site));
            assert_eq!(site_of(prefix.last()), Some(site));
        }
    }

    #[test]
    fn other_addresses_belong_to_no_site() {
        for address in ["2001:db8::1", "2003::1", "::2002", "fe80::1", "2000:2002::1"] {
            assert_eq!(site_of(address.parse().unwrap()), None, "{address}");
        }
    }
}
