//! Answers to clients, written into a buffer that is there already: nothing is allocated as long as it has room.
//!
//! Each function writes one whole message. What goes into it beside records says [`Dress`].

mod copy;
mod message;
mod synthesis;

pub use synthesis::synthesised;

use super::answer::{Answer, Part, rtype};
use super::query::{Query, Unreadable};
use crate::Instant;
use arrayvec::ArrayVec;
use copy::{Ageing, Section};
use message::Message;
use std::net::{IpAddr, Ipv6Addr};

/// Addresses that one A record becomes: one for each prefix.
pub type Embedded = ArrayVec<Ipv6Addr, 8>;

/// What a message is given beside its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dress<'a> {
    /// The time: TTLs are what is left of them.
    pub now: Instant,
    /// AD.
    pub authentic: bool,
    /// AA.
    pub authoritative: bool,
    /// All TTLs are this one: of what is stale (RFC 8767 §4).
    pub ttl: Option<u32>,
    /// A larger message is truncated; `None`: a stream's, which takes 65,535 octets.
    pub limit: Option<u16>,
    /// What an EDNS client is told beyond the RCODE (RFC 8914).
    pub extended_error: Option<(u16, &'a str)>,
    /// The payload that the OPT record says we take, in octets.
    pub udp_payload: u16,
    /// The message is padded if the client padded its query (RFC 8467): only where it is encrypted.
    pub pad: bool,
}

/// A record that is known here. Names in its data are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRecord<'a> {
    /// Whose it is; `None`: the question's name.
    pub owner: Option<&'a [u8]>,
    /// TYPE.
    pub rtype: u16,
    /// TTL, in seconds.
    pub ttl: u32,
    /// RDATA.
    pub data: &'a [u8],
}

/// What the upstream said.
pub fn passed_on(out: &mut Vec<u8>, query: &Query<'_>, answer: &Answer, dress: &Dress<'_>) {
    let mut message = Message::begin(out, query, answer.rcode(), dress);
    let mut section = Section::of(&mut message, query, answer, dress);
    section.part(Part::Chain);
    section.part(Part::Data);
    if query.dnssec_ok() {
        section.part(Part::Signatures);
    }
    section.authority(query.dnssec_ok());
    message.finish();
}

/// What the upstream said, without the A and AAAA records whose addresses are `excluded`; says how many were left out. Signatures of records
/// some of which were left out are left out too.
pub fn filtered(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    answer: &Answer,
    mut excluded: impl FnMut(IpAddr) -> bool,
    dress: &Dress<'_>,
) -> usize {
    let mut left_out = 0;
    let mut message = Message::begin(out, query, answer.rcode(), dress);
    let mut section = Section::of(&mut message, query, answer, dress);
    section.part(Part::Chain);
    section.records(Part::Data, |record| {
        let is_excluded = record.address().is_some_and(&mut excluded);
        left_out += usize::from(is_excluded);
        !is_excluded
    });
    if query.dnssec_ok() {
        section.records(Part::Signatures, |record| {
            left_out == 0 || !(record.covers(rtype::AAAA) || record.covers(rtype::A))
        });
    }
    // An empty answer with NS records would look like a referral (RFC 2308 §2.2).
    if left_out < answer.count(Part::Data) {
        section.authority(query.dnssec_ok());
    }
    message.finish();
    left_out
}

/// No records, but for those of another answer's authority section.
pub fn empty(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    rcode: u16,
    authority: Option<&Answer>,
    dress: &Dress<'_>,
) {
    let mut message = Message::begin(out, query, rcode, dress);
    if let Some(answer) = authority {
        Section::of(&mut message, query, answer, dress).without_chain().authority(query.dnssec_ok());
    }
    message.finish();
}

/// What is known here: records of the answer section, and of the authority section.
pub fn local(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    rcode: u16,
    (answer, authority): (&[LocalRecord<'_>], &[LocalRecord<'_>]),
    dress: &Dress<'_>,
) {
    let mut message = Message::begin(out, query, rcode, dress);
    for record in answer {
        message.local(record, Part::Data);
    }
    for record in authority {
        message.local(record, Part::Authority);
    }
    message.finish();
}

/// A record that leads to another name (RFC 6147 §5.3.1), and what was said about that name.
pub fn rewritten(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    leading: &[LocalRecord<'_>],
    answer: &Answer,
    dress: &Dress<'_>,
) {
    let mut message = Message::begin(out, query, answer.rcode(), dress);
    for record in leading {
        message.local(record, Part::Chain);
    }
    let ageing = Ageing::of(answer, dress);
    copy::expanded(&mut message, answer, Part::Chain, ageing, None);
    copy::expanded(&mut message, answer, Part::Data, ageing, None);
    if query.dnssec_ok() {
        copy::expanded(&mut message, answer, Part::Signatures, ageing, None);
    }
    Section::of(&mut message, query, answer, dress).without_chain().authority(query.dnssec_ok());
    message.finish();
}

/// The data that another name has, as if they were the question name's; its chain is left out.
pub fn renamed(out: &mut Vec<u8>, query: &Query<'_>, answer: &Answer, dress: &Dress<'_>) {
    let mut message = Message::begin(out, query, answer.rcode(), dress);
    copy::expanded(&mut message, answer, Part::Data, Ageing::of(answer, dress), Some(query.name));
    if answer.count(Part::Data) == 0 {
        Section::of(&mut message, query, answer, dress).without_chain().authority(false);
    }
    message.finish();
}

/// The answer to what could not be read; says whether there is one.
pub fn unreadable(out: &mut Vec<u8>, query: &[u8], why: Unreadable, udp_payload: u16) -> bool {
    message::unreadable(out, query, why, udp_payload)
}
