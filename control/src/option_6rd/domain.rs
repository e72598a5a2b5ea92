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
use sixway_wire::{Prefix4, Prefix6};

/// Border relays that are kept. A customer edge sends to the first.
const MOST_RELAYS: usize = 8;
/// What hosts configure addresses from (RFC 4862 §5.5.3 d).
const SUBNET: u8 = 64;

/// A provider with a shorter prefix than this would have more addresses than any registry assigns, and would be the way to much that is not its own.
const SHORTEST: u8 = 16;
/// Within 2000::/3, prefixes that no provider is assigned (IANA's IPv6 Special-Purpose Address Registry, RFC 6890 §2.2.3): protocols with Teredo and
/// ORCHIDs among them (RFC 2928), documentation (RFC 3849, RFC 9637), 6to4 (RFC 3056), AS112 (RFC 7534).
const SPECIAL: [Prefix6; 5] = [
    Prefix6::holding(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    Prefix6::holding(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    Prefix6::holding(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    Prefix6::holding(Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
];
/// IPv4 addresses that are no router's beyond a link: this network, loopback, link-local, protocols' own (RFC 6890), multicast and reserved ones.
const UNUSABLE: [Prefix4; 5] = [
    Prefix4::holding(Ipv4Addr::new(0, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(127, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(169, 254, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(192, 0, 0, 0), 24),
    Prefix4::holding(Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// A 6rd domain as a provider's DHCP server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedDomain {
    /// IPv4MaskLen.
    pub mask_length: u8,
    /// 6rdPrefix with 6rdPrefixLen.
    pub prefix: Prefix6,
    /// 6rdBRIPv4Address: those that may be a router's, perhaps none.
    pub relays: Vec<Ipv4Addr>,
}

/// Why a site cannot use a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// None of its border relays' addresses may be a router's.
    NoRelay,
    /// Its prefix is not one of global unicast addresses.
    NotGlobal,
    /// Its prefix is shorter than any provider's.
    TooShort,
    /// Its prefix overlaps one that no provider has.
    Special(Prefix6),
    /// What it delegates has no /64 for each of the site's links.
    TooLong,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRelay => f.write_str("no address of a border relay in it is a router's"),
            Self::NotGlobal => f.write_str("its prefix is not global"),
            Self::TooShort => write!(f, "its prefix is shorter than a /{SHORTEST}, which no provider has"),
            Self::Special(prefix) => {
                write!(f, "its prefix overlaps {prefix}, which has a special purpose (RFC 6890)")
            }
            Self::TooLong => f.write_str("the prefix that it delegates has no /64 for each LAN"),
        }
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
            || relays.is_empty()
            || !relays.len().is_multiple_of(4)
        {
            return None;
        }
        // Bits after the prefix are to be ignored.
        let prefix = Prefix6::holding(Ipv6Addr::from(*prefix), prefix_length);
        let mut hosts = Vec::new();
        for octets in relays.chunks_exact(4) {
            let relay = Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]);
            if is_usable(relay) && !hosts.contains(&relay) && hosts.len() < MOST_RELAYS {
                hosts.push(relay);
            }
        }
        Some(Self { mask_length, prefix, relays: hosts })
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
        if self.relays.is_empty() {
            return Err(Unusable::NoRelay);
        }
        if self.prefix.address().to_bits() >> 125 != 1 {
            return Err(Unusable::NotGlobal);
        }
        if self.prefix.length() < SHORTEST {
            return Err(Unusable::TooShort);
        }
        if let Some(special) = SPECIAL.iter().find(|special| special.overlaps(self.prefix)) {
            return Err(Unusable::Special(*special));
        }
        let Some(bits) = SUBNET.checked_sub(self.delegated_length()) else { return Err(Unusable::TooLong) };
        let subnets = 1_usize.checked_shl(bits.into()).unwrap_or(usize::MAX);
        if links > subnets { Err(Unusable::TooLong) } else { Ok(()) }
    }
}

fn is_usable(address: Ipv4Addr) -> bool {
    !UNUSABLE.iter().any(|prefix| prefix.contains(address))
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
        // Its prefix is for documentation (RFC 3849).
        assert_eq!(domain.suits(256), Err(Unusable::Special(SPECIAL[1])));
        let of_a_provider = with(|data| data[5] = 0xb9).unwrap();
        assert_eq!(of_a_provider.suits(256), Ok(()));
        assert_eq!(of_a_provider.suits(257), Err(Unusable::TooLong));
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
        assert_eq!(with(|data| data.truncate(18)), None, "there is no border relay");
    }

    #[test]
    fn a_domain_without_room_for_a_lan_or_that_is_not_global_does_not_suit() {
        let of = |mask_length, prefix: &str| OfferedDomain {
            mask_length,
            prefix: prefix.parse().unwrap(),
            relays: vec![Ipv4Addr::new(10, 0, 0, 1)],
        };
        for (domain, links, expected) in [
            (of(0, "2001:db9::/33"), 1, Err(Unusable::TooLong)),
            (of(0, "2001:db9::/32"), 1, Ok(())),
            (of(0, "2001:db9::/32"), 2, Err(Unusable::TooLong)),
            (of(32, "2001:db9::/65"), 1, Err(Unusable::TooLong)),
            (of(0, "fd00::/32"), 1, Err(Unusable::NotGlobal)),
            (of(0, "64:ff9b::/32"), 1, Err(Unusable::NotGlobal)),
            (of(32, "::/0"), 1, Err(Unusable::NotGlobal)),
            (of(32, "2000::/3"), 1, Err(Unusable::TooShort)),
            (of(32, "2a00::/15"), 1, Err(Unusable::TooShort)),
            // A shift by 48 bits.
            (of(32, "2a00::/16"), usize::MAX, Err(Unusable::TooLong)),
            (of(32, "2a00::/16"), 1 << 40, Ok(())),
        ] {
            assert_eq!(domain.suits(links), expected, "{domain:?}");
        }
    }

    /// A domain that holds such a prefix, and one that lies within it.
    #[test]
    fn a_domain_that_overlaps_a_prefix_with_a_special_purpose_is_refused() {
        for (prefix, special) in [
            ("2001::/16", "2001::/23"),
            ("2001:0:4136::/48", "2001::/23"),
            ("2001:db8::/40", "2001:db8::/32"),
            ("2002::/24", "2002::/16"),
            ("2620:4f::/32", "2620:4f:8000::/48"),
            ("3fff::/16", "3fff::/20"),
        ] {
            let domain = OfferedDomain {
                mask_length: 32,
                prefix: prefix.parse().unwrap(),
                relays: vec![Ipv4Addr::new(10, 0, 0, 1)],
            };
            assert_eq!(domain.suits(1), Err(Unusable::Special(special.parse().unwrap())), "{prefix}");
        }
    }

    #[test]
    fn a_domain_without_a_usable_border_relay_is_refused() {
        for relay in
            [[0, 0, 0, 0], [127, 0, 0, 1], [169, 254, 1, 1], [192, 0, 0, 2], [224, 0, 0, 1], [255; 4]]
        {
            let domain = with(|data| data[18..].copy_from_slice(&relay)).unwrap();
            assert_eq!((domain.suits(1), domain.relays), (Err(Unusable::NoRelay), Vec::new()), "{relay:?}");
        }
    }

    #[test]
    fn further_border_relays_are_kept_once_each() {
        let domain = with(|data| data.extend([10, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0, 0])).unwrap();
        assert_eq!(domain.relays, [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)]);
        let many = with(|data| (2..40).for_each(|last| data.extend([10, 0, 0, last]))).unwrap();
        assert_eq!(many.relays.len(), MOST_RELAYS);
    }
}
