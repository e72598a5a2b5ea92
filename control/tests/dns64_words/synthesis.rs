//! AAAA records made of A records.

use super::upstream::{Reply, query, shown};
use sixway_control::Instant;
use sixway_control::dns64::answer::{Answer, Bounds, Kind};
use sixway_control::dns64::compose::{self, Embedded, ResponseOptions};
use sixway_control::dns64::query::Query;
use std::net::Ipv4Addr;
use std::time::Duration;

const BOUNDS: Bounds =
    Bounds { dnssec_ok: false, longest_ttl: 86_400, longest_negative_ttl: 10_800, failure_ttl: 5, zone: 1 };

fn embed(four: Ipv4Addr, list: &mut Embedded) {
    list.push((0x64_ff9b << 96 | u128::from(four.to_bits())).into());
}

#[test]
fn an_a_answer_with_a_chain_becomes_an_aaaa_answer_with_that_chain() {
    let reply = Reply::to(
        "www.example.org.",
        "A",
        &[
            "www.example.org. 300 CNAME web.example.net.",
            "web.example.net. 200 A 192.0.2.1",
            "web.example.net. 200 A 192.0.2.2",
        ],
        &["example.net. 900 NS ns.example.net."],
    );
    let message = query(b"\x03wWw\x07Example\x03org\0", "AAAA", Some((1232, false)), [1, 0]);
    let query = Query::read(&message).unwrap();
    let now = Instant::from_secs(100);
    let answer = Answer::read(&query.key(false).with_type(1), &reply.octets(), now, &BOUNDS).unwrap();
    let mut out = Vec::new();
    let dress = ResponseOptions {
        now: now + Duration::from_secs(60),
        udp_payload: 1232,
        ..ResponseOptions::default()
    };
    assert_eq!(compose::synthesised(&mut out, &query, &answer, Some(100), embed, &dress), 2);
    let [records, authority, additional] = shown(&out);
    assert_eq!(
        records,
        [
            "wWw.Example.org. 240 CNAME web.example.net.",
            "web.example.net. 100 AAAA 64:ff9b::c000:201",
            "web.example.net. 100 AAAA 64:ff9b::c000:202",
        ]
    );
    assert_eq!(authority, Vec::<String>::new());
    assert_eq!(additional, Vec::<String>::new());
}

#[test]
fn four_thousand_a_records_by_tcp_end_with_tc() {
    let records: Vec<String> =
        (0..4_000).map(|n| format!("a.example. 9 A 10.0.{}.{}", n / 256, n % 256)).collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let reply = Reply::to("a.example.", "A", &records, &[]);
    let message = query(b"\x01a\x07example\0", "AAAA", Some((1232, false)), [1, 0]);
    let query = Query::read(&message).unwrap();
    let answer = Answer::read(&reply.key(), &reply.octets(), Instant::from_secs(100), &BOUNDS).unwrap();
    let mut out = Vec::new();
    let dress = ResponseOptions { now: Instant::from_secs(100), ..ResponseOptions::default() };
    let made = compose::synthesised(&mut out, &query, &answer, None, embed, &dress);
    assert!((2_300..4_000).contains(&made), "{made}");
    assert_eq!(out[2], 0x83, "TC");
    assert_eq!(shown(&out)[0].len(), made, "as many records as there is room for");
    let text = format!("only {made} of 4000 records");
    assert!(out.ends_with(&[&[0, 15, 0, text.len() as u8 + 2, 0, 0], text.as_bytes()].concat()));
    // Without EDNS there is only TC.
    let plain = &message[..message.len() - 11];
    let plain = [&plain[..11], &[0], &plain[12..]].concat();
    compose::synthesised(&mut out, &Query::read(&plain).unwrap(), &answer, None, embed, &dress);
    assert_eq!((out[2], shown(&out)[0].len()), (0x83, made));
}

#[test]
fn a_failure_has_no_records_and_is_kept_for_some_seconds() {
    let message = query(b"\x03www\0", "A", None, [1, 0]);
    let query = Query::read(&message).unwrap();
    let reply = Reply::to("www.", "A", &[], &[]).rcode(2).octets();
    let answer = Answer::read(&query.key(false), &reply, Instant::from_secs(1), &BOUNDS).unwrap();
    assert_eq!((answer.kind(), answer.lifetime()), (Kind::Failure(2), 5));
    let mut out = Vec::new();
    assert_eq!(compose::synthesised(&mut out, &query, &answer, None, embed, &ResponseOptions::default()), 0);
    assert_eq!(out, []);
    compose::forwarded(&mut out, &query, &answer, &ResponseOptions::default());
    assert_eq!(out[2..12], [0x81, 0x82, 0, 1, 0, 0, 0, 0, 0, 0]);
}
