//! What a zone's keys are known by before they are seen: DS records and trust anchors (RFC 4034 §5, RFC 4509).

use super::fault::info;
use super::limits::DIGESTS;
use super::zone::{Key, is_supported};
use crate::anchor::AnchorKey;
use domain::crypto::common::{DigestBuilder, DigestType};

/// A key that is meant to be a zone's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpectedKey {
    /// The one with this digest.
    Digest(Ds),
    /// This one.
    Key(Box<[u8]>),
}

/// A DS record (RFC 4034 §5.1) that can be made use of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ds {
    tag: u16,
    algorithm: u8,
    digest_type: u8,
    digest: Box<[u8]>,
}

/// SHA-1 (RFC 3658), SHA-256 (RFC 4509), SHA-384 (RFC 6605).
fn digest_type(number: u8) -> Option<DigestType> {
    match number {
        1 => Some(DigestType::Sha1),
        2 => Some(DigestType::Sha256),
        4 => Some(DigestType::Sha384),
        _ => None,
    }
}

/// What DS records say that can be understood; else why it cannot, as an INFO-CODE: then the zone counts as unsigned (RFC 4035 §5.2).
/// Digests by SHA-1 do not count if there are others (RFC 4509 §3).
pub(super) fn meant(rdatas: &[Box<[u8]>]) -> Result<Vec<ExpectedKey>, u16> {
    let mut why = info::DIGEST;
    let mut found = Vec::new();
    for rdata in rdatas.iter().take(DIGESTS) {
        match ds(rdata) {
            Ok(ds) => found.push(ds),
            Err(code) => why = code,
        }
    }
    if found.iter().any(|ds| ds.digest_type != 1) {
        found.retain(|ds| ds.digest_type != 1);
    }
    if found.is_empty() { Err(why) } else { Ok(found.into_iter().map(ExpectedKey::Digest).collect()) }
}

fn ds(rdata: &[u8]) -> Result<Ds, u16> {
    let (&[high, low, algorithm, number], digest) = rdata.split_first_chunk().ok_or(info::DIGEST)?;
    if !is_supported(algorithm) {
        return Err(info::ALGORITHM);
    }
    digest_type(number).ok_or(info::DIGEST)?;
    let tag = u16::from_be_bytes([high, low]);
    Ok(Ds { tag, algorithm, digest_type: number, digest: digest.into() })
}

/// What the anchors of a zone say that can be understood; else as [`meant`].
pub(super) fn anchored<'a>(anchors: impl Iterator<Item = &'a AnchorKey>) -> Result<Vec<ExpectedKey>, u16> {
    let mut why = info::ALGORITHM;
    let mut found = Vec::new();
    for anchor in anchors {
        match anchor {
            AnchorKey::Ds(rdata) => match ds(rdata) {
                Ok(ds) => found.push(ExpectedKey::Digest(ds)),
                Err(code) => why = code,
            },
            AnchorKey::Dnskey(rdata) => {
                let supported = rdata.get(3).copied().is_some_and(is_supported);
                found.extend(supported.then(|| ExpectedKey::Key(rdata.clone())));
            }
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found) }
}

impl ExpectedKey {
    /// Whether this is the key of the zone that is meant.
    pub(super) fn is(&self, zone: &[u8], key: &Key) -> bool {
        match self {
            Self::Key(rdata) => *rdata == key.rdata,
            Self::Digest(ds) => {
                ds.tag == key.tag && ds.algorithm == key.algorithm && ds.fits(zone, &key.rdata)
            }
        }
    }
}

impl Ds {
    /// RFC 4034 §5.1.4: the digest is of the owner's name and the DNSKEY RDATA.
    fn fits(&self, zone: &[u8], rdata: &[u8]) -> bool {
        let Some(kind) = digest_type(self.digest_type) else { return false };
        let mut digest = DigestBuilder::new(kind);
        digest.update(zone);
        digest.update(rdata);
        digest.finish().as_ref() == &*self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sha_1_digest_is_ignored_if_there_is_another() {
        let record = |digest_type: u8| -> Box<[u8]> { [0, 1, 13, digest_type, 9].into() };
        assert_eq!(meant(&[record(1), record(2)]).map(|meant| meant.len()), Ok(1));
        assert_eq!(meant(&[record(1)]).map(|meant| meant.len()), Ok(1));
    }

    #[test]
    fn what_is_not_understood_says_why() {
        assert_eq!(meant(&[[0, 1, 16, 2, 9].into()]), Err(info::ALGORITHM));
        assert_eq!(meant(&[[0, 1, 13, 3, 9].into()]), Err(info::DIGEST));
        assert_eq!(meant(&[[0, 1].into()]), Err(info::DIGEST));
    }
}
