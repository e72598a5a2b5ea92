//! What an answer from the DNS64's cache costs, in nanoseconds, and what a name takes, in octets: `cargo bench -p sixway-control --bench cache`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at the first surprise")]
#![allow(missing_docs)]

#[path = "../../dataplane/benches/median/mod.rs"]
mod median;

use median::median;
use sixway_control::Instant as Moment;
use sixway_control::dns64::answer::{Answer, Bounds};
use sixway_control::dns64::cache::Cache;
use sixway_control::dns64::compose::{self, Embedded, ResponseOptions};
use sixway_control::dns64::key::Key;
use sixway_control::dns64::query::Query;
use std::hint::black_box;
use std::time::Instant;

const NAMES: usize = 100_000;
const NOW: Moment = Moment::from_secs(1_000);
const BOUNDS: Bounds =
    Bounds { dnssec_ok: false, longest_ttl: 86_400, longest_negative_ttl: 10_800, failure_ttl: 5, zone: 1 };

/// Numbers that look random (splitmix64), the same in every run.
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The time a call takes, the median of seven rounds through the inputs.
fn measure<T, R>(name: &str, inputs: &[T], mut call: impl FnMut(&T) -> R) {
    let mut rounds = [0.0; 7];
    for round in &mut rounds {
        let start = Instant::now();
        for input in inputs {
            black_box(call(black_box(input)));
        }
        *round = start.elapsed().as_nanos() as f64 / inputs.len() as f64;
    }
    println!("{name:<58} {:>8.1} ns", median(&mut rounds));
}

fn name(number: usize) -> Vec<u8> {
    let label = format!("host{number}");
    [b"\x03www", &[label.len() as u8][..], label.as_bytes(), b"\x07example\x03org\0"].concat()
}

/// Header and question; QR set in a reply.
fn message(name: &[u8], qtype: u16, reply: bool, counts: [u8; 3]) -> Vec<u8> {
    let [answers, authorities, additionals] = counts;
    let flags = if reply { 0x80 } else { 1 };
    let header = [0, 7, flags, 0, 0, 1, 0, answers, 0, authorities, 0, additionals];
    [&header, name, &qtype.to_be_bytes(), &[0, 1]].concat()
}

fn client_query(number: usize) -> Vec<u8> {
    let opt = [0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0];
    [&message(&name(number), 28, false, [0, 0, 1])[..], &opt].concat()
}

fn addresses(number: usize) -> (Key, Vec<u8>) {
    let [.., b, c, d] = number.to_be_bytes();
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, b, c, d];
    let name = name(number);
    (Key::of(&name, 1, 1, false), [&message(&name, 1, true, [1, 0, 0])[..], &record].concat())
}

fn no_addresses(number: usize) -> (Key, Vec<u8>) {
    let name = name(number);
    let zone = 12 + name.len() as u8 - 13;
    let record = [0xc0, zone, 0, 6, 0, 1, 0, 0, 14, 16, 0, 39];
    let names = [&[3, b'n', b's', b'1', 0xc0, zone, 10][..], b"hostmaster", &[0xc0, zone]].concat();
    let numbers = [0, 0, 0, 1, 0, 0, 28, 32, 0, 0, 3, 132, 0, 18, 117, 0, 0, 0, 2, 88];
    let question = message(&name, 28, true, [0, 1, 0]);
    (Key::of(&name, 28, 1, false), [&question[..], &record, &names, &numbers].concat())
}

fn read((key, reply): &(Key, Vec<u8>)) -> Answer {
    Answer::read(key, reply, NOW, &BOUNDS).unwrap()
}

fn embed(four: std::net::Ipv4Addr, list: &mut Embedded) {
    list.push((0x0064_ff9b << 96 | u128::from(four.to_bits())).into());
}

fn dress() -> ResponseOptions<'static> {
    let now = Moment::from_secs(1_010);
    ResponseOptions { now, udp_payload: 1232, limit: Some(1232), ..ResponseOptions::default() }
}

/// Query to answer: AAAA is looked for, then A, from which AAAA is made.
fn synthesise(cache: &Cache, message: &[u8], out: &mut Vec<u8>) -> usize {
    let query = Query::read(message).unwrap();
    let key = query.key(false);
    let bound = cache.get(&key).and_then(|entry| entry.negative_ttl(dress().now));
    let a = cache.get(&key.with_type(1)).unwrap();
    compose::synthesised(out, &query, a, bound, embed, &dress())
}

fn main() {
    let mut cache = Cache::new(64 << 20, 7);
    for number in 0..NAMES {
        for reply in [addresses(number), no_addresses(number)] {
            cache.insert(&reply.0, read(&reply));
        }
    }
    assert_eq!((cache.len(), cache.evicted()), (2 * NAMES, 0));
    println!("{NAMES} names: {} octets a name, of both entries", cache.octets() / NAMES);

    let random = |n: usize| scattered(n as u64) as usize % NAMES;
    let queries: Vec<_> = (0..NAMES).map(|n| client_query(random(n))).collect();
    let few: Vec<_> = (0..NAMES).map(|n| client_query(random(n) % 100)).collect();
    let mut out = Vec::with_capacity(65_535);
    measure("a query is read", &few, |message| Query::read(message).map(|query| query.qtype));
    measure("a query is read and an entry found, of 100 names", &few, |message| {
        cache.get(&Query::read(message).unwrap().key(false)).is_some()
    });
    measure("synthesis, of 100 names", &few, |message| synthesise(&cache, message, &mut out));
    measure("synthesis, of 100,000 names", &queries, |message| synthesise(&cache, message, &mut out));
    measure("\"no\" is passed on, of 100 names", &few, |message| {
        let query = Query::read(message).unwrap();
        compose::forwarded(&mut out, &query, cache.get(&query.key(false)).unwrap(), &dress());
    });
    let replies: Vec<_> = (0..10_000).map(addresses).collect();
    measure("an upstream's A record is read", &replies, read);
    let replies: Vec<_> = (0..10_000).map(no_addresses).collect();
    measure("an upstream's \"no\" is read", &replies, read);
}
