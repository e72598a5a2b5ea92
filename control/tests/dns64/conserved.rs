//! Whatever happens: each query has one answer, in time, and no answer is one that it must not be.

use super::world::{Bits, Manner, World, decode, query, query_without_edns, settings, wire};
use proptest::prelude::*;
use sixway_control::Instant;
use sixway_control::dns64::{Anchor, AnchorKey, Dnssec, Outcome, Settings, Transport, Upstream};
use sixway_trial::budget;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// No one waits longer.
const PATIENCE: Duration = Duration::from_secs(5);
const NAMES: usize = 5;
const TYPES: [&str; 6] = ["AAAA", "AAAA", "AAAA", "A", "MX", "CNAME"];
const LIVES: [u32; 5] = [0, 1, 12, 60, 300];

/// What a name of the zone has.
#[derive(Clone, Copy, Debug)]
struct Owns {
    alias: bool,
    a: bool,
    a_of_nobody: bool,
    aaaa: bool,
    mapped: bool,
    ttl: usize,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask { name: usize, rtype: usize, bits: u8, times: u8 },
    Behave { upstream: usize, manner: u8 },
    Slow { milliseconds: u64, links: usize },
    Pass(u64),
    Jump(u64),
    Flush,
}

fn owns() -> impl Strategy<Value = Owns> {
    (prop::bool::weighted(0.2), any::<[bool; 4]>(), 0..LIVES.len()).prop_map(|(alias, has, ttl)| Owns {
        alias,
        a: has[0],
        a_of_nobody: has[1],
        aaaa: has[2],
        mapped: has[3],
        ttl,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let ask = (0..NAMES + 1, 0..TYPES.len(), any::<u8>(), 1..6_u8);
    prop_oneof![
        8 => ask.prop_map(|(name, rtype, bits, times)| Event::Ask { name, rtype, bits, times }),
        3 => (0..2_usize, any::<u8>()).prop_map(|(upstream, manner)| Event::Behave { upstream, manner }),
        1 => (0..3_000_u64, prop::sample::select(vec![1, 2, 20])).prop_map(|(milliseconds, links)| Event::Slow { milliseconds, links }),
        4 => (0..2_500_u64).prop_map(Event::Pass),
        2 => (0..400_000_u64).prop_map(Event::Pass),
        1 => (0..200_000_u64).prop_map(Event::Jump),
        1 => Just(Event::Flush),
    ]
}

fn manner(number: u8) -> Manner {
    match number % 14 {
        0 => Manner::Silent,
        1 => Manner::SilentTo(28),
        2 => Manner::SilentTo(1),
        3 => Manner::Servfail,
        4 => Manner::ServfailTo(28),
        5 => Manner::ServfailTo(1),
        6 => Manner::Unreachable,
        7 => Manner::Authentic,
        8 => Manner::AuthenticButFor(28),
        9 => Manner::WithoutEdns,
        10 => Manner::Rcode(u16::from(number) / 8),
        11 => Manner::Truncating,
        12 => Manner::Garbling,
        _ => Manner::Honest,
    }
}

fn choices(bits: u8) -> Settings {
    let has = |bit: u8| bits >> bit & 1 == 1;
    let mut settings = settings();
    settings.upstreams.push(Upstream { names: vec![], datagrams: !has(0) });
    settings.parallel = has(1);
    settings.stale = settings.stale.filter(|_| has(2));
    settings.prefetch = has(3);
    settings.limits.waiting = if has(4) { 6 } else { 1_000 };
    settings.limits.cache = if has(5) { 20_000 } else { 1 << 20 };
    settings.dnssec.trust_upstream = has(6);
    if has(7) && has(6) {
        let key = AnchorKey::Ds([&[0, 1, 13, 2][..], &[7; 32]].concat().into());
        let insecure = if has(3) { vec![wire("test")] } else { vec![] };
        let anchors = vec![Anchor { zone: wire("test"), key }];
        settings.dnssec = Dnssec { validate: true, anchors, insecure, ..Dnssec::default() };
    }
    settings
}

fn name(number: usize) -> String {
    format!("n{number}.test")
}

/// A world, and what clients wait for in it.
struct Test {
    world: World,
    zone: Vec<Owns>,
    /// Ticket → when it came, name, type, bits.
    asked: BTreeMap<u32, (Instant, usize, &'static str, Bits)>,
    /// No upstream ever did anything but its duty.
    honest: bool,
}

impl Test {
    fn new(choice: u8, zone: Vec<Owns>) -> Self {
        let mut world = World::new(choices(choice));
        for (number, owns) in zone.iter().enumerate() {
            let (owner, ttl) = (name(number), LIVES[owns.ttl]);
            let mut add = |has: bool, rtype: &str, data: &str| {
                if has {
                    world.add(&[(&owner, rtype, ttl, data)]);
                }
            };
            add(owns.alias, "CNAME", &name(number + 1));
            add(owns.a && !owns.alias, "A", "192.0.2.1");
            add(owns.a_of_nobody && !owns.alias, "A", "127.0.0.1");
            add(owns.aaaa && !owns.alias, "AAAA", "2001:db8::1");
            add(owns.mapped && !owns.alias, "AAAA", "::ffff:192.0.2.1");
        }
        Self { world, zone, asked: BTreeMap::new(), honest: true }
    }

    fn ask(&mut self, number: usize, rtype: &'static str, octet: u8) {
        let bit = |bit: u8| octet >> bit & 1 == 1;
        let edns = octet & 0xf0 != 0;
        let bits =
            Bits { dnssec_ok: edns && bit(0), checking_disabled: bit(1), authentic_data: edns && bit(2) };
        let mut message =
            if edns { query(&name(number), rtype, bits) } else { query_without_edns(&name(number), rtype) };
        message[3] |= u8::from(bits.checking_disabled) << 4;
        message[2] &= if octet >> 3 == 0b11111 { !1 } else { !0 };
        let transport = if bit(4) { Transport::Udp } else { Transport::Tcp };
        let now = self.world.now;
        let ticket = self.world.send_from(World::client(), transport, &message);
        self.asked.insert(ticket, (now, number, rtype, bits));
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ask { name, rtype, bits, times } => {
                (0..times).for_each(|time| self.ask(name, TYPES[rtype], bits ^ time >> 1));
            }
            Event::Behave { upstream, manner: number } => {
                self.honest &= manner(number) == Manner::Honest;
                self.world.manners[upstream] = manner(number);
            }
            Event::Slow { milliseconds, links } => {
                self.honest &= milliseconds < 300;
                self.world.latency = Duration::from_millis(milliseconds);
                self.world.links = links;
            }
            Event::Pass(milliseconds) => self.world.pass(Duration::from_millis(milliseconds)),
            Event::Jump(seconds) => {
                self.honest = false;
                self.world.jump(Duration::from_secs(seconds));
            }
            Event::Flush => {
                self.world.resolver.flush(&[0]);
            }
        }
    }

    fn check(&mut self) {
        for (ticket, message, outcome) in self.world.take_answers() {
            let (_, number, rtype, bits) = self.asked.remove(&ticket).expect("one answer, to who asked");
            self.judge((number, rtype, bits), &message, outcome);
        }
        let counters = self.world.counters();
        let answered: u64 = counters.outcomes.iter().sum();
        let waiting = self.world.resolver.waiting();
        assert_eq!(counters.queries, answered + waiting as u64);
        assert_eq!(waiting, self.asked.len());
        let oldest = self.asked.values().map(|(since, ..)| self.world.now - *since).max();
        assert!(oldest.is_none_or(|oldest| oldest < PATIENCE), "{oldest:?}");
    }

    fn judge(&self, asked: (usize, &str, Bits), message: &[u8], outcome: Outcome) {
        let (number, rtype, bits) = asked;
        let got = decode(message, Duration::ZERO);
        assert!(bits.dnssec_ok || !got.authentic, "{asked:?} {got:?}");
        assert!(!(bits.checking_disabled && got.authentic), "{asked:?} {got:?}");
        let addresses = got.answer.iter().filter_map(|record| record.split(" IN AAAA ").nth(1));
        let addresses: Vec<Ipv6Addr> = addresses.map(|text| text.parse().expect("an address")).collect();
        let within = |start: &[u16]| addresses.iter().any(|address| address.segments().starts_with(start));
        let is_made = within(&[0x64, 0xff9b]);
        if bits.checking_disabled && bits.dnssec_ok {
            assert!(!is_made && outcome != Outcome::Synthesised, "{asked:?} {got:?}");
        } else {
            assert!(!within(&[0, 0, 0, 0, 0, 0xffff]), "{asked:?} {got:?}");
        }
        assert!(addresses.is_empty() || rtype == "AAAA");
        assert!(!addresses.iter().any(|address| address.segments()[6] == 0x7f00), "of nobody: {got:?}");
        let end = (number..NAMES).find(|number| !self.zone[*number].alias).map(|number| self.zone[number]);
        if self.honest && end.is_some_and(|end| end.aaaa) {
            assert!(!is_made && outcome != Outcome::Synthesised, "{asked:?} {got:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(256)))]

    #[test]
    fn every_query_has_one_answer_in_time_and_it_is_none_that_must_not_be(
        choice in any::<u8>(),
        zone in prop::collection::vec(owns(), NAMES),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut test = Test::new(choice, zone);
        for event in events {
            test.take(event);
            test.check();
        }
        test.world.pass(PATIENCE);
        test.check();
        prop_assert!(test.asked.is_empty() && test.world.resolver.waiting() == 0);
        test.world.pass(Duration::from_secs(120));
        test.check();
    }
}
