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

    /// Whether a value is correct. The comparison takes constant time.
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

/// A client of the table.
#[derive(Clone, Debug)]
struct Known {
    key: ClientKey,
    /// Its identifier is no longer valid.
    retired: bool,
}

/// Which clients may qualify.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    known: BTreeMap<Vec<u8>, Known>,
    required: bool,
}

/// A solicitation whose authentication was verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authentic<'a> {
    key: &'a ClientKey,
    /// Of the answer: not zero if the client needs another identifier and secret.
    confirmation: u8,
}

impl Clients {
    /// Any client. The nonce is returned; a solicitation with an authentication value, which cannot be verified here, gets no answer.
    pub fn everybody() -> Self {
        Self::default()
    }

    /// Clients with these identifiers: only these, or others as well.
    pub fn new(keys: impl IntoIterator<Item = (Vec<u8>, ClientKey)>, required: bool) -> Self {
        let known = keys.into_iter().map(|(client, key)| (client, Known { key, retired: false }));
        Self { known: known.collect(), required }
    }

    /// Adds a client whose identifier is no longer valid: it qualifies, and the answer reports this.
    #[must_use]
    pub fn with_retired(mut self, client: Vec<u8>, key: ClientKey) -> Self {
        self.known.insert(client, Known { key, retired: true });
        self
    }

    /// Checks the authentication of a solicitation. `None`: it has none, and needs none.
    pub(super) fn check(
        &self,
        authentication: Option<&Authentication<'_>>,
        origin: Option<Origin>,
        packet: &[u8],
    ) -> Result<Option<Authentic<'_>>, Refusal> {
        let named = authentication.filter(|it| !(it.client.is_empty() && it.value.is_empty()));
        let Some(asked) = named else {
            return if self.required { Err(Refusal::NotAuthentic) } else { Ok(None) };
        };
        let Known { key, retired } = self.known.get(asked.client).ok_or(Refusal::NotAuthentic)?;
        let (nonce, confirmation) = (asked.nonce, asked.confirmation);
        let protected = Protected { nonce, confirmation, origin, packet };
        if !key.verifies(protected, asked.value) {
            return Err(Refusal::NotAuthentic);
        }
        Ok(Some(Authentic { key, confirmation: u8::from(*retired) }))
    }

    /// Writes the authentication of an answer in front of it.
    pub(super) fn write(
        out: &mut Vec<u8>,
        asked: &Authentication<'_>,
        authentic: Option<Authentic<'_>>,
        (origin, packet): (Origin, &[u8]),
    ) {
        let nonce = asked.nonce;
        let confirmation = authentic.map_or(0, |it| it.confirmation);
        let protected = Protected { nonce, confirmation, origin: Some(origin), packet };
        let value = authentic.map(|it| it.key.value(protected));
        let (client, value) = match &value {
            Some(value) => (asked.client, &value[..]),
            None => (&[][..], &[][..]),
        };
        let answer = Authentication { client, value, nonce, confirmation };
        let at = out.len();
        out.resize(at + answer.len(), 0);
        let _written = out.get_mut(at..).and_then(|room| answer.write(room));
    }
}
