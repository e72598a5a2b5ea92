//! What clients are given: flags, sections, OPT record, truncation.

use super::upstream::{NOW, Reply, query, shown, wire};
use sixway_control::dns64::answer::Answer;
use sixway_control::dns64::compose::{self, LocalRecord, ResponseOptions};
use sixway_control::dns64::query::{Edns, Query};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

const SOA: &str = "example.org. 3600 SOA ns.example.org. host.example.org. 1 7200 900 1209600 600";
const DRESS: ResponseOptions<'static> = ResponseOptions {
    now: NOW,
    authentic: false,
    authoritative: false,
    ttl: None,
    limit: None,
    extended_error: None,
    upstream_error: None,
    cookie: None,
    keepalive: None,
    udp_payload: 1232,
    pad: false,
};

/// As `compose` writes it for a query for that name.
fn served(
    (name, rtype): (&str, &str),
    edns: Option<(u16, bool)>,
    compose: impl FnOnce(&mut Vec<u8>, &Query<'_>),
) -> Vec<u8> {
    let message = query(&wire(name), rtype, edns, [1, 0]);
    let mut out = vec![0xee; 7];
    compose(&mut out, &Query::read(&message).unwrap());
    assert_eq!(out[..2], message[..2], "the ID");
    out
}

fn passed_on(reply: &Reply, edns: Option<(u16, bool)>, dress: &ResponseOptions<'_>) -> Vec<u8> {
    let answer = reply.read(true).unwrap();
    served((&reply.name, &reply.rtype), edns, |out, query| compose::forwarded(out, query, &answer, dress))
}

fn addresses(count: usize) -> Reply {
    let records: Vec<_> = (0..count).map(|n| format!("a.example.org. 300 AAAA 2001:db8::{n:x}")).collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    Reply::to("a.example.org.", "AAAA", &records, &["example.org. 300 NS ns.example.org."])
}

fn signed() -> Reply {
    let answer = [
        "a.example.org. 300 AAAA 2001:db8::1",
        "a.example.org. 300 AAAA ::ffff:192.0.2.1",
        "a.example.org. 300 RRSIG AAAA example.org.",
    ];
    let authority = ["example.org. 300 NS ns.example.org.", "example.org. 300 RRSIG NS example.org."];
    Reply::to("a.example.org.", "AAAA", &answer, &authority)
}

#[test]
fn flags_are_those_of_the_query_and_of_the_dress() {
    let answer = addresses(1).read(false).unwrap();
    let flags = |flags: [u8; 2], dress: ResponseOptions<'_>| {
        let message = query(&wire("a.example.org."), "AAAA", None, flags);
        let mut out = Vec::new();
        compose::forwarded(&mut out, &Query::read(&message).unwrap(), &answer, &dress);
        [out[2], out[3]]
    };
    assert_eq!(flags([0, 0], DRESS), [0x80, 0x80], "QR and RA");
    assert_eq!(flags([1, 0x30], DRESS), [0x81, 0x90], "RD and CD are copied, AD is not");
    assert_eq!(
        flags([0, 0], ResponseOptions { authentic: true, authoritative: true, ..DRESS }),
        [0x84, 0xa0]
    );
}

#[test]
fn dnssec_records_are_given_to_those_who_want_them() {
    let [answer, authority, _] = shown(&passed_on(&signed(), None, &DRESS));
    assert_eq!((answer.len(), authority.len()), (2, 0));
    let [answer, ..] = shown(&passed_on(&signed(), Some((1232, false)), &DRESS));
    assert_eq!(answer.len(), 2);
    let [answer, authority, _] = shown(&passed_on(&signed(), Some((1232, true)), &DRESS));
    assert_eq!((answer.len(), authority.len()), (3, 0));
    assert!(answer[2].contains("RRSIG"), "signatures come last");
}

#[test]
fn dnssec_records_that_are_queried_are_given_in_any_case() {
    let reply = Reply::to("a.example.org.", "RRSIG", &["a.example.org. 300 RRSIG AAAA example.org."], &[]);
    let [answer, ..] = shown(&passed_on(&reply, None, &DRESS));
    assert_eq!(answer.len(), 1);
}

#[test]
fn excluded_addresses_are_left_out_with_their_signatures() {
    let answer = signed().read(true).unwrap();
    let serve = |excluded: &dyn Fn(Ipv6Addr) -> bool| {
        let mut left_out = 0;
        let message = served(("a.example.org.", "AAAA"), Some((1232, true)), |out, query| {
            left_out =
                compose::filtered(out, query, &answer, |address| is_excluded(excluded, address), &DRESS);
        });
        (left_out, shown(&message)[0].clone())
    };
    let mapped = |address: Ipv6Addr| address.to_ipv4_mapped().is_some();
    assert_eq!(serve(&mapped), (1, vec!["a.example.org. 300 AAAA 2001:db8::1".to_owned()]));
    assert_eq!(serve(&|_| false).1.len(), 3);
    assert_eq!(serve(&|_| true), (2, vec![]));
    let emptied = served(("a.example.org.", "AAAA"), None, |out, query| {
        compose::filtered(out, query, &answer, |_| true, &DRESS);
    });
    let soa = "a.example.org. 60 SOA a.example.org. nobody.invalid. 1 3600 1200 604800 60";
    assert_eq!(shown(&emptied)[1], [soa], "nothing, with a SOA record (RFC 2308 §5)");
}

