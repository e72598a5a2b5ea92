//! Synthesis of AAAA records from A records (RFC 6147 §5.1.7).

use super::copy::{Ageing, Section};
use super::message::MessageWriter;
use super::options::{Embedded, ResponseOptions};
use crate::dns64::answer::{Answer, NOERROR, Part, RawRecord, rtype};
use crate::dns64::query::Query;
use std::net::Ipv4Addr;

/// Octets of an AAAA record behind its owner's name.
const BEHIND_OWNER: usize = 10 + 16;

/// The answer for A as the answer to a query for AAAA: its chain, and for each of its A records the addresses that `embed` puts into the (empty)
/// list. No TTL exceeds `bound`, in seconds. Returns the number of synthesised records; if 0, no message is written.
pub fn synthesised(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    a: &Answer,
    bound: Option<u32>,
    mut embed: impl FnMut(Ipv4Addr, &mut Embedded),
    options: &ResponseOptions<'_>,
) -> usize {
    let (mut made, mut left_out) = (0, 0);
    let mut addresses = Embedded::new();
    let ageing = Ageing::of(a, options);
    let mut message = MessageWriter::begin(out, query, NOERROR, options);
    let is_own = Section::of(&mut message, query, a, options).with_part(Part::Chain);
    for record in a.raw_records(Part::Data).filter(|record| record.rtype == rtype::A) {
        if message.is_too_large() {
            break;
        }
        let Some(octets) = record.data.first_chunk::<4>() else { continue };
        addresses.clear();
        embed(Ipv4Addr::from(*octets), &mut addresses);
        let ttl = ageing.ttl(record.ttl).min(bound.unwrap_or(u32::MAX));
        for address in &addresses {
            let owner = a.raw_owner(&record);
            if !message.has_room(owner.len() + BEHIND_OWNER) {
                left_out += 1;
                continue;
            }
            message.out.extend_from_slice(owner);
            message.out.extend_from_slice(&aaaa(&record, ttl));
            message.out.extend_from_slice(&address.octets());
            made += 1;
        }
    }
    message.count(Part::Data, made);
    if left_out != 0 {
        message.cut_short(made, u32::from(made) + left_out);
    }
    if made == 0 {
        out.clear();
        return 0;
    }
    let mut section = Section::again(&mut message, a, ageing, is_own);
    if query.dnssec_ok() {
        section.records(Part::Signatures, |record| !record.covers(rtype::A));
    }
    section.authority(query.dnssec_ok());
    message.finish();
    made.into()
}

/// The answer for AAAA as the answer to a query for A: its chain, and at the end of that these addresses, which represent its servers. Their
/// TTL is `ttl`, in seconds; the chain has its own.
pub fn mapped(
    out: &mut Vec<u8>,
    query: &Query<'_>,
    aaaa: &Answer,
    (addresses, ttl): (&[Ipv4Addr], u32),
    options: &ResponseOptions<'_>,
) {
    let mut message = MessageWriter::begin(out, query, NOERROR, options);
    Section::of(&mut message, query, aaaa, options).part(Part::Chain);
    let data = aaaa.raw_records(Part::Data).find(|record| record.rtype == rtype::AAAA);
    if let Some(record) = data {
        for address in addresses {
            message.out.extend_from_slice(aaaa.raw_owner(&record));
            message.out.extend_from_slice(&fields(rtype::A, &record, ttl, 4));
            message.out.extend_from_slice(&address.octets());
            message.count(Part::Data, 1);
        }
    }
    message.finish();
}

/// Type, class, TTL and length of an AAAA record.
fn aaaa(record: &RawRecord<'_>, ttl: u32) -> [u8; 10] {
    fields(rtype::AAAA, record, ttl, 16)
}

/// Type, class, TTL and length of a record that is made of another one.
fn fields(rtype: u16, record: &RawRecord<'_>, ttl: u32, length: u8) -> [u8; 10] {
    let [t0, t1] = rtype.to_be_bytes();
    let [c0, c1] = record.class.to_be_bytes();
    let [ttl0, ttl1, ttl2, ttl3] = ttl.to_be_bytes();
    [t0, t1, c0, c1, ttl0, ttl1, ttl2, ttl3, 0, length]
}
