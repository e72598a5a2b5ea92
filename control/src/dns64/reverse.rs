//! Names of addresses: from IP6.ARPA (RFC 3596 §2.5) through our prefixes to IN-ADDR.ARPA (RFC 1035 §3.5), all in lower-case wire form.

use super::policy::is_no_host;
use arrayvec::ArrayVec;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{Ipv4Addr, Ipv6Addr};

/// RFC 3596 §2.5: `ip6.arpa`.
const IP6_ARPA: &[u8] = b"\x03ip6\x04arpa\x00";

/// RFC 1035 §3.5: `in-addr.arpa`.
const IN_ADDR_ARPA: &[u8] = b"\x07in-addr\x04arpa\x00";

/// RFC 7050 §8.2: the well-known IPv4 addresses; they stand under every prefix, though they are not global.
pub(super) const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];

/// Where a name stands under IP6.ARPA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ip6Name {
    /// The nibbles that are there are the highest; the others are zero.
    bits: u128,
    nibbles: u8,
    /// Further labels stand below the nibbles.
    below: bool,
    octets: usize,
}

impl Ip6Name {
    /// `None`: the name is not under IP6.ARPA.
    pub(super) fn read(name: &[u8]) -> Option<Self> {
        let mut labels = name.strip_suffix(IP6_ARPA)?;
        let mut read = Self { bits: 0, nibbles: 0, below: false, octets: name.len() };
        while let [length, rest @ ..] = labels {
            let (label, rest) = rest.split_at_checked(usize::from(*length))?;
            let nibble = <[u8; 1]>::try_from(label).ok().and_then(|[digit]| nibble(digit));
            read.push(nibble);
            labels = rest;
        }
        Some(read)
    }

    /// Labels come from the lowest to the highest. What came before one that is no nibble is below it; of more than 32 nibbles the last 32 count.
    fn push(&mut self, nibble: Option<u8>) {
        let Some(nibble) = nibble else {
            (self.bits, self.nibbles, self.below) = (0, 0, true);
            return;
        };
        self.bits = self.bits >> 4 | u128::from(nibble) << 124;
        self.below |= self.nibbles == 32;
        self.nibbles = (self.nibbles + 1).min(32);
    }

    /// The address, if the name is one's.
    pub(super) fn address(&self) -> Option<Ipv6Addr> {
        (self.nibbles == 32 && !self.below).then(|| Ipv6Addr::from_bits(self.bits))
    }

    /// Whether there is no such name, in a zone in which each address has one: it is below an address, or has labels that are no nibbles.
    pub(super) fn is_below(&self) -> bool {
        self.below
    }

    /// The zone of the longest of these prefixes that the name is in: how many octets of the name stand before the zone's.
    /// Prefixes are the longest first; their lengths are whole nibbles.
    pub(super) fn zone(&self, prefixes: &[Rfc6052]) -> Option<u8> {
        let length = |prefix: &Rfc6052| prefix.prefix().length();
        let mut ours = prefixes.iter().filter(|prefix| length(prefix) <= self.nibbles * 4);
        let prefix = ours.find(|prefix| prefix.contains(Ipv6Addr::from_bits(self.bits)))?;
        let apex = usize::from(length(prefix)) / 2 + IP6_ARPA.len();
        u8::try_from(self.octets.checked_sub(apex)?).ok()
    }
}

fn nibble(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

/// The IPv4 address that the name's IPv6 address stands for, under the longest of these prefixes that holds it. The suffix is ignored, as the translator ignores it
/// (RFC 6052 §2.2).
///
/// `None`: no such name, no address of ours, one with an octet u that is not zero (§2.2), or one that no AAAA record is ever made with.
pub(super) fn embedded(name: &[u8], prefixes: &[Rfc6052]) -> Option<Ipv4Addr> {
    let address = Ip6Name::read(name)?.address()?;
    let prefix = prefixes.iter().find(|prefix| prefix.contains(address))?;
    let embedded = prefix.extract_any(address).ok()?;
    let stands = WELL_KNOWN.contains(&embedded) || (prefix.permit(embedded).is_ok() && !is_no_host(embedded));
    stands.then_some(embedded)
}

/// The longest name of an IPv4 address, in octets: four labels of three digits, and `in-addr.arpa`.
pub(super) const IN_ADDR_OCTETS: usize = 30;

/// The name under IN-ADDR.ARPA (RFC 1035 §3.5).
pub(super) fn in_addr_arpa(address: Ipv4Addr) -> ArrayVec<u8, IN_ADDR_OCTETS> {
    let mut name = ArrayVec::new();
    for octet in address.octets().into_iter().rev() {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let leading = digits[..2].iter().take_while(|digit| **digit == 0).count();
        name.push(3 - leading as u8);
        name.extend(digits[leading..].iter().map(|digit| b'0' + digit));
    }
    name.extend(IN_ADDR_ARPA.iter().copied());
    name
}
