//! Replies made to do harm, octet by octet.

use super::upstream::{NOW, Reply, bounds, query, shown, wire};
use sixway_control::dns64::answer::{Answer, Part, Rejection};
use sixway_control::dns64::compose::{self, Embedded, ResponseOptions};
use sixway_control::dns64::key::Key;
use sixway_control::dns64::query::Query;

/// A reply to a query for A of "a.example.", with this number of records, whose octets are `records`: they begin at octet 27.
fn reply(count: u8, records: &[u8]) -> Vec<u8> {
    let header = [0, 0, 0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0];
    [&header[..], b"\x01a\x07example\0\0\x01\0\x01", records].concat()
}

fn read(reply: &[u8], qtype: u16) -> Result<Answer, Rejection> {
    Answer::read(&Key::of(&wire("a.example."), qtype, 1, false), reply, NOW, &bounds(true))
}

/// Type, class and TTL of a record, and its data's length.
fn fields(rtype: u8, length: u8) -> [u8; 10] {
    [0, rtype, 0, 1, 0, 0, 0, 9, 0, length]
}

#[test]
fn a_name_that_points_at_itself_forwards_or_in_a_circle_is_malformed() {
    for owner in [&b"\xc0\x1b"[..], b"\xc0\x1c", b"\xc0\x29", b"\xff\xff", b"\x01x\xc0\x1b", b"\xc0"] {
        let octets = reply(1, &[owner, &fields(1, 4), &[192, 0, 2, 1]].concat());
        assert_eq!(read(&octets, 1).unwrap_err(), Rejection::Malformed, "{owner:?}");
    }
    let good = reply(1, &[&b"\xc0\x0c"[..], &fields(1, 4), &[192, 0, 2, 1]].concat());
    assert_eq!(read(&good, 1).unwrap().count(Part::Data), 1);
}

#[test]
fn a_name_in_data_that_leads_out_of_its_data_is_malformed() {
    // The CNAME record's target takes the next record's first label with it.
    let cname = [&b"\xc0\x0c"[..], &fields(5, 2), b"\x01x"].concat();
    let next = [&b"\x01y\0"[..], &fields(1, 4), &[192, 0, 2, 1]].concat();
    assert_eq!(read(&reply(2, &[cname, next].concat()), 1).unwrap_err(), Rejection::Malformed);
    let behind = [&b"\xc0\x0c"[..], &fields(5, 4), b"\x01x\0\0"].concat();
    assert_eq!(read(&reply(1, &behind), 1).unwrap_err(), Rejection::Malformed, "an octet too many");
}

#[test]
fn a_label_of_another_kind_is_malformed() {
    for label in [0x40, 0x41, 0x80, 0xbf] {
        let octets = reply(1, &[&[label, 0][..], &fields(1, 4), &[192, 0, 2, 1]].concat());
        assert_eq!(read(&octets, 1).unwrap_err(), Rejection::Malformed);
    }
}

#[test]
fn counts_that_promise_more_than_there_is_are_malformed() {
    let record = [&b"\xc0\x0c"[..], &fields(1, 4), &[192, 0, 2, 1]].concat();
    for (at, expected) in [(7, 2), (9, 1), (11, 1)] {
        let mut octets = reply(1, &record);
        octets[at] = expected;
        assert_eq!(read(&octets, 1).unwrap_err(), Rejection::Malformed, "count at {at}");
    }
}

#[test]
fn a_reply_of_every_kind_of_record_cut_anywhere_is_malformed() {
    let answer = [
        "a.example. 300 CNAME b.example.org.",
        "b.example.org. 300 MX 10 mail.example.org.",
        "b.example.org. 300 RRSIG MX example.org.",
    ];
    let authority = [
        "example.org. 900 SOA ns.example.org. host.example.org. 1 2 3 4 5",
        "example.org. 900 NSEC z.example.org.",
    ];
    let whole = Reply::to("a.example.", "MX", &answer, &authority).octets();
    assert!(read(&whole, 15).is_ok());
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length], 15).unwrap_err(), Rejection::Malformed, "cut at {length}");
    }
}

#[test]
fn signatures_without_a_signer_prove_nothing() {
    let signature = [&b"\xc0\x0c"[..], &fields(46, 3), &[0, 1, 8]].concat();
    assert_eq!(read(&reply(1, &signature), 1).unwrap_err(), Rejection::Malformed);
}

#[test]
fn a_flood_of_signatures_is_not_looked_at_to_its_end() {
    let mut authority = vec![String::from("example. 900 SOA ns.example. host.example. 1 2 3 4 500")];
    authority.extend((0..700).map(|n| format!("n{n}.example. 900 RRSIG NSEC example.")));
    authority.extend((0..700).map(|n| format!("n{n}.example. 900 NSEC n{}.example.", n + 1)));
    let authority: Vec<&str> = authority.iter().map(String::as_str).collect();
    let answer = Reply::to("a.example.", "AAAA", &[], &authority).read(true).unwrap();
    assert_eq!(answer.count(Part::Proofs), 2 * 128);
}

#[test]
fn sixty_four_kibioctets_of_addresses_make_a_message_and_no_more() {
    let record = |n: usize| format!("a.example. 9 A 10.0.{}.{}", n / 256, n % 256);
    let records: Vec<String> = (0..4_000).map(record).collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let answer = Reply::to("a.example.", "A", &records, &[]).read(false).unwrap();
    let message = query(&wire("a.example."), "AAAA", Some((1232, false)), [1, 0]);
    let query = Query::read(&message).unwrap();
    let embed = |four: std::net::Ipv4Addr, into: &mut Embedded| {
        into.extend((0..8).map(|prefix| (prefix << 64 | u128::from(four.to_bits())).into()));
    };
    let mut out = Vec::new();
    let made = compose::synthesised(
        &mut out,
        &query,
        &answer,
        None,
        embed,
        &ResponseOptions { now: NOW, ..ResponseOptions::default() },
    );
    assert_eq!((made, shown(&out)[0].len()), (2_330, 2_330));
    assert!(out.len() <= 65_535);
    let limit = Some(1232);
    let dress = ResponseOptions { now: NOW, limit, ..ResponseOptions::default() };
    compose::synthesised(&mut out, &query, &answer, None, embed, &dress);
    assert_eq!((out[2], out.len()), (0x83, 12 + 15 + 11), "TC");
}

#[test]
fn records_of_another_class_are_ignored() {
    let mut octets = reply(1, &[&b"\xc0\x0c"[..], &fields(1, 4), &[192, 0, 2, 1]].concat());
    octets[32] = 3;
    assert_eq!(read(&octets, 1).unwrap().count(Part::Data), 0);
}
