//! Secure qualification (RFC 4380 §5.2.2): the nonce, the confirmation byte, the origin indication and the packet are protected by HMAC-SHA1 with
//! the secret of the client.

use super::refusal::Refusal;
use ring::hmac;
use sixway_wire::teredo::{Authentication, Origin};
use std::collections::BTreeMap;
use std::fmt;

/// A client's secret.
#[derive(Clone)]
pub struct ClientKey(hmac::Key);

impl ClientKey {
    /// Of a shared secret.
    pub fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret))
    }

    /// The authentication value.
    fn value(&self, parts: Protected<'_>) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        parts.each(|octets| context.update(octets));
        context.sign()
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
    }
}

/// What the value protects.
#[derive(Clone, Copy)]
pub(super) struct Protected<'a> {
    pub(super) nonce: [u8; 8],
    pub(super) confirmation: u8,
    pub(super) origin: Option<Origin>,
    pub(super) packet: &'a [u8],
}

impl Protected<'_> {
    fn each(self, mut take: impl FnMut(&[u8])) {
        take(&self.nonce);
        take(&[self.confirmation]);
        if let Some(origin) = self.origin {
            take(&origin.octets());
        }
        take(self.packet);
    }
}

/// Who may qualify: everybody, or the clients of this table, by identifier.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    keys: BTreeMap<Vec<u8>, ClientKey>,
    required: bool,
}

impl Clients {
    /// Everybody: authentication is answered with the nonce alone.
    pub fn everybody() -> Self {
        Self::default()
    }

    /// Those with these identifiers.
    pub fn only(keys: impl IntoIterator<Item = (Vec<u8>, ClientKey)>) -> Self {
        Self { keys: keys.into_iter().collect(), required: true }
    }

    /// Checks the authentication of a solicitation, and returns the key for the answer, if one is needed.
    pub(super) fn check(
        &self,
        authentication: Option<&Authentication<'_>>,
        origin: Option<Origin>,
        packet: &[u8],
    ) -> Result<Option<&ClientKey>, Refusal> {
        let Some(authentication) = authentication else {
            return if self.required { Err(Refusal::NotAuthentic) } else { Ok(None) };
        };
        if !self.required {
            return Ok(None);
        }
        let key = self.keys.get(authentication.client).ok_or(Refusal::NotAuthentic)?;
        let (nonce, confirmation) = (authentication.nonce, authentication.confirmation);
        let mut protected = Vec::with_capacity(packet.len() + 17);
        Protected { nonce, confirmation, origin, packet }.each(|octets| protected.extend_from_slice(octets));
        hmac::verify(&key.0, &protected, authentication.value).map_err(|_| Refusal::NotAuthentic)?;
        Ok(Some(key))
    }

    /// Writes the authentication of an answer in front of it.
    pub(super) fn write(
        out: &mut Vec<u8>,
        asked: &Authentication<'_>,
        key: Option<&ClientKey>,
        protected: Protected<'_>,
    ) {
        let value = key.map(|key| key.value(protected));
        let (client, value) = match &value {
            Some(value) => (asked.client, value.as_ref()),
            None => (&[][..], &[][..]),
        };
        let answer =
            Authentication { client, value, nonce: asked.nonce, confirmation: protected.confirmation };
        let at = out.len();
        out.resize(at + answer.len(), 0);
        let _written = out.get_mut(at..).and_then(|room| answer.write(room));
    }
}
