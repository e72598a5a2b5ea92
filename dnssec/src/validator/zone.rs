//! A signed zone, as far as its keys are known.

use super::limits;
use crate::wire::Wire;
use domain::base::iana::SecurityAlgorithm;
use domain::crypto::common::PublicKey;
use domain::rdata::Dnskey;
use std::fmt;

/// A zone whose keys are proven, by a chain from a trust anchor, to be its own.
#[derive(Debug)]
pub(super) struct Zone {
    /// Its apex.
    pub(super) name: Wire,
    /// Those of its keys that sign.
    pub(super) keys: Vec<Key>,
}

/// A key that may sign records of its zone.
pub(super) struct Key {
    pub(super) tag: u16,
    pub(super) algorithm: u8,
    pub(super) rdata: Box<[u8]>,
    public: PublicKey,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} of algorithm {}", self.tag, self.algorithm)
    }
}

/// RFC 8624 §3.1: RSA with SHA-1, SHA-256 and SHA-512, ECDSA with P-256 and P-384, Ed25519.
pub(super) fn is_supported(algorithm: u8) -> bool {
    matches!(algorithm, 5 | 7 | 8 | 10 | 13 | 14 | 15)
}

impl Key {
    /// From RDATA of a DNSKEY record; `None` for a key that does not sign a zone, or that cannot be used here: RFC 4034 §2.1.1 (Zone Key flag),
    /// §2.1.2 (protocol), RFC 5011 §2.1 (a revoked key signs nothing any more).
    pub(super) fn read(rdata: &[u8]) -> Option<Self> {
        const ZONE_KEY: u16 = 0x0100;
        const REVOKE: u16 = 0x0080;
        let (&[high, low, protocol, algorithm], key) = rdata.split_first_chunk()?;
        let flags = u16::from_be_bytes([high, low]);
        if flags & (ZONE_KEY | REVOKE) != ZONE_KEY || protocol != 3 || !is_supported(algorithm) {
            return None;
        }
        let dnskey = Dnskey::new(flags, protocol, SecurityAlgorithm::from_int(algorithm), key).ok()?;
        let public = PublicKey::from_dnskey(&dnskey).ok()?;
        Some(Self { tag: key_tag(rdata), algorithm, rdata: rdata.into(), public })
    }

    /// Whether it made the signature.
    pub(super) fn signed(&self, data: &[u8], signature: &[u8]) -> bool {
        self.public.verify(data, signature).is_ok()
    }
}

/// RFC 4034 appendix B.
pub(super) fn key_tag(rdata: &[u8]) -> u16 {
    let words = rdata.chunks(2).map(|pair| {
        u32::from(u16::from_be_bytes([pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)]))
    });
    let sum: u32 = words.sum();
    ((sum + (sum >> 16)) & 0xffff) as u16
}

/// The keys of a zone from the RDATA of its DNSKEY records, as many as are examined.
pub(super) fn keys(rdatas: &[Box<[u8]>]) -> Vec<Key> {
    rdatas.iter().take(limits::KEYS).filter_map(|rdata| Key::read(rdata)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tag_is_the_sum_of_appendix_b_of_rfc_4034() {
        assert_eq!(key_tag(&[1, 1, 3, 8]), 0x0101 + 0x0308);
        assert_eq!(
            key_tag(&[0xff, 0xff, 0xff, 0xff, 1]),
            0x0100,
            "the carry is added once, an odd octet counts high"
        );
    }

    #[test]
    fn a_key_that_signs_no_zone_is_ignored() {
        let key = |flags: u16, protocol: u8, algorithm: u8| {
            let [high, low] = flags.to_be_bytes();
            Key::read(&[&[high, low, protocol, algorithm][..], &[7; 32]].concat()).is_some()
        };
        assert!(key(0x0100, 3, 15) && key(0x0101, 3, 15));
        assert!(!key(0x0001, 3, 15), "without the Zone Key flag");
        assert!(!key(0x0181, 3, 15), "revoked");
        assert!(!key(0x0100, 2, 15), "of another protocol");
        assert!(!key(0x0100, 3, 16), "of an algorithm that is not supported");
        assert!(!(0..4).any(|cut| Key::read(&[1, 0, 3, 15][..cut]).is_some()), "cut");
    }
}
