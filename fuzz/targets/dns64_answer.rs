//! Any octets are a DNS query or none, and an upstream's reply or none; what is believed of a reply is in order, and each answer that is
//! composed of it decodes, is not larger than allowed, and says to its reader what was believed.
//!
//! The input: flags (an octet), the age of the reply when it is served (an octet, in quarters of a minute), the length of a client's query (two octets) and
//! that query; then replies, each with its length (two octets) before it. Unless the flags say otherwise, a reply gets the header bits of one and
//! the question that it is read for, which no fuzzer would find: behind its twelve octets records follow immediately.

use domain::base::name::ToLabelIter;
use domain::base::{Message, ParsedRecord, Rtype, UnknownRecordData};
use domain::rdata::AllRecordData;
use sixway_control::Instant;
use sixway_control::dns64::answer::{Answer, Bounds, Kind, LONGEST_CHAIN, Part, Record, rtype};
use sixway_control::dns64::cache::Cache;
use sixway_control::dns64::compose::{self, Embedded, LocalRecord, ResponseOptions};
use sixway_control::dns64::key::Key;
use sixway_control::dns64::name;
use sixway_control::dns64::query::Query;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const NOW: Instant = Instant::from_secs(100_000);
const HEADER: usize = 12;
const LONGEST_TTL: u32 = 86_400;

/// The flags: a reply is taken as it is; no DNSSEC was asked for; the upstream was asked for A whatever the client asked.
const AS_IT_IS: u8 = 1;
const PLAIN: u8 = 2;
const FOR_A: u8 = 4;

pub fn run(octets: &[u8]) {
    let Some(([flags, age, high, low], rest)) = octets.split_first_chunk() else { return };
    let (message, mut replies) = split(rest, [*high, *low]);
    let query = match Query::read(message) {
        Ok(query) => query,
        Err(why) => {
            let mut out = Vec::new();
            let answered = compose::unreadable(&mut out, message, &why, 1232);
            assert_eq!(answered, !out.is_empty());
            return if answered {
                drop(decode(&out))
            };
        }
    };
    assert_eq!(name::measure(query.name), Some(query.name.len()));
    let bounds = Bounds {
        dnssec_ok: flags & PLAIN == 0,
        longest_ttl: LONGEST_TTL,
        longest_negative_ttl: 10_800,
        failure_ttl: 5,
        zone: 1,
    };
    let mut key = query.key(false);
    if flags & FOR_A != 0 {
        key = key.with_type(rtype::A);
    }
    let mut cache = Cache::new(200_000, 1);
    let mut unfinished: Option<Answer> = None;
    while let Some(([high, low], rest)) = replies.split_first_chunk() {
        let (reply, behind) = split(rest, [*high, *low]);
        replies = behind;
        let target = unfinished.as_ref().and_then(Answer::target);
        let about = target.map_or(key, |target| key.with_name(&target.0));
        let reply = if flags & AS_IT_IS == 0 { dressed(&about, reply) } else { reply.to_vec() };
        let Ok(read) = Answer::read(&about, &reply, NOW, &bounds) else { continue };
        judge(&read, &bounds);
        let Some(whole) = unfinished.take().map_or(Some(read.clone()), |so_far| so_far.joined(&read)) else {
            continue;
        };
        judge(&whole, &bounds);
        serve(&query, &whole, NOW + Duration::from_secs(u64::from(*age) * 15));
        if whole.kind() == Kind::Unfinished {
            unfinished = Some(whole.clone());
        }
        cache.insert(&key, whole);
        assert!(cache.octets() <= 200_000 && cache.get(&key).is_none_or(|found| found.key() == key));
    }
}

fn split(octets: &[u8], length: [u8; 2]) -> (&[u8], &[u8]) {
    octets.split_at(usize::from(u16::from_be_bytes(length)).min(octets.len()))
}

