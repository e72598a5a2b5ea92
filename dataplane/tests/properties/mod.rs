//! Properties of every packet: checksums, sizes, conservation, independence of batches, return to the original.

mod ip_in_ip;
mod judge;
mod packets;
mod tunnels;

use crate::support;
use crate::support::{eam, hex, prefix, siit};
use judge::{is_right, judge, segments_of};
use packets::{Input, Load, Shape, build, frames, hold, plain_load};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, PoolConfig, Selection, SessionRow, StaticBinding};
use sixway_dataplane::parse::parse;
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::{Checksum, Counters, DropReason, Frame, Instant, Limits, Outbox, Verdict, WorkerId};
use sixway_trial::budget;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;
use std::time::Duration;

const LIMITS: Limits = Limits { mtu4: 1_400, mtu6: 1_500 };

/// SIIT, NAT64 and NAT44 together.
fn both() -> EngineConfig {
    let mut nat44 = support::nat44();
    nat44.pool = PoolConfig { addresses: vec!["192.0.2.5/32".parse().unwrap()], ports: vec![4_000..=4_015] };
    nat44.static_bindings = vec![StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint4::new("10.0.0.1".parse().unwrap(), 53)),
        outside: Outside(Endpoint4::new("192.0.2.5".parse().unwrap(), 4_003)),
    }];
    let mut nat64 = support::nat64();
    nat64.pool = PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![4_000..=4_015] };
    nat64.static_bindings = vec![StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new("2001:db8:9::9".parse().unwrap(), 53)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 4_003)),
    }];
    EngineConfig {
        own4: Some("192.0.2.254".parse().unwrap()),
        own6: Some("2001:db8::fe".parse().unwrap()),
        limits: LIMITS,
        nat64: vec![nat64],
        nat44: vec![nat44],
        siit: vec![SiitConfig {
            prefix: Some(prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            icmp_source_pool: vec!["203.0.113.9".parse().unwrap()],
            dynamic_pool: Some(DynamicPoolConfig::new("172.16.0.0/28".parse().unwrap())),
            ..SiitConfig::default()
        }],
        icmp_errors_per_second: 1_000_000,
        ..EngineConfig::default()
    }
}

/// Verdicts as an outsider counts them.
#[derive(Default)]
struct Tally {
    verdicts: BTreeMap<&'static str, u64>,
    dropped: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        let name = match verdict {
            Verdict::Pending => panic!("a frame without verdict"),
            Verdict::Forward | Verdict::InPieces => "forwarded",
            Verdict::Answered => "answered",
            Verdict::Punted => "punted",
            Verdict::Control => "to control",
            Verdict::Held => "held",
            Verdict::Absorbed => "absorbed",
            Verdict::Merged => "merged",
            Verdict::HandOver(_) => panic!("there is one worker"),
            Verdict::Dropped(reason) => {
                *self.dropped.entry(reason.name()).or_default() += 1;
                "dropped"
            }
        };
        *self.verdicts.entry(name).or_default() += 1;
    }

    fn of(&self, name: &str) -> u64 {
        self.verdicts.get(name).copied().unwrap_or_default()
    }

    /// What can be compared: fragments that were held change sides when their packet is whole or lost.
    fn agrees_with(&self, counters: &Counters) {
        assert_eq!(self.of("answered"), counters.answered);
        assert_eq!(self.of("punted"), counters.punted);
        assert_eq!(self.verdicts.values().sum::<u64>(), counters.received);
        assert!(self.of("forwarded") <= counters.forwarded);
        for reason in DropReason::ALL {
            let seen = self.dropped.get(reason.name()).copied().unwrap_or_default();
            assert!(seen <= counters.dropped[*reason as usize], "{}", reason.name());
        }
        if self.of("held") == 0 && self.of("merged") == 0 {
            assert_eq!(self.of("forwarded"), counters.forwarded);
            assert_eq!(self.of("dropped"), counters.dropped_total());
        }
    }
}

/// What an engine made of frames: everything that anyone can see.
#[derive(Debug, PartialEq)]
struct Output {
    verdicts: Vec<Verdict>,
    left: Vec<Vec<u8>>,
    beside: Vec<Vec<u8>>,
    counters: Counters,
    sessions: Vec<SessionRow>,
}

