//! The data of OPTION_6RD.
//!
//! ```text
//!     0        1        2             18                    22
//!     ┌────────┬────────┬──────────── … ┬───────────────────┬── …
//!     │ IPv4   │ 6rd    │ 6rdPrefix     │ 6rdBRIPv4Address  │ further ones
//!     │ MaskLen│PrefixLen (16 octets)   │                   │
//!     └────────┴────────┴──────────── … ┴───────────────────┴── …
//! ```

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// Border relays that are kept. A customer edge sends to the first.
const MOST_RELAYS: usize = 8;
/// What hosts configure addresses from (RFC 4862 §5.5.3 d).
const SUBNET: u8 = 64;

/// A 6rd domain as a provider's DHCP server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedDomain {
    /// IPv4MaskLen.
    pub mask_length: u8,
    /// 6rdPrefix with 6rdPrefixLen.
    pub prefix: Prefix6,
    /// 6rdBRIPv4Address, one or more: hosts' addresses alone.
    pub relays: Vec<Ipv4Addr>,
}

/// Why a site cannot use a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Its prefix is not one of global unicast addresses.
    NotGlobal,
    /// What it delegates has no /64 for each of the site's links.
    TooLong,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotGlobal => "its prefix is not global",
            Self::TooLong => "the prefix that it delegates has no /64 for each LAN",
        })
    }
}

impl OfferedDomain {
    /// Reads the option's data; `None`: it breaks a rule of RFC 5969 §7.1.1.
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let (&[mask_length, prefix_length], rest) = data.split_first_chunk()?;
        let (prefix, relays) = rest.split_first_chunk::<16>()?;
        if mask_length > 32
            || prefix_length > 128
            || 32 - mask_length + prefix_length > 128
            || !relays.len().is_multiple_of(4)
        {
            return None;
        }
        // Bits after the prefix are to be ignored.
        let prefix = Prefix6::holding(Ipv6Addr::from(*prefix), prefix_length);
        let mut hosts = Vec::new();
        for octets in relays.chunks_exact(4) {
            let relay = Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]);
            if is_host(relay) && !hosts.contains(&relay) && hosts.len() < MOST_RELAYS {
                hosts.push(relay);
            }
        }
        (!hosts.is_empty()).then_some(Self { mask_length, prefix, relays: hosts })
    }

    /// Length of the prefix that each customer has.
    pub const fn delegated_length(&self) -> u8 {
        self.prefix.length() + 32 - self.mask_length
    }

    /// Whether a site with this number of links can live by it.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn suits(&self, links: usize) -> Result<(), Unusable> {
        if self.prefix.length() < 3 || self.prefix.address().to_bits() >> 125 != 1 {
            return Err(Unusable::NotGlobal);
        }
        let Some(bits) = SUBNET.checked_sub(self.delegated_length()) else { return Err(Unusable::TooLong) };
        let subnets = 1_usize.checked_shl(bits.into()).unwrap_or(usize::MAX);
        if links > subnets { Err(Unusable::TooLong) } else { Ok(()) }
    }
}

const fn is_host(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 5969 §7.1.1: 2001:db8::/32, IPv4MaskLen 8, 10.0.0.1.
    const EXAMPLE: [u8; 22] = [8, 32, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1];

    fn with(change: impl FnOnce(&mut Vec<u8>)) -> Option<OfferedDomain> {
        let mut data = EXAMPLE.to_vec();
        change(&mut data);
        OfferedDomain::parse(&data)
    }

    #[test]
    fn the_rfcs_example_is_read() {
        let domain = OfferedDomain::parse(&EXAMPLE).unwrap();
        assert_eq!((domain.mask_length, domain.prefix), (8, "2001:db8::/32".parse().unwrap()));
        assert_eq!(
            (domain.relays.clone(), domain.delegated_length()),
            (vec![Ipv4Addr::new(10, 0, 0, 1)], 56)
        );
        assert_eq!(domain.suits(256), Ok(()));
        assert_eq!(domain.suits(257), Err(Unusable::TooLong));
        // Bits after 6rdPrefixLen are ignored.
        assert_eq!(with(|data| data[17] = 1), Some(domain));
    }

    #[test]
    fn an_option_that_breaks_a_rule_is_none() {
        for length in 0..EXAMPLE.len() {
            assert_eq!(OfferedDomain::parse(&EXAMPLE[..length]), None, "{length}");
        }
        assert_eq!(with(|data| data.push(1)), None);
        assert_eq!(with(|data| data[0] = 33), None);
        assert_eq!(with(|data| data[1] = 129), None);
        assert_eq!(with(|data| (data[0], data[1]) = (0, 97)), None, "the sum is more than 128");
        assert_eq!(with(|data| data[18] = 224), None, "no border relay is a host");
    }

    #[test]
    fn a_domain_without_room_for_a_lan_or_that_is_not_global_does_not_suit() {
        let all = |data: &mut Vec<u8>| (data[0], data[1]) = (0, 33);
        assert_eq!(with(all).unwrap().suits(1), Err(Unusable::TooLong));
        assert_eq!(with(|data| data[0] = 0).unwrap().suits(1), Ok(()));
        assert_eq!(with(|data| data[0] = 0).unwrap().suits(2), Err(Unusable::TooLong));
        assert_eq!(with(|data| data[2] = 0xfd).unwrap().suits(1), Err(Unusable::NotGlobal));
        assert_eq!(with(|data| (data[0], data[1]) = (32, 0)).unwrap().suits(1), Err(Unusable::NotGlobal));
        // A shift by all bits and more.
        assert_eq!(
            with(|data| (data[0], data[1]) = (32, 3)).unwrap().suits(usize::MAX),
            Err(Unusable::TooLong)
        );
    }

    #[test]
    fn further_border_relays_are_kept_once_each() {
        let domain = with(|data| data.extend([10, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0, 0])).unwrap();
        assert_eq!(domain.relays, [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)]);
        let many = with(|data| (2..40).for_each(|last| data.extend([10, 0, 0, last]))).unwrap();
        assert_eq!(many.relays.len(), MOST_RELAYS);
    }
}
