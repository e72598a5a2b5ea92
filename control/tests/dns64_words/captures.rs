//! Replies as BIND 9 sent them (`named`, authoritative, `minimal-responses no`), octet by octet.

use super::upstream::{NOW, bounds, part, query, shown, wire};
use sixway_control::dns64::answer::{Answer, Kind, Part};
use sixway_control::dns64::compose::{self, ResponseOptions};
use sixway_control::dns64::key::Key;
use sixway_control::dns64::query::Query;

/// A of "wWw.exAmple.org": a chain, whose target BIND does not compress against a name of another case.
const CHAIN: &str = "7a318400000100030001000203775777076578416d706c65036f7267000001000103777777076578616d706c65036f726700000500010000012c00\
                     15037765620363646e076578616d706c65036f726700c03c000100010000003c0004c0000201c03c000100010000003c0004c0000202c02500\
                     0200010000012c0006036e7331c025c07d000100010000012c0004c000023500002904d0000000000000";
/// AAAA of the same: "no" at the chain's end.
const NO_DATA: &str = "7a318400000100010001000103777777076578616d706c65036f726700001c0001c00c000500010000012c0015037765620363646e076578616d\
                       706c65036f726700c01000060001000002580027036e7331c0100a686f73746d6173746572c0100000000100001c20000003840012750000000\
                       25800002904d0000000000000";
/// AAAA of a name that does not exist.
const NAME_ERROR: &str = "7a318403000100000001000104676f6e65076578616d706c65036f726700001c0001c01100060001000002580027036e7331c0110a686f7374\
                          6d6173746572c0110000000100001c2000000384001275000000025800002904d0000000000000";
/// A of a name below a DNAME record, which leads out of the zone.
const DNAME: &str = "7a31840000010002000000010161036f6c64076578616d706c65036f72670000010001c00e002700010000012c0011036e6577076578616d706c6\
                     5036e657400c00c000500010000012c00040161c02f00002904d0000000000000";

fn read(name: &str, qtype: u16, hex: &str) -> (Vec<u8>, Answer) {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let octets: Vec<u8> = digits.chunks(2).map(octet).collect();
    let key = Key::of(&wire(name), qtype, 1, false);
    let answer = Answer::read(&key, &octets, NOW, &bounds(true)).unwrap();
    (octets, answer)
}

/// What a client is given that asks in capitals.
fn served(name: &str, rtype: &str, answer: &Answer) -> [Vec<String>; 3] {
    let message = query(&wire(&name.to_ascii_uppercase()), rtype, None, [1, 0]);
    let mut out = Vec::new();
    let dress = ResponseOptions { now: NOW, ..ResponseOptions::default() };
    compose::forwarded(&mut out, &Query::read(&message).unwrap(), answer, &dress);
    shown(&out)
}

#[test]
fn a_chain_and_its_addresses_are_read_and_the_additional_section_is_not() {
    let (_, answer) = read("www.example.org.", 1, CHAIN);
    assert_eq!((answer.kind(), answer.lifetime()), (Kind::Data, 60));
    assert_eq!(part(&answer, Part::Chain), ["www.example.org. 300 CNAME web.cdn.example.org."]);
    let [records, authority, additional] = served("www.example.org.", "A", &answer);
    assert_eq!(
        records,
        [
            "WWW.EXAMPLE.ORG. 300 CNAME web.cdn.EXAMPLE.ORG.",
            "web.cdn.EXAMPLE.ORG. 60 A 192.0.2.1",
            "web.cdn.EXAMPLE.ORG. 60 A 192.0.2.2"
        ]
    );
    assert_eq!((authority.len(), additional.len()), (0, 0));
}

#[test]
fn no_at_a_chains_end_is_read_with_the_zones_soa_record() {
    let (_, answer) = read("www.example.org.", 28, NO_DATA);
    assert_eq!((answer.kind(), answer.lifetime(), answer.negative_ttl(NOW)), (Kind::NoData, 300, Some(600)));
    let [records, authority, _] = served("www.example.org.", "AAAA", &answer);
    assert_eq!(records, ["WWW.EXAMPLE.ORG. 300 CNAME web.cdn.EXAMPLE.ORG."]);
    assert!(authority[0].starts_with("EXAMPLE.ORG. 600 SOA ns1.EXAMPLE.ORG. hostmaster.EXAMPLE.ORG. 1 "));
}

#[test]
fn a_name_that_does_not_exist_is_read_as_such() {
    let (_, answer) = read("gone.example.org.", 28, NAME_ERROR);
    assert_eq!((answer.kind(), answer.rcode(), answer.lifetime()), (Kind::NameError, 3, 600));
}

#[test]
fn a_dname_record_that_leads_out_of_the_zone_is_read_as_an_unfinished_chain() {
    let (_, answer) = read("a.old.example.org.", 1, DNAME);
    assert_eq!(answer.kind(), Kind::Unfinished);
    assert_eq!(answer.target().unwrap().0[..], wire("a.new.example.net."));
    assert_eq!(answer.count(Part::Chain), 2);
}

#[test]
fn each_of_them_cut_anywhere_is_not_believed() {
    for (name, qtype, hex) in [
        ("www.example.org.", 1, CHAIN),
        ("www.example.org.", 28, NO_DATA),
        ("gone.example.org.", 28, NAME_ERROR),
        ("a.old.example.org.", 1, DNAME),
    ] {
        let (octets, answer) = read(name, qtype, hex);
        for length in 0..octets.len() {
            let cut = Answer::read(&answer.key(), &octets[..length], NOW, &bounds(true));
            assert!(cut.is_err(), "{name} cut at {length}");
        }
    }
}
