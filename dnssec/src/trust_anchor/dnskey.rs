//! A key as a DNSKEY record gives it (RFC 4034 §2.1).

use crate::wire::Wire;
use domain::base::iana::SecurityAlgorithm;
use domain::crypto::common::{DigestBuilder, DigestType, PublicKey};
use domain::rdata;

/// RFC 4034 §2.1.1: bit 7, a zone's key.
const ZONE: u16 = 0x0100;

/// RFC 5011 §3: bit 8, the key is revoked.
const REVOKE: u16 = 0x0080;

/// RFC 4034 §2.1.1: bit 15, a secure entry point.
const SEP: u16 = 0x0001;

/// RFC 4034 §2.1.2: the only value of the protocol field.
const PROTOCOL: u8 = 3;

/// RDATA of a DNSKEY record that is a zone's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dnskey(Box<[u8]>);

impl Dnskey {
    /// `None`: it is not a zone's key (RFC 4034 §2.1.1), or has a protocol other than 3, or no key.
    pub(super) fn new(rdata: &[u8]) -> Option<Self> {
        let [high, low, PROTOCOL, _, _, ..] = *rdata else { return None };
        (u16::from_be_bytes([high, low]) & ZONE != 0).then(|| Self(rdata.into()))
    }

    pub(super) fn rdata(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn flags(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// RFC 4034 §2.1.3.
    pub(super) fn algorithm(&self) -> u8 {
        self.0[3]
    }

    /// RFC 4034 §2.1.4.
    pub(super) fn public_key(&self) -> &[u8] {
        &self.0[4..]
    }

    pub(super) fn is_secure_entry_point(&self) -> bool {
        self.flags() & SEP != 0
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.flags() & REVOKE != 0
    }

    /// The same key without the mark of its revocation: by this a key is known (RFC 5011 §2.1: the mark changes tag and digest).
    pub(super) fn unmarked(&self) -> Self {
        let mut rdata = self.0.clone();
        rdata[1] &= !(REVOKE as u8);
        Self(rdata)
    }

    fn record(&self) -> Option<rdata::Dnskey<&[u8]>> {
        let algorithm = SecurityAlgorithm::from_int(self.algorithm());
        rdata::Dnskey::new(self.flags(), PROTOCOL, algorithm, self.public_key()).ok()
    }

    /// RFC 4034 Appendix B.
    pub(super) fn tag(&self) -> u16 {
        self.record().map_or(0, |record| record.key_tag())
    }

    /// Whether it has signed this (RFC 4034 §3.1.8.1).
    pub(super) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        let key = self.record().and_then(|record| PublicKey::from_dnskey(&record).ok());
        key.is_some_and(|key| key.verify(signed, signature).is_ok())
    }

    /// Whether this RDATA of a DS record is of this key, which is the zone's (RFC 4034 §5.1).
    pub(super) fn matches(&self, zone: &Wire, ds: &[u8]) -> bool {
        let [high, low, algorithm, digest_type, digest @ ..] = ds else { return false };
        // RFC 8624 §3.3: SHA-1, SHA-256 and SHA-384.
        let digest_type = match digest_type {
            1 => DigestType::Sha1,
            2 => DigestType::Sha256,
            4 => DigestType::Sha384,
            _ => return false,
        };
        if (u16::from_be_bytes([*high, *low]), *algorithm) != (self.tag(), self.algorithm()) {
            return false;
        }
        let mut builder = DigestBuilder::new(digest_type);
        builder.update(&zone.0);
        builder.update(&self.0);
        builder.finish().as_ref() == digest
    }
}
