//! Prefixes of IPv4 and IPv6 addresses.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// Why a prefix is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixError {
    /// Not of the form `address/length`, or not of this family.
    Syntax,
    /// The length is greater than the family's addresses have bits.
    TooLong,
    /// Bits beyond the prefix length are set.
    HostBits,
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "not a prefix; write address/length",
            Self::TooLong => "the prefix length is greater than the address has bits",
            Self::HostBits => "bits beyond the prefix length are set",
        })
    }
}

impl core::error::Error for PrefixError {}

macro_rules! prefix {
    ($(#[$doc:meta])* $name:ident, $address:ident, $int:ty, $bits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            bits: $int,
            length: u8,
        }

        impl $name {
            /// The prefix of `length` bits; the bits beyond it must be zero.
            pub const fn new(address: $address, length: u8) -> Result<Self, PrefixError> {
                if length > $bits {
                    return Err(PrefixError::TooLong);
                }
                let bits = address.to_bits();
                if bits & !Self::mask_of(length) != 0 {
                    return Err(PrefixError::HostBits);
                }
                Ok(Self { bits, length })
            }

            /// The prefix of `length` bits (cut to the family's size) that holds `address`.
            pub const fn holding(address: $address, length: u8) -> Self {
                let length = if length > $bits { $bits } else { length };
                Self { bits: address.to_bits() & Self::mask_of(length), length }
            }

            const fn mask_of(length: u8) -> $int {
                if length == 0 { 0 } else { <$int>::MAX << ($bits - length) }
            }

            /// The first address.
            pub const fn address(self) -> $address {
                $address::from_bits(self.bits)
            }

            /// The length in bits.
            pub const fn length(self) -> u8 {
                self.length
            }

            /// The bits that every address in the prefix shares.
            pub const fn mask(self) -> $int {
                Self::mask_of(self.length)
            }

            /// The last address.
            pub const fn last(self) -> $address {
                $address::from_bits(self.bits | !self.mask())
            }

            /// Whether the address lies in the prefix.
            #[inline]
            pub const fn contains(self, address: $address) -> bool {
                (address.to_bits() ^ self.bits).leading_zeros() >= self.length as u32
            }

            /// Whether the two prefixes share an address.
            pub const fn overlaps(self, other: Self) -> bool {
                let mask = if self.length < other.length { self.mask() } else { other.mask() };
                (self.bits ^ other.bits) & mask == 0
            }
        }

        impl FromStr for $name {
            type Err = PrefixError;
            /// Reads `address/length`; a bare address is a prefix of full length.
            fn from_str(text: &str) -> Result<Self, PrefixError> {
                let (address, length) = match text.split_once('/') {
                    Some((address, length)) if length.bytes().all(|b| b.is_ascii_digit()) => {
                        (address, length.parse().map_err(|_| PrefixError::TooLong)?)
                    }
                    Some(_) => return Err(PrefixError::Syntax),
                    None => (text, $bits),
                };
                Self::new(address.parse().map_err(|_| PrefixError::Syntax)?, length)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.address(), self.length)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

prefix!(
    /// An IPv4 prefix (RFC 4632 §3.1).
    Prefix4, Ipv4Addr, u32, 32
);
prefix!(
    /// An IPv6 prefix (RFC 4291 §2.3).
    Prefix6, Ipv6Addr, u128, 128
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString as _;

    #[test]
    fn a_prefix_reads_as_it_is_written() {
        for text in ["0.0.0.0/0", "192.0.2.0/28", "192.0.2.1/32"] {
            assert_eq!(text.parse::<Prefix4>().unwrap().to_string(), text);
        }
        for text in ["::/0", "64:ff9b::/96", "2001:db8::1/128"] {
            assert_eq!(text.parse::<Prefix6>().unwrap().to_string(), text);
        }
        assert_eq!("192.0.2.7".parse::<Prefix4>().unwrap().length(), 32);
    }

    #[test]
    fn what_is_not_a_prefix_says_why() {
        assert_eq!("192.0.2.1/24".parse::<Prefix4>(), Err(PrefixError::HostBits));
        assert_eq!("192.0.2.0/33".parse::<Prefix4>(), Err(PrefixError::TooLong));
        assert_eq!("192.0.2.0/999".parse::<Prefix4>(), Err(PrefixError::TooLong));
        assert_eq!("192.0.2.0/+8".parse::<Prefix4>(), Err(PrefixError::Syntax));
        assert_eq!("::/0".parse::<Prefix4>(), Err(PrefixError::Syntax));
    }

    #[test]
    fn membership_and_overlap_follow_the_shorter_mask() {
        let p: Prefix6 = "2001:db8::/32".parse().unwrap();
        assert!(p.contains("2001:db8:ffff::1".parse().unwrap()));
        assert!(!p.contains("2001:db9::1".parse().unwrap()));
        assert!(p.overlaps("2001:db8:1::/48".parse().unwrap()));
        assert!(p.overlaps("::/0".parse().unwrap()));
        assert!(!p.overlaps("2001:db9::/32".parse().unwrap()));
        assert_eq!("192.0.2.0/28".parse::<Prefix4>().unwrap().last(), Ipv4Addr::new(192, 0, 2, 15));
    }
}
