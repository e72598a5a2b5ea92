//! A question for upstreams, and its outcome.

use super::super::ask::QueryTransport;
use super::super::shares::Payer;

/// A question's number, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number(pub u64);

/// The question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'n> {
    /// The name in wire form, uncompressed, its root label included, in whatever case.
    pub name: &'n [u8],
    /// QTYPE.
    pub qtype: u16,
    /// QCLASS.
    pub qclass: u16,
    /// DO=1: with DNSSEC records (RFC 3225 §3).
    pub dnssec_ok: bool,
    /// A reply to a question without DO is of no use: an upstream without EDNS is not asked again without it.
    pub dnssec_needed: bool,
    /// CD=1: the upstream's validation is not asked for (RFC 4035 §3.2.2).
    pub checking_disabled: bool,
    /// AD=1: the reply's AD bit is requested (RFC 6840 §5.7).
    pub authentic_data: bool,
    /// An upstream whose reply was of no use: another one is asked, or if there is no other, this one by stream.
    pub unlike: Option<usize>,
    /// The payer of it.
    pub payer: Payer,
}

impl<'n> Question<'n> {
    /// A question of class IN, without any bits, and of no client.
    #[must_use]
    pub const fn new(name: &'n [u8], qtype: u16) -> Self {
        Self {
            name,
            qtype,
            qclass: 1,
            dnssec_ok: false,
            dnssec_needed: false,
            checking_disabled: false,
            authentic_data: false,
            unlike: None,
            payer: Payer::OWN,
        }
    }
}

/// An accepted reply: it came from the queried upstream, answers the question, and its records can be parsed to the end.
/// Its RCODE is a failure's (SERVFAIL, REFUSED …) only if no upstream said anything better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The message, whole. The case of its question's name is random.
    pub message: Vec<u8>,
    /// Its owner: the place in the settings.
    pub upstream: usize,
    /// How it came.
    pub way: QueryTransport,
    /// It was asked for with DO=1.
    pub dnssec_ok: bool,
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// Its payer has as many questions open as it may, or there was no room to send it: no upstream is to blame.
    NoShare,
    /// Names of its zone had no reply lately, and its payer has as many of them open as it may.
    SilentZone,
    /// There is no upstream for this name.
    NoUpstream,
    /// No upstream answered in time (RFC 8914 §4.23: code 22).
    NoReply,
    /// No upstream could be reached (RFC 8914 §4.24: code 23).
    Unreachable,
    /// Upstreams replied, and none usably: malformed, referrals, or without a question.
    Unusable,
}