fn run(input: &[Input], batch: usize) -> Output {
    let mut engine = Engine::new(&both()).unwrap();
    let now = Instant::from_secs(1_000);
    let mut seen = Output {
        verdicts: Vec::new(),
        left: Vec::new(),
        beside: Vec::new(),
        counters: Counters::default(),
        sessions: Vec::new(),
    };
    for some in input.chunks(batch) {
        let mut frames: Vec<Frame> = some.iter().map(hold).collect();
        let mut out = Outbox::new(16_384);
        engine.process(&mut frames, now, &mut out);
        assert!(engine.counters().frames_are_conserved());
        for frame in &frames {
            seen.verdicts.push(frame.verdict);
            seen.left.extend(frame.verdict.leaves().then(|| frame.bytes().to_vec()));
        }
        seen.beside.extend(out.frames().iter().map(|frame| frame.bytes().to_vec()));
    }
    // Errors about what cannot be read are made before a stride is translated: their order does not matter.
    seen.beside.sort();
    seen.counters = engine.counters().clone();
    engine.nat64()[0].sessions(0, u32::MAX, &Selection::default(), now, &mut seen.sessions);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(budget(256)) })]

    #[test]
    fn whatever_comes_what_leaves_is_right_and_fits_and_every_frame_is_accounted_for(
        batches in vec((frames(16), 0u64..3_000), 1..8),
    ) {
        let mut engine = Engine::new(&both()).unwrap();
        let mut now = Instant::from_secs(1_000);
        let mut out = Outbox::new(4_096);
        let mut tally = Tally::default();
        // Of a packet put together it is unknown which fragment was wrong.
        let mut all_right = true;
        let (mut on_the_wire, mut beside) = (0, 0);
        // A large echo for the gateway is answered in fragments, which are not packets that it forwards.
        let is_countable = !batches.iter().flat_map(|(input, _)| input).any(Input::is_own);
        for (input, pause) in batches {
            let right: Vec<bool> = input.iter().map(Input::is_right).collect();
            all_right &= right.iter().all(|right| *right) && !input.iter().any(Input::is_fragment);
            let mut frames: Vec<Frame> = input.iter().map(hold).collect();
            engine.process(&mut frames, now, &mut out);
            for (frame, right) in frames.iter().zip(right) {
                tally.add(frame.verdict);
                if frame.verdict.leaves() {
                    judge(frame.bytes(), frame.offload, right);
                    on_the_wire += u64::from(segments_of(frame));
                }
            }
            tally.agrees_with(engine.counters());
            now = now + Duration::from_millis(pause);
            engine.tick(now, &mut out);
            out.frames().iter().for_each(|frame| judge(frame.bytes(), frame.offload, all_right));
            beside += out.len() as u64;
            out.clear();
            let counters = engine.counters();
            prop_assert!(counters.frames_are_conserved());
            let own = counters.icmp_errors_made + counters.tcp_probes_made;
            prop_assert!(!is_countable || counters.packets == on_the_wire + beside - own);
        }
    }

    #[test]
    fn a_batch_is_translated_as_its_packets_are_one_by_one(input in frames(256)) {
        let (together, apart) = (run(&input, 256), run(&input, 1));
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn two_workers_account_for_every_frame_and_hand_over_no_more_than_is_taken(
        input in vec((frames(8), any::<bool>(), 0u64..1_000), 1..8),
    ) {
        let worker = |worker| Engine::new(&EngineConfig { worker: WorkerId(worker), workers: 2, ..both() }).unwrap();
        let mut engines = [worker(0), worker(1)];
        let mut now = Instant::from_secs(1_000);
        for (some, at, pause) in input {
            let mut out = Outbox::new(4_096);
            let mut frames: Vec<Frame> = some.iter().map(hold).collect();
            engines[usize::from(at)].process(&mut frames, now, &mut out);
            for frame in &mut frames {
                let mut steps = 0;
                while let Verdict::HandOver(WorkerId(to)) = frame.verdict {
                    steps += 1;
                    prop_assert!(steps < 5, "it goes in circles: {:?}", frame);
                    engines[usize::from(to)].take_over(std::slice::from_mut(frame), now, &mut out);
                }
                prop_assert_ne!(frame.verdict, Verdict::Pending);
                if frame.verdict.leaves() {
                    judge(frame.bytes(), frame.offload, false);
                }
            }
            now = now + Duration::from_millis(pause);
            engines.iter_mut().for_each(|engine| engine.tick(now, &mut out));
            out.frames().iter().for_each(|frame| judge(frame.bytes(), frame.offload, false));
            let counters = engines.each_ref().map(|engine| engine.counters());
            prop_assert!(counters.iter().all(|counters| counters.frames_are_conserved()));
            let given: u64 = counters.iter().map(|counters| counters.handed_over).sum();
            prop_assert_eq!(given, counters.iter().map(|counters| counters.taken_over).sum::<u64>());
        }
    }

    #[test]
    fn an_ipv6_packet_is_itself_again_after_ipv4_but_for_its_hop_limit(
        tos in any::<u8>(), load in plain_load(), hops in 3u8.., data in 0usize..1_400, seed in any::<u8>(),
    ) {
        let shape = Shape {
            from: 0, to: 4, ports: (1, 2), hops, tos, may_fragment: false, identification: 0, fragment: None,
            option: None, data, seed,
        };
        let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
        let original = build(false, &shape, &load);
        gateway.receives(original.clone());
        let between = gateway.sent();
        prop_assert!(is_right(&between, &parse(&between).unwrap(), Checksum::Complete));
        gateway.receives(between);
        gateway.sends(original.hops(hops - 2));
    }

    #[test]
    fn an_ipv4_packet_is_itself_again_after_ipv6_but_for_what_ipv6_does_not_carry(
        tos in any::<u8>(), load in plain_load(), hops in 3u8.., data in 0usize..1_400, seed in any::<u8>(),
    ) {
        let shape = Shape {
            from: 0, to: 2, ports: (1, 2), hops, tos, may_fragment: false, identification: 0, fragment: None,
            option: None, data, seed,
        };
        let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
        let original = build(true, &shape, &load);
        gateway.receives(original.clone());
        let between = gateway.sent();
        prop_assert!(is_right(&between, &parse(&between).unwrap(), Checksum::Complete));
        gateway.receives(between);
        let sent = gateway.sent();
        // Up to 1,260 octets DF is not set again, and an identification is made (RFC 7915 §5.1).
        let mut expected = original.hops(hops - 2);
        if sent.len() <= 1_260 {
            expected = expected.may_fragment().identification(u16::from_be_bytes([sent[4], sent[5]]).into());
        }
        prop_assert_eq!(hex(&sent), hex(&expected.octets()));
    }

    #[test]
    fn a_fragment_is_itself_again_after_the_other_family(
        is_v4 in any::<bool>(), offset in 0u16..8_000, more in any::<bool>(), units in 1usize..140, seed in any::<u8>(),
        identification in any::<u16>(),
    ) {
        prop_assume!(more || offset > 0);
        let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
        let (from, to) = if is_v4 { (0, 2) } else { (0, 4) };
        let shape = Shape {
            from, to, ports: (1, 2), hops: 64, tos: 0, may_fragment: true, identification,
            fragment: Some((offset / 8 * 8, more)), option: None, data: 8 * units, seed,
        };
        prop_assume!(shape.fragment != Some((0, false)));
        let original = build(is_v4, &shape, &Load::Udp { checksum: true });
        gateway.receives(original.clone());
        let between = gateway.sent();
        gateway.receives(between);
        gateway.sends(original.hops(62));
    }
}

