//! From a query's octets to its answer nothing is allocated, if the answer's buffer has room.

use super::upstream::{NOW, Reply, query, wire};
use allocation_counter::measure;
use sixway_control::dns64::cache::Cache;
use sixway_control::dns64::compose::{self, Embedded, LocalRecord, ResponseOptions};
use sixway_control::dns64::query::Query;
use std::net::Ipv4Addr;
use std::time::Duration;

const SOA: &str = "example.org. 3600 SOA ns.example.org. host.example.org. 1 7200 900 1209600 600";
const ANSWER: [&str; 4] = [
    "www.example.org. 300 CNAME web.example.net.",
    "web.example.net. 200 A 192.0.2.1",
    "web.example.net. 200 A 192.0.2.2",
    "web.example.net. 200 RRSIG A example.net.",
];

fn cache() -> Cache {
    let mut cache = Cache::new(1 << 20, 7);
    let soa = [SOA, "example.org. 3600 RRSIG SOA example.org."];
    for reply in [
        Reply::to("www.example.org.", "A", &ANSWER, &["example.net. 900 NS ns.example.net."]),
        Reply::to("www.example.org.", "AAAA", &[], &soa),
        Reply::to("six.example.org.", "AAAA", &["six.example.org. 300 AAAA 2001:db8::1"], &[]),
    ] {
        cache.insert(&reply.key(), reply.read(true).unwrap());
    }
    cache
}

fn embed(four: Ipv4Addr, list: &mut Embedded) {
    list.extend((0..8).map(|prefix| (prefix << 64 | 0x64_ff9b << 96 | u128::from(four.to_bits())).into()));
}

/// One query of each kind, answered from the cache.
fn answer_all(cache: &Cache, messages: &[Vec<u8>], out: &mut Vec<u8>) {
    let text = Some((22, "no upstream answered"));
    let dress = ResponseOptions {
        now: NOW + Duration::from_secs(9),
        extended_error: text,
        pad: true,
        ..ResponseOptions::default()
    };
    let truncated = ResponseOptions { limit: Some(100), ..dress };
    for message in messages {
        let query = Query::read(message).unwrap();
        let key = query.key(false);
        let local = LocalRecord { owner: None, rtype: 1, ttl: 7, data: &[192, 0, 0, 170] };
        compose::local(out, &query, 0, (&[local], &[]), &dress);
        compose::empty(out, &query, 2, None, &dress);
        if let Some(entry) = cache.get(&key) {
            compose::filtered(out, &query, entry, |address| address.is_multicast(), &dress);
            compose::forwarded(out, &query, entry, &truncated);
            compose::forwarded(out, &query, entry, &dress);
        }
        if let Some(a) = cache.get(&key.with_type(1)) {
            let bound = cache.peek(&key).and_then(|entry| entry.negative_ttl(dress.now));
            compose::synthesised(out, &query, a, bound, embed, &dress);
        }
        let other = Query {
            name: b"\x05other\0",
            message: b"\0\0\0\0\0\0\0\0\0\0\0\0\x05other\0\0\x1c\0\x01",
            ..query
        };
        if let Some(entry) = cache.get(&key) {
            compose::rewritten(out, &other, &[local], entry, &dress);
            compose::renamed(out, &other, entry, &dress);
        }
    }
    let unreadable = Query::read(&[0; 12]).expect_err("it has no question");
    compose::unreadable(out, &[0; 12], &unreadable, 1232);
}

#[test]
fn answering_from_the_cache_allocates_nothing() {
    let cache = cache();
    let messages: Vec<Vec<u8>> = ["www.example.org.", "six.Example.org.", "absent.example.org."]
        .iter()
        .flat_map(|name| ["A", "AAAA"].map(|rtype| (wire(name), rtype)))
        .flat_map(|(name, rtype)| [None, Some((1232, true))].map(|edns| query(&name, rtype, edns, [1, 0])))
        .collect();
    let mut out = Vec::with_capacity(65_535);
    let counted = measure(|| answer_all(&cache, &messages, &mut out));
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    assert!(measure(|| drop(vec![0_u8; 9])).count_total > 0, "allocations are counted");
}

#[test]
fn the_memory_a_cache_says_it_has_is_what_it_asked_for() {
    let mut held = None;
    let counted = measure(|| {
        let mut cache = Cache::new(8 << 20, 7);
        for number in 0..10_000 {
            let name = format!("host{number}.example.org.");
            let reply = Reply::to(&name, "A", &[&format!("{name} 300 A 192.0.2.1")], &[]);
            cache.insert(&reply.key(), reply.read(false).unwrap());
        }
        held = Some(cache);
    });
    let (said, asked) = (held.unwrap().octets() as i64, counted.bytes_current);
    // What is said counts the allocator's own octets: up to 23 for each of the entries.
    assert!((asked..asked + 10_000 * 23 + 1_000).contains(&said), "{said} said, {asked} asked for");
}
