//! Inside endpoints as text. The engine gives an inside host of a NAT44 by its IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2); people read and
//! write the IPv4 address.

use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};
use std::net::{Ipv6Addr, SocketAddr};

/// Bits of the prefix of IPv4-mapped addresses, ::ffff:0:0/96.
const MAPPED_BITS: u8 = 96;

/// `[ADDRESS]:PORT`, or `ADDRESS:PORT` of IPv4.
pub(crate) fn text(endpoint: Endpoint6) -> String {
    match endpoint.address.to_ipv4_mapped() {
        Some(address) => Endpoint4::new(address, endpoint.port).to_string(),
        None => endpoint.to_string(),
    }
}

/// A prefix of this length, of either family; without its length if it has one address. `bits` of an IPv4 prefix are those of IPv4.
pub(crate) fn prefix_text(address: Ipv6Addr, bits: u8) -> String {
    let (address, bits, all) = match address.to_ipv4_mapped() {
        Some(address) => (address.to_string(), if bits > 32 { bits - MAPPED_BITS } else { bits }, 32),
        None => (address.to_string(), bits, 128),
    };
    if bits == all { address } else { format!("{address}/{bits}") }
}

/// The endpoint of such a text.
pub(crate) fn endpoint(text: &str) -> Option<Endpoint6> {
    Some(match text.parse().ok()? {
        SocketAddr::V6(socket) => Endpoint6::new(*socket.ip(), socket.port()),
        SocketAddr::V4(socket) => Endpoint6::new(socket.ip().to_ipv6_mapped(), socket.port()),
    })
}

/// A prefix of either family, or the prefix and the port of an endpoint.
pub(crate) fn side(text: &str) -> Option<(Prefix6, Option<u16>)> {
    if let Ok(prefix) = text.parse::<Prefix6>() {
        return Some((prefix, None));
    }
    if let Ok(prefix) = text.parse::<Prefix4>() {
        let address = prefix.address().to_ipv6_mapped();
        return Some((Prefix6::holding(address, MAPPED_BITS + prefix.length()), None));
    }
    let endpoint = endpoint(text)?;
    Some((Prefix6::holding(endpoint.address, 128), Some(endpoint.port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_both_families_are_read_as_they_are_written() {
        for written in ["[2001:db8::1]:80", "10.0.0.1:80"] {
            assert_eq!(text(endpoint(written).unwrap()), written);
        }
        assert_eq!(endpoint("10.0.0.1:80").unwrap().address.to_string(), "::ffff:10.0.0.1");
        assert_eq!(endpoint("10.0.0.1"), None);
    }

    #[test]
    fn prefixes_of_both_families_are_written_as_people_write_them() {
        let text = |address: &str, bits| prefix_text(address.parse().unwrap(), bits);
        assert_eq!(text("2001:db8::", 56), "2001:db8::/56");
        assert_eq!(text("2001:db8::1", 128), "2001:db8::1");
        assert_eq!(
            (text("::ffff:10.0.0.1", 32), text("::ffff:10.0.0.1", 128)),
            ("10.0.0.1".into(), "10.0.0.1".into())
        );
        assert_eq!(
            (text("::ffff:10.0.0.0", 24), text("::ffff:10.0.0.0", 104)),
            ("10.0.0.0/24".into(), "10.0.0.0/8".into())
        );
    }

    #[test]
    fn prefixes_of_both_families_select_inside_hosts() {
        let parts = |text| side(text).map(|(prefix, port)| (prefix.to_string(), port));
        assert_eq!(parts("10.0.0.0/8"), Some(("::ffff:10.0.0.0/104".into(), None)));
        assert_eq!(parts("10.0.0.1"), Some(("::ffff:10.0.0.1/128".into(), None)));
        assert_eq!(parts("10.0.0.1:80"), Some(("::ffff:10.0.0.1/128".into(), Some(80))));
        assert_eq!(parts("2001:db8::/64"), Some(("2001:db8::/64".into(), None)));
        assert_eq!(parts("[2001:db8::1]:80"), Some(("2001:db8::1/128".into(), Some(80))));
        assert_eq!(parts("host"), None);
    }
}
