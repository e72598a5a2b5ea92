//! Trust anchors: keys that are trusted without proof.

use crate::wire::Wire;

/// A key that is trusted without proof (RFC 4033 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The zone.
    pub zone: Wire,
    /// Its key.
    pub key: AnchorKey,
}

/// A trust anchor's key, or its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorKey {
    /// RDATA of a DS record (RFC 4034 §5.1).
    Ds(Box<[u8]>),
    /// RDATA of a DNSKEY record (RFC 4034 §2.1).
    Dnskey(Box<[u8]>),
}