#[test]
fn ttls_are_what_is_left_of_them_or_what_is_stale_has() {
    let answer = addresses(1).read(false).unwrap();
    let ttl = |dress: ResponseOptions<'_>| {
        let message = served(("a.example.org.", "AAAA"), None, |out, query| {
            compose::forwarded(out, query, &answer, &dress);
        });
        shown(&message)[0][0].split(' ').nth(1).unwrap().parse::<u32>().unwrap()
    };
    let after = |millis| ttl(ResponseOptions { now: NOW + Duration::from_millis(millis), ..DRESS });
    assert_eq!([0, 999, 1_000, 299_999, 300_000, 900_000].map(after), [300, 300, 299, 1, 0, 0]);
    assert_eq!(ttl(ResponseOptions { ttl: Some(30), now: NOW + Duration::from_secs(1_000), ..DRESS }), 30);
}

#[test]
fn an_opt_record_is_given_to_who_sent_one_with_the_error_in_detail() {
    let dress = ResponseOptions { extended_error: Some((22, "no upstream")), ..DRESS };
    let empty = |edns| served(("a.", "AAAA"), edns, |out, query| compose::empty(out, query, 2, None, &dress));
    assert_eq!(
        empty(None)[2..],
        [&[0x81, 0x82, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 28, 0, 1][..]].concat()
    );
    let opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\x11\0\x0f\0\x0d\0\x16no upstream";
    assert!(empty(Some((1232, false))).ends_with(opt));
    let mut dnssec_ok = opt.to_vec();
    dnssec_ok[7] = 0x80;
    assert!(empty(Some((1232, true))).ends_with(&dnssec_ok), "DO is copied (RFC 3225 §3)");
}

#[test]
fn an_rcode_of_more_than_four_bits_is_in_the_opt_record() {
    let badcookie =
        |edns| served(("a.", "A"), edns, |out, query| compose::empty(out, query, 23, None, &DRESS));
    assert_eq!(badcookie(None)[3], 0x87);
    assert!(badcookie(Some((512, false))).ends_with(&[0, 0, 41, 4, 0xd0, 1, 0, 0, 0, 0, 0]));
}

