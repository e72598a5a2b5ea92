//! IPv4 addresses that Teredo may send to (RFC 4380 §5.2.4).

use crate::Prefix4;
use core::net::Ipv4Addr;

/// What is not global unicast: RFC 4380 §5.2.4, and in addition blocks that were reserved later (RFC 6890) for uses inside one network.
const NOT_GLOBAL: [Prefix4; 9] = [
    Prefix4::holding(Ipv4Addr::new(0, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10),
    Prefix4::holding(Ipv4Addr::new(127, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(169, 254, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(172, 16, 0, 0), 12),
    Prefix4::holding(Ipv4Addr::new(192, 88, 99, 0), 24),
    Prefix4::holding(Ipv4Addr::new(192, 168, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Whether an address has the format of a global unicast address: to any other, a datagram could be an attack on a local network. Directed
/// broadcast addresses of attached networks are the caller's to refuse.
#[inline]
pub fn is_global_unicast(address: Ipv4Addr) -> bool {
    !NOT_GLOBAL.iter().any(|prefix| prefix.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_of_rfc_4380_is_refused_to_its_borders() {
        let refused = [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.0.0",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.88.99.0",
            "192.88.99.255",
            "192.168.0.0",
            "192.168.255.255",
            "224.0.0.0",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
        ];
        for text in refused {
            assert!(!is_global_unicast(text.parse().unwrap()), "{text}");
        }
        let accepted = [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "223.255.255.255",
        ];
        for text in accepted {
            assert!(is_global_unicast(text.parse().unwrap()), "{text}");
        }
    }
}
