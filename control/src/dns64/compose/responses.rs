//! The kinds of answers, each a whole message.

use super::copy::{self, Ageing, Section};
use super::message::{self, MessageWriter, QUESTION_NAME};
use super::options::{LocalRecord, ResponseOptions};
use crate::dns64::answer::{Answer, NOERROR, Part, rtype};
use crate::dns64::query::{Query, Unreadable};
use std::net::IpAddr;

/// The upstream's answer, unchanged.
pub fn forwarded(out: &mut Vec<u8>, query: &Query<'_>, answer: &Answer, options: &ResponseOptions<'_>) {
    let mut message = MessageWriter::begin(out, query, answer.rcode(), options);
    let mut section = Section::of(&mut message, query, answer, options);
    section.part(Part::Chain);
    section.part(Part::Data);
    if query.dnssec_ok() {
        section.part(Part::Signatures);
    }
    section.authority(query.dnssec_ok());
    message.finish();
}

/// The upstream's answer without the A and AAAA records whose addresses are `excluded`. Returns how many were omitted. If any is, their
/// signatures are omitted too.
pub fn filtered(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    answer: &Answer,
    mut excluded: impl FnMut(IpAddr) -> bool,
    options: &ResponseOptions<'_>,
) -> usize {
    let mut left_out = 0;
    let mut message = MessageWriter::begin(out, query, answer.rcode(), options);
    let mut section = Section::of(&mut message, query, answer, options);
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
    let first = answer.raw_records(Part::Data).next().filter(|_| left_out == answer.count(Part::Data));
    match first {
        Some(record) => message.own_soa(answer.raw_owner(&record)),
        None => section.authority(query.dnssec_ok()),
    }
    message.finish();
    left_out
}

/// An answer without records, except those of another answer's authority section.
pub fn empty(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    rcode: u16,
    authority: Option<&Answer>,
    options: &ResponseOptions<'_>,
) {
    let mut message = MessageWriter::begin(out, query, rcode, options);
    if let Some(answer) = authority {
        Section::of(&mut message, query, answer, options).without_chain().authority(query.dnssec_ok());
    }
    message.finish();
}

/// Nothing of the type at the name, because it is withheld: with a SOA record of our own, so that this can be kept for a while.
pub fn withheld(out: &mut Vec<u8>, query: &Query<'_>, options: &ResponseOptions<'_>) {
    let mut message = MessageWriter::begin(out, query, NOERROR, options);
    message.own_soa(&QUESTION_NAME);
    message.finish();
}

/// A local answer: records of the answer section and of the authority section.
pub fn local(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    rcode: u16,
    (answer, authority): (&[LocalRecord<'_>], &[LocalRecord<'_>]),
    options: &ResponseOptions<'_>,
) {
    let mut message = MessageWriter::begin(out, query, rcode, options);
    for record in answer {
        message.local(record, Part::Data);
    }
    for record in authority {
        message.local(record, Part::Authority);
    }
    message.finish();
}

/// A record that leads to another name (RFC 6147 §5.3.1), and the answer for that name.
pub fn rewritten(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    leading: &[LocalRecord<'_>],
    answer: &Answer,
    options: &ResponseOptions<'_>,
) {
    let mut message = MessageWriter::begin(out, query, answer.rcode(), options);
    for record in leading {
        message.local(record, Part::Chain);
    }
    let ageing = Ageing::of(answer, options);
    copy::expanded(&mut message, answer, Part::Chain, ageing, None);
    copy::expanded(&mut message, answer, Part::Data, ageing, None);
    if query.dnssec_ok() {
        copy::expanded(&mut message, answer, Part::Signatures, ageing, None);
    }
    Section::of(&mut message, query, answer, options).without_chain().authority(query.dnssec_ok());
    message.finish();
}

/// The data that another name has, as if they were the question name's; its chain is left out.
pub fn renamed(out: &mut Vec<u8>, query: &Query<'_>, answer: &Answer, options: &ResponseOptions<'_>) {
    let mut message = MessageWriter::begin(out, query, answer.rcode(), options);
    copy::expanded(&mut message, answer, Part::Data, Ageing::of(answer, options), Some(query.name));
    if answer.count(Part::Data) == 0 {
        Section::of(&mut message, query, answer, options).without_chain().authority(false);
    }
    message.finish();
}

/// The answer to an unreadable query. Returns whether there is one.
pub fn unreadable(out: &mut Vec<u8>, query: &[u8], what: &Unreadable, udp_payload: u16) -> bool {
    message::unreadable(out, query, what, udp_payload)
}