/// A reply's records behind the question that it ought to answer.
fn dressed(key: &Key, reply: &[u8]) -> Vec<u8> {
    let (header, records) = reply.split_at(HEADER.min(reply.len()));
    let mut message = header.to_vec();
    message.resize(HEADER, 0);
    message[2] = 0x80;
    message[4..6].copy_from_slice(&[0, 1]);
    message.extend(&key.octets()[1..]);
    message.extend(records);
    message
}

fn records(answer: &Answer, part: Part) -> Vec<Record> {
    let records: Vec<_> = answer.records(part).collect();
    assert_eq!(records.len(), answer.count(part), "a record that cannot be read back");
    records
}

/// The accepted records form a chain from the question's name, and there are none about other names.
fn judge(answer: &Answer, bounds: &Bounds) {
    let mut at = answer.key().name().to_vec();
    let mut links = 0;
    for link in records(answer, Part::Chain) {
        match link.rtype {
            rtype::CNAME => {
                assert!(name::same(&link.owner, &at), "a link from nowhere");
                at = link.data.to_vec();
                links += 1;
            }
            rtype::DNAME => assert!(name::is_within(&at, &link.owner), "a DNAME record of others"),
            other => panic!("type {other} in a chain"),
        }
    }
    assert!(links <= LONGEST_CHAIN);
    for record in records(answer, Part::Data) {
        assert!(name::same(&record.owner, &at), "data of another name");
    }
    for record in records(answer, Part::Authority) {
        assert!(name::is_within(&at, &record.owner), "a zone of others");
    }
    let tails = [Part::Signatures, Part::Proofs].map(|part| answer.count(part));
    assert!(bounds.dnssec_ok || tails == [0, 0], "DNSSEC records that nobody asked for");
    let all = Part::ALL.iter().flat_map(|part| records(answer, *part));
    assert!(all.map(|record| record.ttl).max() <= Some(LONGEST_TTL));
    assert!(answer.lifetime() <= LONGEST_TTL);
}

/// Each way to serve an answer, to a client with and without DO, at a datagram's size and a stream's.
fn serve(query: &Query<'_>, answer: &Answer, later: Instant) {
    let mut out = Vec::new();
    let error = Some((22, "no upstream"));
    for limit in [None, Some(512), Some(query.edns.map_or(512, |edns| edns.payload))] {
        let dress = ResponseOptions {
            now: later,
            limit,
            extended_error: error,
            pad: limit.is_none(),
            ..ResponseOptions::default()
        };
        compose::empty(&mut out, query, answer.rcode(), Some(answer), &dress);
        decode_within(&out, query, limit);
        let leading = LocalRecord { owner: None, rtype: rtype::CNAME, ttl: 60, data: answer_name(answer) };
        compose::rewritten(&mut out, query, &[leading], answer, &dress);
        decode_within(&out, query, limit);
        compose::renamed(&mut out, query, answer, &dress);
        decode_within(&out, query, limit);
        if answer.key().name().eq_ignore_ascii_case(query.name) {
            compose::filtered(
                &mut out,
                query,
                answer,
                |address| matches!(address, IpAddr::V6(six) if six.octets()[15] & 1 != 0),
                &dress,
            );
            decode_within(&out, query, limit);
            synthesise(query, answer, &dress);
            compose::forwarded(&mut out, query, answer, &dress);
            decode_within(&out, query, limit);
            read_again(query, answer);
        }
    }
}

fn answer_name(answer: &Answer) -> &'static [u8] {
    if answer.count(Part::Data) == 0 { b"\x07example\0" } else { b"\0" }
}

fn synthesise(query: &Query<'_>, answer: &Answer, dress: &ResponseOptions<'_>) {
    let embed = |four: Ipv4Addr, into: &mut Embedded| {
        into.extend(
            (0..four.to_bits() % 9)
                .map(|prefix| (u128::from(prefix) << 96 | u128::from(four.to_bits())).into()),
        );
    };
    let mut out = Vec::new();
    let expected: usize = answer.addresses4().map(|four| four.to_bits() as usize % 9).sum();
    let made = compose::synthesised(&mut out, query, answer, Some(77), embed, dress);
    // What would be truncated is not made to its end.
    let truncated = out.get(2).is_some_and(|flags| flags & 2 != 0);
    assert!(made == expected || truncated || made > 2_000, "{made} of {expected}");
    assert_eq!(made == 0, out.is_empty());
    if made > 0 {
        decode_within(&out, query, dress.limit);
    }
}