/// Every kind of packet above is translated at least sometimes: the properties are not about drops alone.
#[test]
fn the_packets_of_these_properties_reach_what_they_should() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut engine = Engine::new(&both()).unwrap();
    let mut out = Outbox::new(4_096);
    for round in 0..40 {
        let input = frames(64).new_tree(&mut runner).unwrap().current();
        let mut frames: Vec<Frame> = input.iter().map(hold).collect();
        engine.process(&mut frames, Instant::from_secs(1_000 + round), &mut out);
        out.clear();
    }
    let never: Vec<&str> = engine
        .counters()
        .named()
        .filter(|(name, _, value)| *value == 0 && !name.contains("ended") && !name.contains("limited"))
        .map(|(name, _, _)| name)
        .collect();
    let unneeded = [
        "taken_over",
        "handed_over",
        "merged",
        "icmp_errors.no_source",
        "icmp_errors.handed_over",
        "tcp_probes.made",
        "punted",
        "to_control",
        "absorbed",
        "gso.joined",
        "nat.quarantines.cut_short",
    ];
    let is_elsewhere = |name: &str| {
        name.ends_with(".encap")
            || name.ends_with(".decap")
            || name.starts_with("tunnels.")
            || name.starts_with("flows.")
            || name.starts_with("npt66.")
            || name.starts_with("ip_in_ip.")
            || name.starts_with("ds_lite.")
            || name.starts_with("nat46.")
            || name.starts_with("ftp.")
    };
    let missing: Vec<&&str> =
        never.iter().filter(|name| !unneeded.contains(name) && !is_elsewhere(name)).collect();
    assert!(missing.is_empty(), "{missing:?}: {:?}", engine.counters());
}
