//! The addresses of a 6rd domain (RFC 5969 §4):
//!
//! ```text
//!     |     n bits    |    o bits    |   m bits  |    128-n-o-m bits      |
//!     +---------------+--------------+-----------+------------------------+
//!     |  6rd prefix   | IPv4 address | subnet ID |     interface ID       |
//!     |<--- 6rd delegated prefix --->|
//! ```
//!
//! Of the IPv4 address only the o = 32 − IPv4MaskLen bits are stored there that are not the same for all of the domain.

use super::six_to_four;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

const GLOBAL_UNICAST: Prefix6 = Prefix6::holding(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const UNIQUE_LOCAL: Prefix6 = Prefix6::holding(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7);

/// Why a 6rd domain cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainFault {
    /// The delegated prefix would have this many bits, more than an address has (RFC 5969 §7.1.1).
    DelegatedTooLong(u8),
    /// The 6rd prefix is neither of global unicast nor of unique local addresses (RFC 4291 §2.4, RFC 4193).
    NotUnicast,
    /// The 6rd prefix shares addresses with 2002::/16, which is 6to4's (RFC 3056 §2).
    SixToFour,
}

impl fmt::Display for DomainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DelegatedTooLong(length) => write!(
                f,
                "the delegated prefixes would be {length} bits long, and an address has 128 (RFC 5969 §7.1.1): shorten the 6rd \
                 prefix, or lengthen the IPv4 prefix that the domain shares"
            ),
            Self::NotUnicast => f.write_str(
                "not a prefix of global unicast or unique local addresses (RFC 4291 §2.4, RFC 4193)",
            ),
            Self::SixToFour => {
                f.write_str("2002::/16 belongs to 6to4 (RFC 3056 §2); a provider has a prefix of its own")
            }
        }
    }
}

impl std::error::Error for DomainFault {}

/// A 6rd domain's way to write addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    prefix: Prefix6,
    shared: Prefix4,
    /// Bits behind the delegated prefix.
    behind: u8,
}

impl Domain {
    /// The domain with this 6rd prefix, all of whose IPv4 addresses lie in `shared`: IPv4MaskLen is its length.
    ///
    /// Delegated prefixes should be of 64 bits or fewer, because of address autoconfiguration (RFC 5969 §4); longer ones
    /// are possible.
    pub fn new(prefix: Prefix6, shared: Prefix4) -> Result<Self, DomainFault> {
        let within = |whole: Prefix6| whole.contains(prefix.address()) && prefix.length() >= whole.length();
        if !within(GLOBAL_UNICAST) && !within(UNIQUE_LOCAL) {
            return Err(DomainFault::NotUnicast);
        }
        if prefix.overlaps(six_to_four::PREFIX) {
            return Err(DomainFault::SixToFour);
        }
        let delegated = prefix.length() + (32 - shared.length());
        if delegated > 128 {
            return Err(DomainFault::DelegatedTooLong(delegated));
        }
        Ok(Self { prefix, shared, behind: 128 - delegated })
    }

    /// The 6rd prefix.
    pub const fn prefix(&self) -> Prefix6 {
        self.prefix
    }

    /// The IPv4 prefix that all of the domain shares.
    pub const fn shared(&self) -> Prefix4 {
        self.shared
    }

    /// Length of the delegated prefixes, in bits.
    pub const fn delegated_length(&self) -> u8 {
        128 - self.behind
    }

    /// Whether the address is one of the domain's.
    #[inline(always)]
    pub const fn contains(&self, address: Ipv6Addr) -> bool {
        self.prefix.contains(address)
    }

    /// The IPv4 address of the customer edge that an address of the domain belongs to; `None` for other addresses.
    #[inline(always)]
    pub const fn customer_edge_of(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        if !self.contains(address) {
            return None;
        }
        let bits = (address.to_bits() >> self.behind) as u32;
        Some(Ipv4Addr::from_bits(self.shared.address().to_bits() | bits & !self.shared.mask()))
    }