/// What is served to a client that takes DNSSEC records is accepted again, unchanged.
fn read_again(query: &Query<'_>, answer: &Answer) {
    let edns = Some(sixway_control::dns64::query::Edns {
        payload: 1232,
        dnssec_ok: true,
        padding: false,
        keepalive: false,
        cookie: None,
    });
    let query = Query { edns, ..*query };
    let key = query.key(false);
    // A chain's end that was asked about by itself looks like a chain without end, if "no" came without SOA record.
    let endless = answer.count(Part::Chain) != 0 && answer.count(Part::Authority) == 0;
    if key != answer.key() || answer.rcode() > 15 || endless && answer.kind() == Kind::NoData {
        return;
    }
    let mut out = Vec::new();
    compose::forwarded(&mut out, &query, answer, &ResponseOptions { now: NOW, ..ResponseOptions::default() });
    if out[2] & 2 != 0 {
        return;
    }
    let bounds = Bounds {
        dnssec_ok: true,
        longest_ttl: LONGEST_TTL,
        longest_negative_ttl: 10_800,
        failure_ttl: 5,
        zone: 1,
    };
    let again = Answer::read(&key, &out, NOW, &bounds).expect("we serve what we would not believe");
    assert_eq!((again.kind(), again.lifetime()), (answer.kind(), answer.lifetime()));
    for part in Part::ALL {
        let lower =
            |answer: &Answer| records(answer, part).into_iter().map(in_lower_case).collect::<Vec<_>>();
        assert_eq!(lower(&again), lower(answer), "{part:?}");
    }
}

/// Names come back in the question's case; data are compared without it, since names are among them.
fn in_lower_case(record: Record) -> Record {
    Record {
        owner: record.owner.to_ascii_lowercase().into(),
        data: record.data.to_ascii_lowercase().into(),
        ..record
    }
}

fn decode_within(message: &[u8], query: &Query<'_>, limit: Option<u16>) {
    assert!(message.len() <= limit.map_or(65_535, usize::from).max(HEADER + query.name.len() + 4 + 17));
    let end = HEADER + query.name.len() + 4;
    assert_eq!(message[HEADER..end], query.message[HEADER..end], "the question");
    assert_eq!(message[..2], query.message[..2], "the ID");
    let ttls = decode(message);
    assert!(ttls.into_iter().max() <= Some(LONGEST_TTL));
}

/// TTLs of all records but OPT, as another's reader sees them: it reads all that is there, names in data too, and nothing is behind it.
fn decode(message: &[u8]) -> Vec<u32> {
    let decoded = Message::from_octets(message).expect("it has a header");
    let (question, answer, authority, additional) = decoded.sections().expect("its sections can be read");
    let questions =
        question.map(|question| question.expect("its question can be read").qname().compose_len());
    let mut end = HEADER + questions.map(|length| usize::from(length) + 4).sum::<usize>();
    let mut ttls = Vec::new();
    for record in answer.chain(authority).chain(additional) {
        let record: ParsedRecord<'_, _> = record.expect("its records can be read");
        let data =
            record.to_record::<UnknownRecordData<&[u8]>>().expect("so can their data").expect("of any type");
        let data = data.data().data();
        end = data.as_ptr() as usize - message.as_ptr() as usize + data.len();
        if let Rtype::CNAME | Rtype::NS | Rtype::SOA | Rtype::MX | Rtype::PTR = record.rtype() {
            record.to_any_record::<AllRecordData<_, _>>().expect("so can names in their data");
        }
        if record.rtype() != Rtype::OPT {
            ttls.push(record.ttl().as_secs());
        }
    }
    assert_eq!(end, message.len(), "octets behind the last record");
    ttls
}
