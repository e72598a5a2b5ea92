//! Queries that are answered from the cache, in memory, for a program that counts instructions:
//! `valgrind --tool=callgrind --toggle-collect='cached_queries::drive' cached_queries QUERIES [NAMES]`. With `time` as a third argument: nanoseconds.
//!
//! Each query is for AAAA records of a name that has A records only, with an OPT record, as dig and dnsperf write it. Only what `drive` calls counts.
#![allow(clippy::unwrap_used, reason = "a tool for developers may stop at the first surprise")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it reads the clock if asked to")]

use sixway_control::Instant;
use sixway_control::dns64::{
    Access, Asker, Dnssec, Heard, Limits, Outcome, Resolver, Reverse, Settings, SpecialNames, Stale,
    SynthesisedTtl, Transport, Upstream,
};
use sixway_dataplane::translate::address::Rfc6052;
use std::sync::Arc;
use std::time::Duration;

/// Octets of a message's header (RFC 1035 §4.1.1).
const HEADER: usize = 12;
/// RFC 1035 §3.2.2.
const A: u8 = 1;

/// A configuration with only an upstream and a prefix.
fn settings() -> Settings {
    Settings {
        upstreams: vec![Upstream { names: vec![], datagrams: true }],
        upstream_labels: vec!["192.0.2.53".into()],
        prefixes: vec![Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap()],
        rules: vec![],
        access: Access { v6: vec!["2001:db8::/32".parse().unwrap()], ..Access::default() },
        exclude: vec!["::ffff:0:0/96".parse().unwrap()],
        exclude4: Vec::new(),
        exclude_private: false,
        synthesise_reserved: false,
        synthesised_ttl: SynthesisedTtl::Negative,
        reverse: Reverse::Cname { ttl: 600 },
        local_ipv4only: true,
        special_names: SpecialNames::Local,
        hosts: Arc::default(),
        designated: Vec::new(),
        cookie_secrets: Vec::new(),
        stream_idle: Some(Duration::from_secs(30)),
        parallel: true,
        dnssec: Dnssec::default(),
        stale: Some(Stale {
            longest: Duration::from_secs(86_400),
            patience: Duration::from_millis(1_800),
            ttl: 30,
        }),
        prefetch: true,
        minimal_any: true,
        limits: Limits {
            cache: 64 << 20,
            waiting: 10_000,
            per_client: None,
            udp_payload: 1_232,
            longest_ttl: 86_400,
            longest_negative_ttl: 10_800,
            upstream_questions: 8_192,
            client_prefix_length: 64,
            deadline: Duration::from_millis(4_800),
        },
    }
}

fn query(number: usize) -> Vec<u8> {
    let label = format!("host-{number}");
    let header = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    let opt = [0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0];
    let name = [&[label.len() as u8][..], label.as_bytes(), b"\x06cached\x07example\0"].concat();
    [&header[..], &name, &[0, 28, 0, 1], &opt].concat()
}

/// What the upstream replies: one A record, or that there is nothing.
fn reply(asked: &[u8]) -> Vec<u8> {
    let name = asked[HEADER..].iter().position(|octet| *octet == 0).unwrap() + 1;
    let question = &asked[HEADER..HEADER + name + 4];
    let is_a = question[name + 1] == A;
    let counts = [0, 1, 0, u8::from(is_a), 0, u8::from(!is_a), 0, 0];
    let header = [&[asked[0], asked[1], 0x81, 0x80][..], &counts, question].concat();
    let record = match is_a {
        true => vec![0xc0, 12, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 45, 64, 0, 9],
        false => {
            let numbers = [1_u32, 3_600, 600, 86_400, 3_600].map(u32::to_be_bytes).concat();
            let zone = (HEADER + name - b"\x06cached\x07example\0".len()) as u8;
            [&[0xc0, zone, 0, 6, 0, 1, 0, 0, 0x0e, 0x10, 0, 22, 0, 0][..], &numbers].concat()
        }
    };
    [header, record].concat()
}

/// What is counted.
#[inline(never)]
fn drive(
    resolver: &mut Resolver<u32>,
    now: Instant,
    asker: &Asker<u32>,
    query: &[u8],
    out: &mut Vec<u8>,
) -> Heard {
    resolver.handle_query(now, asker, query, out)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let (count, names) = (number(0, 10_000), number(1, 1_000));
    let mut now = Instant::from_secs(1_000);
    let mut resolver = Resolver::new(settings(), [7; 32], now);
    resolver.set_wall_clock(now, 1_800_000_000);
    let asker = Asker { address: "2001:db8:1::2".parse().unwrap(), transport: Transport::Udp, ticket: 0 };
    let queries: Vec<_> = (0..names).map(query).collect();
    let mut out = Vec::with_capacity(65_535);
    for query in &queries {
        assert_eq!(resolver.handle_query(now, &asker, query, &mut out), Heard::Waiting);
        while let Some(transmit) = resolver.poll_transmit(now) {
            let said = reply(&transmit.message);
            resolver.handle_reply(now, transmit.exchange, Ok(&said));
        }
        while resolver.poll_cancel().is_some() {}
        assert_eq!(resolver.poll_answer(now, &mut out).map(|it| it.1), Some(Outcome::Synthesised));
    }
    now = now + Duration::from_secs(10);
    let start = std::time::Instant::now();
    for at in 0..count {
        let heard = drive(&mut resolver, now, &asker, &queries[at * 7 % names], &mut out);
        assert_eq!(heard, Heard::Answered(Outcome::Synthesised));
    }
    if arguments.get(2).is_some_and(|word| word == "time") {
        println!("{:.1} ns a query", start.elapsed().as_nanos() as f64 / count as f64);
    }
}