#[test]
fn an_answer_over_the_limit_is_truncated_whole() {
    let whole = passed_on(&addresses(40), Some((4_096, false)), &DRESS);
    let limit = |limit: usize| {
        let dress = ResponseOptions { limit: Some(limit as u16), ..DRESS };
        passed_on(&addresses(40), Some((4_096, false)), &dress)
    };
    assert_eq!(limit(whole.len()), whole);
    let truncated = limit(whole.len() - 1);
    assert_eq!(truncated[2], 0x83, "TC");
    assert_eq!(truncated[4..12], [0, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!(truncated.len(), 12 + 15 + 4 + 11);
}

#[test]
fn a_text_makes_way_before_records_do() {
    let plain = passed_on(&addresses(3), Some((512, false)), &DRESS);
    let dress =
        ResponseOptions { limit: Some(plain.len() as u16 + 6), extended_error: Some((3, "stale")), ..DRESS };
    let message = passed_on(&addresses(3), Some((512, false)), &dress);
    assert_eq!((message.len(), message[2]), (plain.len() + 6, 0x81));
    assert!(message.ends_with(&[0, 15, 0, 2, 0, 3]));
}

#[test]
fn an_upstreams_error_is_told_next_to_ours() {
    let dress =
        ResponseOptions { extended_error: Some((0, "ours")), upstream_error: Some((15, "theirs")), ..DRESS };
    let message = passed_on(&addresses(1), Some((512, false)), &dress);
    assert!(message.ends_with(b"\0\x16\0\x0f\0\x06\0\0ours\0\x0f\0\x08\0\x0ftheirs"), "{message:?}");
    let short = ResponseOptions { limit: Some(message.len() as u16 - 1), ..dress };
    let message = passed_on(&addresses(1), Some((512, false)), &short);
    assert!(message.ends_with(&[0, 15, 0, 2, 0, 0, 0, 15, 0, 2, 0, 15]), "{message:?}");
}

#[test]
fn the_soa_record_of_no_is_not_spared() {
    let reply = Reply::to("a.example.org.", "AAAA", &[], &[SOA]).rcode(3);
    let whole = passed_on(&reply, None, &DRESS);
    let dress = ResponseOptions { limit: Some(whole.len() as u16 - 1), ..DRESS };
    let message = passed_on(&reply, None, &dress);
    assert_eq!(message[2..12], [0x83, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_padded_query_gets_a_padded_answer_where_that_hides_something() {
    let padded = |pad| {
        let mut message = query(&wire("a.example.org."), "AAAA", Some((1232, false)), [1, 0]);
        let length_at = message.len() - 1;
        message[length_at] = 5;
        message.extend([0, 12, 0, 1, 0]);
        let query = Query::read(&message).unwrap();
        let plain = Edns { payload: 1232, dnssec_ok: false, padding: true, keepalive: false, cookie: None };
        assert_eq!(query.edns, Some(plain));
        let mut out = Vec::new();
        compose::forwarded(
            &mut out,
            &query,
            &addresses(1).read(false).unwrap(),
            &ResponseOptions { pad, ..DRESS },
        );
        out.len()
    };
    assert_eq!(padded(true), 468);
    assert!(padded(false) < 100);
    assert!(
        passed_on(&addresses(1), Some((1232, false)), &ResponseOptions { pad: true, ..DRESS }).len() < 100
    );
}

#[test]
fn what_is_known_here_is_written_as_it_is() {
    let owner = wire("170.0.0.192.in-addr.arpa.");
    let host = wire("ipv4only.arpa.");
    let cname = LocalRecord { owner: None, rtype: 5, ttl: 60, data: &owner };
    let ptr = LocalRecord { owner: Some(&owner), rtype: 12, ttl: 70, data: &host };
    let dress = ResponseOptions { authoritative: true, ..DRESS };
    let message = served(("b.ip6.arpa.", "PTR"), None, |out, query| {
        compose::local(out, query, 0, (&[cname, ptr], &[]), &dress);
    });
    assert_eq!(
        shown(&message)[0],
        ["b.ip6.arpa. 60 CNAME 170.0.0.192.in-addr.arpa.", "170.0.0.192.in-addr.arpa. 70 PTR ipv4only.arpa."]
    );
    assert_eq!(message[2], 0x85);
}

fn reverse() -> Answer {
    // Delegation without classes (RFC 2317): the chain's target is written against the question.
    let answer = [
        "1.2.0.192.in-addr.arpa. 300 CNAME 1.0-63.2.0.192.in-addr.arpa.",
        "1.0-63.2.0.192.in-addr.arpa. 200 PTR host.2.0.192.in-addr.arpa.",
    ];
    let authority = ["2.0.192.in-addr.arpa. 900 NS ns.0-63.2.0.192.in-addr.arpa."];
    Reply::to("1.2.0.192.in-addr.arpa.", "PTR", &answer, &authority).read(false).unwrap()
}

#[test]
fn an_answer_at_another_name_is_led_to_with_its_names_written_out() {
    let answer = reverse();
    let target = wire("1.2.0.192.in-addr.arpa.");
    let cname = LocalRecord { owner: None, rtype: 5, ttl: 60, data: &target };
    let dress = ResponseOptions { now: NOW + Duration::from_secs(10), ..DRESS };
    let message = served(("1.0.2.0.0.0.0.c.ip6.arpa.", "PTR"), None, |out, query| {
        compose::rewritten(out, query, &[cname], &answer, &dress);
    });
    let [answer, authority, _] = shown(&message);
    assert_eq!(
        answer,
        [
            "1.0.2.0.0.0.0.c.ip6.arpa. 60 CNAME 1.2.0.192.in-addr.arpa.",
            "1.2.0.192.in-addr.arpa. 290 CNAME 1.0-63.2.0.192.in-addr.arpa.",
            "1.0-63.2.0.192.in-addr.arpa. 190 PTR host.2.0.192.in-addr.arpa.",
        ]
    );
    assert_eq!(authority, Vec::<String>::new());
}

#[test]
fn data_of_another_name_may_be_given_as_the_questions() {
    let answer = reverse();
    let message = served(("1.0.2.0.0.0.0.c.ip6.arpa.", "PTR"), None, |out, query| {
        compose::renamed(out, query, &answer, &DRESS);
    });
    assert_eq!(shown(&message)[0], ["1.0.2.0.0.0.0.c.ip6.arpa. 200 PTR host.2.0.192.in-addr.arpa."]);
}

#[test]
fn no_at_another_name_keeps_its_soa_record() {
    let soa = "2.0.192.in-addr.arpa. 900 SOA ns.example. host.example. 1 2 3 4 500";
    let answer = Reply::to("1.2.0.192.in-addr.arpa.", "PTR", &[], &[soa]).rcode(3).read(false).unwrap();
    let message = served(("1.0.2.0.0.0.0.c.ip6.arpa.", "PTR"), None, |out, query| {
        compose::empty(out, query, 3, Some(&answer), &DRESS);
    });
    assert_eq!(shown(&message)[1], ["2.0.192.in-addr.arpa. 500 SOA ns.example. host.example. 1 2 3 4 500"]);
}

fn unreadable(message: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![1, 2, 3];
    let unreadable = Query::read(message).expect_err("it cannot be read");
    compose::unreadable(&mut out, message, &unreadable, 1232).then_some(out)
}

#[test]
fn what_cannot_be_read_is_answered_as_far_as_that_goes() {
    let message = [0x12, 0x34, 0x01, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 7];
    let response = [&[0x12, 0x34, 0x81][..], &message[3..]].concat();
    assert_eq!(unreadable(&response), None);
    assert_eq!(unreadable(&message[..11]), None);
    let formerr = [0x12, 0x34, 0x81, 0x91, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(unreadable(&message), Some(formerr.to_vec()));
    let notify = [&[0x12, 0x34, 0x21][..], &message[3..]].concat();
    assert_eq!(unreadable(&notify).unwrap()[2..4], [0xa1, 0x94]);
}

#[test]
fn what_cannot_be_understood_is_answered_with_its_question() {
    let name = wire("A.example.org.");
    let whole = query(&name, "AAAA", Some((1232, true)), [1, 0]);
    let question = [&name[..], &[0, 28, 0, 1]].concat();
    let opt = whole[whole.len() - 11..].to_vec();
    let cut = whole[..whole.len() - 1].to_vec();
    let twice = [&whole[..11], &[2], &whole[12..], &opt].concat();
    let bad_option = [&whole[..whole.len() - 2], &[0, 3, 0, 12, 0]].concat();
    let notify = [&whole[..2], &[0x21], &whole[3..]].concat();
    for (message, rcode, has_opt) in
        [(cut, 1, false), (twice, 1, true), (bad_option, 1, true), (notify, 4, true)]
    {
        let answer = unreadable(&message).unwrap();
        assert_eq!((answer[3] & 15, &answer[4..12]), (rcode, &[0, 1, 0, 0, 0, 0, 0, u8::from(has_opt)][..]));
        assert!(answer[12..].starts_with(&question), "{answer:?}");
        // DO is copied (RFC 3225 §3).
        let ours = [0, 0, 41, 4, 0xd0, 0, 0, 0x80, 0, 0, 0];
        assert_eq!(&answer[12 + question.len()..], if has_opt { &ours[..] } else { &[] });
    }
}

#[test]
fn badvers_copies_do() {
    for dnssec_ok in [false, true] {
        let mut message = query(&wire("a."), "A", Some((1232, dnssec_ok)), [1, 0]);
        let version = message.len() - 5;
        message[version] = 1;
        let answer = unreadable(&message).unwrap();
        let opt = [0, 0, 41, 4, 0xd0, 1, 0, u8::from(dnssec_ok) << 7, 0, 0, 0];
        assert_eq!((answer[3] & 15, answer[5], answer[11]), (0, 1, 1));
        assert!(answer.ends_with(&[&[1, b'a', 0, 0, 1, 0, 1], &opt[..]].concat()), "{answer:?}");
    }
}

#[test]
fn octets_behind_the_last_record_do_no_harm() {
    let message = query(&wire("a.example.org."), "AAAA", Some((1232, false)), [1, 0]);
    let answer = addresses(1).read(false).unwrap();
    let serve = |message: &[u8]| {
        let mut out = Vec::new();
        compose::forwarded(&mut out, &Query::read(message).unwrap(), &answer, &DRESS);
        out
    };
    assert_eq!(serve(&[&message[..], b"trailing"].concat()), serve(&message));
}

fn is_excluded(excluded: &dyn Fn(Ipv6Addr) -> bool, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => excluded(address),
    }
}

/// Found by the fuzzer: the SOA record pointed at the chain's target, which was not in the message.
#[test]
fn no_that_is_given_without_its_chain_points_at_none() {
    let chain = ["a.example.org. 30 CNAME gone.example.net."];
    let soa = "example.net. 900 SOA ns.example.net. host.example.net. 1 2 3 4 500";
    let answer = Reply::to("a.example.org.", "AAAA", &chain, &[soa]).rcode(3).read(false).unwrap();
    for write in [
        (|out, query, answer| compose::empty(out, query, 3, Some(answer), &DRESS))
            as fn(&mut Vec<u8>, &Query<'_>, &Answer),
        |out, query, answer| compose::renamed(out, query, answer, &DRESS),
    ] {
        let message = served(("a.example.org.", "AAAA"), None, |out, query| write(out, query, &answer));
        assert_eq!(
            shown(&message)[1],
            ["example.net. 500 SOA ns.example.net. host.example.net. 1 2 3 4 500"]
        );
    }
}
