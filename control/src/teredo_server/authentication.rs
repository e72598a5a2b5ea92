//! Secure qualification (RFC 4380 §5.2.2): the nonce, the confirmation byte, the origin indication and the packet are protected by HMAC-SHA1 with
//! the secret of the client.

use super::refusal::Refusal;
use sixway_wire::teredo::{Authentication, Origin};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Octets of an authentication value: those of SHA-1.
const VALUE: usize = 20;

/// HMAC-SHA1 with the secret of a client, over octets.
type Mac = dyn Fn(&[u8]) -> [u8; VALUE] + Send + Sync;

/// A client's secret.
#[derive(Clone)]
pub struct ClientKey(Arc<Mac>);

impl ClientKey {
    /// One that computes HMAC-SHA1 (RFC 2104) by this function.
    pub fn new(mac: impl Fn(&[u8]) -> [u8; VALUE] + Send + Sync + 'static) -> Self {
        Self(Arc::new(mac))
    }

    /// The authentication value.
    pub(crate) fn value(&self, protected: Protected<'_>) -> [u8; VALUE] {
        (self.0)(&protected.octets())
    }

    /// Whether a value is right. The time does not tell how much of it is.
    pub(crate) fn verifies(&self, protected: Protected<'_>, value: &[u8]) -> bool {
        let right = self.value(protected);
        value.len() == VALUE && right.iter().zip(value).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
    }
}

/// What the value protects.
#[derive(Clone, Copy)]
pub(crate) struct Protected<'a> {
    pub(crate) nonce: [u8; 8],
    pub(crate) confirmation: u8,
    pub(crate) origin: Option<Origin>,
    pub(crate) packet: &'a [u8],
}

impl Protected<'_> {
    fn octets(self) -> Vec<u8> {
        let mut octets = self.nonce.to_vec();
        octets.push(self.confirmation);
        octets.extend(self.origin.iter().flat_map(|origin| origin.octets()));
        octets.extend_from_slice(self.packet);
        octets
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
        let protected = Protected { nonce, confirmation, origin, packet };
        if !key.verifies(protected, authentication.value) {
            return Err(Refusal::NotAuthentic);
        }
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
            Some(value) => (asked.client, &value[..]),
            None => (&[][..], &[][..]),
        };
        let answer =
            Authentication { client, value, nonce: asked.nonce, confirmation: protected.confirmation };
        let at = out.len();
        out.resize(at + answer.len(), 0);
        let _written = out.get_mut(at..).and_then(|room| answer.write(room));
    }
}
