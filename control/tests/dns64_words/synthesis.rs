//! AAAA records made of A records.

use super::upstream::{Reply, query, shown};
use sixway_control::Instant;
use sixway_control::dns64::answer::{Answer, Bounds, Kind};
use sixway_control::dns64::compose::{self, Embedded, ResponseOptions};
use sixway_control::dns64::query::Query;
use std::net::Ipv4Addr;
use std::time::Duration;

const BOUNDS: Bounds =
    Bounds { dnssec_ok: false, longest_ttl: 86_400, longest_negative_ttl: 10_800, failure_ttl: 5 };

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
    assert_eq!(authority, ["example.net. 840 NS ns.example.net."]);
    assert_eq!(additional, Vec::<String>::new());
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