    /// The prefix that is delegated to a customer edge (RFC 5969 §4); `None` if its IPv4 address is not in the domain.
    pub const fn delegated(&self, customer_edge: Ipv4Addr) -> Option<Prefix6> {
        if !self.shared.contains(customer_edge) {
            return None;
        }
        let bits = (customer_edge.to_bits() & !self.shared.mask()) as u128;
        let address = self.prefix.address().to_bits() | bits << self.behind;
        Some(Prefix6::holding(Ipv6Addr::from_bits(address), self.delegated_length()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn domain(prefix: &str, shared: &str) -> Domain {
        Domain::new(prefix.parse().unwrap(), shared.parse().unwrap()).unwrap()
    }

    fn fault(prefix: &str, shared: &str) -> DomainFault {
        Domain::new(prefix.parse().unwrap(), shared.parse().unwrap()).unwrap_err()
    }

    /// 6rd prefix, IPv4 prefix, a customer edge and the prefix delegated to it. The first two are of RFC 5969 §7.1.1.
    const DELEGATED: [(&str, &str, &str, &str); 10] = [
        ("2001:db8::/32", "10.0.0.0/8", "10.100.100.1", "2001:db8:6464:100::/56"),
        ("2001:db8::/32", "10.0.0.0/8", "10.0.0.1", "2001:db8:0:100::/56"),
        ("2001:db8::/32", "0.0.0.0/0", "192.0.2.33", "2001:db8:c000:221::/64"),
        ("2001:d00::/24", "0.0.0.0/0", "192.0.2.33", "2001:dc0:2:2100::/56"),
        ("2001:db8:8000::/33", "10.0.0.0/8", "10.255.255.255", "2001:db8:ffff:ff80::/57"),
        ("2001:db8::/37", "192.0.2.0/27", "192.0.2.21", "2001:db8:540::/42"),
        ("2001:db8:1234:5678::/64", "192.0.2.33/32", "192.0.2.33", "2001:db8:1234:5678::/64"),
        ("2001:db8::/48", "0.0.0.0/0", "192.0.2.33", "2001:db8:0:c000:221::/80"),
        ("2001:db8::/96", "0.0.0.0/0", "192.0.2.33", "2001:db8::c000:221/128"),
        ("fd00:8::/29", "100.64.0.0/10", "100.100.1.2", "fd00:c:8020:4000::/51"),
    ];

    #[test]
    fn prefixes_are_delegated_at_any_bit_and_lead_back_to_their_customer_edge() {
        for (prefix, shared, customer_edge, delegated) in DELEGATED {
            let domain = domain(prefix, shared);
            let (customer_edge, delegated): (Ipv4Addr, Prefix6) =
                (customer_edge.parse().unwrap(), delegated.parse().unwrap());
            assert_eq!(domain.delegated(customer_edge), Some(delegated), "{prefix} {shared}");
            assert_eq!(domain.customer_edge_of(delegated.address()), Some(customer_edge));
            assert_eq!(domain.customer_edge_of(delegated.last()), Some(customer_edge));
            assert_eq!(domain.delegated_length(), delegated.length());
        }
    }

    #[test]
    fn addresses_outside_the_domain_have_no_part_in_it() {
        let domain = domain("2001:db8::/32", "10.0.0.0/8");
        assert_eq!(domain.delegated(Ipv4Addr::new(11, 0, 0, 1)), None);
        assert_eq!(domain.customer_edge_of("2001:db9::1".parse().unwrap()), None);
        assert!(!domain.contains("2001:db7:ffff::1".parse().unwrap()));
    }

    #[test]
    fn a_domain_that_cannot_be_says_why() {
        assert_eq!(fault("2001:db8::/97", "0.0.0.0/0"), DomainFault::DelegatedTooLong(129));
        assert_eq!(fault("2001:db8::/121", "10.0.0.0/8"), DomainFault::DelegatedTooLong(145));
        assert_eq!(fault("2001:db8::/128", "0.0.0.0/0"), DomainFault::DelegatedTooLong(160));
        assert_eq!(fault("2002::/16", "0.0.0.0/0"), DomainFault::SixToFour);
        assert_eq!(fault("2002:c000::/32", "0.0.0.0/0"), DomainFault::SixToFour);
        assert_eq!(fault("ff00::/8", "0.0.0.0/0"), DomainFault::NotUnicast);
        assert_eq!(fault("fe80::/32", "10.0.0.0/8"), DomainFault::NotUnicast);
        assert_eq!(fault("::/0", "0.0.0.0/0"), DomainFault::NotUnicast);
        assert!(fault("2001:db8::/97", "0.0.0.0/0").to_string().contains("129 bits"));
    }

    /// RFC 5969 §4 read literally: bits, one behind the other.
    fn delegated_slowly(prefix: Prefix6, shared: Prefix4, customer_edge: Ipv4Addr) -> Prefix6 {
        let bits = |text: String, count: u8| text[..usize::from(count)].to_owned();
        let all = bits(format!("{:0128b}", prefix.address().to_bits()), prefix.length())
            + &format!("{:032b}", customer_edge.to_bits())[usize::from(shared.length())..];
        let address = u128::from_str_radix(&format!("{all:0<128}"), 2).unwrap();
        Prefix6::new(Ipv6Addr::from_bits(address), all.len() as u8).unwrap()
    }

    proptest! {
        #[test]
        fn delegation_agrees_with_the_definition_and_leads_back(
            bits: u128, length in 7u8..=128, mask in 0u8..=32, shared: u32, host: u32, within: u128
        ) {
            prop_assume!(length + 32 - mask <= 128);
            let prefix = Prefix6::holding(Ipv6Addr::from_bits(bits >> 3 | 1 << 125), length);
            prop_assume!(!prefix.overlaps(six_to_four::PREFIX));
            let shared = Prefix4::holding(Ipv4Addr::from_bits(shared), mask);
            let domain = Domain::new(prefix, shared).unwrap();
            let customer_edge = Ipv4Addr::from_bits(shared.address().to_bits() | host & !shared.mask());
            let delegated = domain.delegated(customer_edge).unwrap();
            prop_assert_eq!(delegated, delegated_slowly(prefix, shared, customer_edge));
            let some = Ipv6Addr::from_bits(delegated.address().to_bits() | within & !delegated.mask());
            prop_assert_eq!(domain.customer_edge_of(some), Some(customer_edge));
        }
    }
}
