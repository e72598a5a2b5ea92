//! The two prefixes and the algorithm between them (RFC 6296 §3): stateless, one to one, and without effect on any checksum.

use crate::source_check::is_martian6;
use core::fmt;
use core::net::Ipv6Addr;
use sixway_wire::Prefix6;
use sixway_wire::checksum::Sum;

/// §3.4: prefixes up to this length leave the subnet's word free for the adjustment.
const SUBNET_IS_FREE: u8 = 48;
/// Prefixes are no longer than this: the adjustment needs a word of the interface identifier (§3.5).
const LONGEST: u8 = 64;
/// Where the words start from the right, in bits: the subnet's, and those of the interface identifier in the order of §3.5.
const SUBNET: u32 = 64;
const IDENTIFIER: [u32; 4] = [48, 32, 16, 0];

/// Why two prefixes cannot be translated to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixesFault {
    /// One is longer than 64 bits.
    TooLong(Prefix6),
    /// One is not a prefix of unicast addresses (§4.1).
    NotUnicast(Prefix6),
    /// They have addresses in common.
    Overlap,
}

impl fmt::Display for PrefixesFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(prefix) => write!(f, "{prefix} is longer than 64 bits (RFC 6296 §3.5)"),
            Self::NotUnicast(prefix) => write!(f, "{prefix} holds no unicast addresses (RFC 6296 §4.1)"),
            Self::Overlap => f.write_str("the inside and the outside prefix overlap"),
        }
    }
}

impl std::error::Error for PrefixesFault {}

/// Why an address has no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmapped {
    /// The subnet is 0xffff (§3.2), or there is no word that could take the adjustment.
    NoWord,
    /// The interface identifier is all zeros (§3.7).
    ZeroIdentifier,
}

/// Two prefixes of one length, and what their difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    inside: Prefix6,
    outside: Prefix6,
}

impl Prefixes {
    /// Both, extended with zeros to the length of the longer one (§3.1).
    pub fn new(inside: Prefix6, outside: Prefix6) -> Result<Self, PrefixesFault> {
        for prefix in [inside, outside] {
            if prefix.length() > LONGEST {
                return Err(PrefixesFault::TooLong(prefix));
            }
            if prefix.length() == 0 || is_martian6(prefix.address()) {
                return Err(PrefixesFault::NotUnicast(prefix));
            }
        }
        let length = inside.length().max(outside.length());
        let extended = |prefix: Prefix6| Prefix6::holding(prefix.address(), length);
        if inside.overlaps(outside) {
            return Err(PrefixesFault::Overlap);
        }
        Ok(Self { inside: extended(inside), outside: extended(outside) })
    }

    /// The inside prefix, as it is translated.
    pub const fn inside(&self) -> Prefix6 {
        self.inside
    }

    /// The outside prefix, as it is translated.
    pub const fn outside(&self) -> Prefix6 {
        self.outside
    }

    /// An inside address as the outside sees it (§3.2).
    #[inline]
    pub(super) fn to_outside(self, address: Ipv6Addr) -> Result<Ipv6Addr, Unmapped> {
        map(address, self.inside, self.outside)
    }

    /// The inside address that the outside sees as this one (§3.3).
    #[inline]
    pub(super) fn to_inside(self, address: Ipv6Addr) -> Result<Ipv6Addr, Unmapped> {
        map(address, self.outside, self.inside)
    }
}

/// The prefix `from` becomes `to`, and a word that is in neither takes the difference of their sums.
#[inline]
fn map(address: Ipv6Addr, from: Prefix6, to: Prefix6) -> Result<Ipv6Addr, Unmapped> {
    let bits = address.to_bits();
    let at = place(bits, from.length())?;
    let sum = |prefix: Prefix6| Sum::ZERO.ipv6(prefix.address());
    let adjusted = match Sum::ZERO.word(word(bits, at)).and(sum(from)).less(sum(to)).fold() {
        0xffff => 0,
        other => other,
    };
    let kept = bits & !from.mask() & !(0xffff << at);
    Ok(Ipv6Addr::from_bits(to.address().to_bits() | kept | u128::from(adjusted) << at))
}

/// Where the word is that takes the difference (§3.4, §3.5).
#[inline]
fn place(bits: u128, length: u8) -> Result<u32, Unmapped> {
    if length <= SUBNET_IS_FREE {
        return if word(bits, SUBNET) == 0xffff { Err(Unmapped::NoWord) } else { Ok(SUBNET) };
    }
    if bits as u64 == 0 {
        return Err(Unmapped::ZeroIdentifier);
    }
    IDENTIFIER.into_iter().find(|at| word(bits, *at) != 0xffff).ok_or(Unmapped::NoWord)
}

const fn word(bits: u128, at: u32) -> u16 {
    (bits >> at) as u16
}
