//! The identity of the mechanism that a flow or a session belongs to. It does not depend on the order of the configuration, and outlives
//! the process.

use crate::kind::Kind;
use core::fmt;
use sixway_wire::Prefix6;

/// Identifies a mechanism of a gateway by its kind and by what distinguishes it from others of its kind, never by its position in the
/// configuration. A mechanism with another identity is another mechanism: its flows and sessions are not this one's.
///
/// It lies in pinned maps and in files that one process leaves to another, of whatever version: how it is computed never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u64);

impl Identity {
    /// The NAT64 of this prefix. Another prefix is another NAT64: what hosts reach by the one they do not reach by the other. Its pool and
    /// its policy may change.
    pub const fn of_nat64(prefix: Prefix6) -> Self {
        Self::of(Kind::Nat64, prefix)
    }

    /// The NAT44s of the gateway. Which of them a session belongs to follows from its outside address: no two have one in common. So pools
    /// may grow and shrink, and insides change.
    pub const fn of_nat44() -> Self {
        Self::not_zero(fnv1a(FNV_BASIS, &[Kind::Nat44.number()]))
    }

    /// The AFTRs of the gateway: their addresses and clients may change, as a NAT44's pools may.
    pub const fn of_ds_lite() -> Self {
        Self::not_zero(fnv1a(FNV_BASIS, &[Kind::DsLite.number()]))
    }

    /// The NAT44 of the realm of this name. Its hosts are different from those of another realm, whatever their addresses and pools.
    pub fn of_realm(name: &str) -> Self {
        let hash = fnv1a(FNV_BASIS, &[Kind::Nat44.number()]);
        Self::not_zero(fnv1a(hash, name.as_bytes()))
    }

    /// The mechanism of this kind with this prefix.
    const fn of(kind: Kind, prefix: Prefix6) -> Self {
        let hash = fnv1a(FNV_BASIS, &[kind.number(), prefix.length()]);
        let hash = fnv1a(hash, &prefix.address().octets());
        Self::not_zero(hash)
    }

    /// Zero belongs to no mechanism.
    const fn not_zero(hash: u64) -> Self {
        Self(if hash == 0 { 1 } else { hash })
    }

    /// As it lies in maps and files; `None`: the number belongs to no mechanism.
    pub const fn from_number(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// The number in maps and files, which is not 0.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// FNV-1a, 64 bits: the offset basis.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// FNV-1a, 64 bits: the prime.
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

const fn fnv1a(mut hash: u64, octets: &[u8]) -> u64 {
    let mut at = 0;
    while at < octets.len() {
        hash = (hash ^ octets[at] as u64).wrapping_mul(FNV_PRIME);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nat64(prefix: &str) -> Identity {
        Identity::of_nat64(prefix.parse().unwrap())
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // Of draft-eastlake-fnv, appendix C.
        assert_eq!(fnv1a(FNV_BASIS, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(FNV_BASIS, b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn an_identity_is_what_it_was_in_every_version() {
        assert_eq!(nat64("64:ff9b::/96").to_string(), "bfcfb87ec63aac9a");
        assert_eq!(nat64("2001:db8:64::/48").to_string(), "9099e33241b96106");
        assert_eq!(Identity::of_nat44().to_string(), "af63c44c8601c3c4");
        assert_eq!(Identity::of_ds_lite().to_string(), "af63c74c8601c8dd");
        assert_eq!(Identity::of_realm("red").to_string(), "335f8ab9b4481c13");
    }

    #[test]
    fn a_prefix_is_told_from_others_by_its_bits_and_by_its_length() {
        let all = ["64:ff9b::/96", "64:ff9b::/64", "64:ff9b:1::/96", "64:ff9b:0:1::/96", "2001:db8::/32"];
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| nat64(other) != nat64(one)), "{one}");
            assert_eq!(Identity::from_number(nat64(one).number()), Some(nat64(one)));
        }
        assert_eq!(Identity::from_number(0), None);
    }
}
