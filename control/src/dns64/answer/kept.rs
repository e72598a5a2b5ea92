//! The stored form of an answer, for the next process of a gateway.
//!
//! ```text
//!     stored 8  lifetime 4  longest 4  upstream 2  flags 1  kind 1  security 1  code of the extended error 2  its text 1 + n  message
//! ```
//!
//! Numbers have their lowest octet first. The message is a reply with the answer's records, which is read with all the checks that a reply of
//! an upstream has to pass: nothing in this process relies on the form of the file.

use super::bounds::Bounds;
use super::extended_error::ExtendedError;
use super::kind::Kind;
use super::part::Part;
use super::rcode::{NOERROR, NXDOMAIN};
use super::upstream_answer::{Answer, Origin};
use crate::Instant;
use crate::dns64::ask::Security;
use crate::dns64::key::Key;
use crate::dns64::name::{Name, expand};
use crate::dns64::query::HEADER;

/// Octets in front of the text of the extended error.
const FIELDS: usize = 24;
/// Queried with CD=1.
const CHECKING_DISABLED: u8 = 1;
/// Queried with DO=1.
const DNSSEC_OK: u8 = 2;
/// The second attempt, after another upstream's answer did not validate.
const AGAIN: u8 = 4;
/// The upstream set AD.
const AUTHENTIC: u8 = 8;

impl Answer {
    /// Appends it to `out`; whether it was. A failure is not kept, nor what did not validate: the next process finds out for itself.
    pub fn write_kept(&self, out: &mut Vec<u8>) -> bool {
        let (Some(kind), Some(security)) = (number_of(self.kind()), number_of_security(self.security()))
        else {
            return false;
        };
        let origin = self.origin();
        out.extend_from_slice(&self.stored().0.to_le_bytes());
        out.extend_from_slice(&self.lifetime().to_le_bytes());
        out.extend_from_slice(&self.longest().to_le_bytes());
        out.extend_from_slice(&origin.upstream.to_le_bytes());
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.key().checking_disabled(), CHECKING_DISABLED)
            | flag(self.has_dnssec(), DNSSEC_OK)
            | flag(origin.again, AGAIN)
            | flag(self.authentic(), AUTHENTIC);
        out.extend_from_slice(&[flags, kind, security]);
        let (code, text) = self.extended_error().unwrap_or((u16::MAX, ""));
        let text = &text.as_bytes()[..text.len().min(u8::MAX.into())];
        out.extend_from_slice(&code.to_le_bytes());
        out.push(text.len() as u8);
        out.extend_from_slice(text);
        self.write_reply(out);
        true
    }

    /// The reply: a header, the question, and the records as they are kept behind it.
    fn write_reply(&self, out: &mut Vec<u8>) {
        let count = |parts: &[Part]| -> u16 { parts.iter().map(|part| self.count(*part) as u16).sum() };
        let answers = count(&[Part::Chain, Part::Data, Part::Signatures]);
        let authorities = count(&[Part::Authority, Part::Proofs]);
        let authentic = if self.authentic() { 0x20 } else { 0 };
        out.extend_from_slice(&[0, 0, 0x81, 0x80 | authentic | self.rcode() as u8, 0, 1]);
        for field in [answers, authorities, 0] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(&self.octets()[1..]);
    }

    /// Reads what [`Self::write_kept`] wrote; `bounds` are those of replies. `None`: it is damaged, or comes from the future.
    #[must_use]
    pub fn read_kept(octets: &[u8], now: Instant, bounds: &Bounds) -> Option<Self> {
        let (fields, rest) = octets.split_first_chunk::<FIELDS>()?;
        let stored = Instant(u64::from_le_bytes(*fields.first_chunk()?));
        let number =
            |at: usize| u32::from_le_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let pair = |at: usize| u16::from_le_bytes([fields[at], fields[at + 1]]);
        let (lifetime, longest, upstream) = (number(8), number(12), pair(16));
        let (flags, kind, security, code) = (fields[18], fields[19], fields[20], pair(21));
        let (text, message) = rest.split_at_checked(fields[23].into())?;
        if stored > now {
            return None;
        }
        let key = key_of(message, flags & CHECKING_DISABLED != 0)?;
        let bounds = Bounds { dnssec_ok: flags & DNSSEC_OK != 0, ..*bounds };
        let mut answer = Self::read(&key, message, stored, &bounds).ok()?;
        if number_of(answer.kind()) != Some(kind) {
            return None;
        }
        if longest != u32::MAX {
            answer.limit_lifetime(stored, longest);
        }
        let lifetime = lifetime.min(answer.lifetime());
        answer.hold(stored, lifetime, lifetime);
        let error =
            (code != u16::MAX).then(|| ExtendedError { code, text: String::from_utf8_lossy(text).into() });
        answer.set_security(security_of(security)?, error);
        answer.set_origin(Origin { upstream, again: flags & AGAIN != 0 });
        Some(answer)
    }
}

/// The key of a reply with one question.
fn key_of(message: &[u8], checking_disabled: bool) -> Option<Key> {
    let mut name = Name::new();
    let behind = expand(message, HEADER, &mut name)?;
    let [t0, t1, c0, c1] = *message.get(behind..)?.first_chunk()?;
    Some(Key::of(&name, u16::from_be_bytes([t0, t1]), u16::from_be_bytes([c0, c1]), checking_disabled))
}

/// The number of a kind in the file; `None`: it is not kept.
fn number_of(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Data => Some(0),
        Kind::NoData => Some(1),
        Kind::NameError => Some(2),
        Kind::Failure(_) | Kind::Unfinished => None,
    }
}

/// The number of a DNSSEC status in the file; `None`: it is not kept.
fn number_of_security(security: Security) -> Option<u8> {
    match security {
        Security::Unchecked => Some(0),
        Security::Secure => Some(1),
        Security::Insecure => Some(2),
        Security::Bogus | Security::Indeterminate => None,
    }
}

fn security_of(number: u8) -> Option<Security> {
    [Security::Unchecked, Security::Secure, Security::Insecure].get(usize::from(number)).copied()
}

const _: () = assert!(NOERROR < 16 && NXDOMAIN < 16, "they fit into the header");
