//! TCP: the state machine, its timers and the stored SYN (RFC 6146 §3.5.2).

use super::*;
use crate::nat::StateLimits;

/// A bench with one session in the named state, and its outside endpoint.
fn in_state(name: &str) -> (Harness, Endpoint4) {
    let mut bench = Harness::endpoint_independent();
    if name == "inside init" {
        let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, TCP, ports(5_000, 80, SYN)));
        return (bench, outside);
    }
    if name == "outside init" {
        let mut bench = Harness::new(&with_static());
        let outside = e4("192.0.2.1", 80);
        bench.sent_in(&v4(SERVER, outside.address, TCP, ports(80, 80, SYN)));
        return (bench, outside);
    }
    let outside = bench.connect();
    let segments: &[(bool, u8)] = match name {
        "established" => &[],
        "fin from outside" => &[(false, FIN | ACK)],
        "fin from inside" => &[(true, FIN | ACK)],
        "fin from both" => &[(true, FIN | ACK), (false, FIN | ACK)],
        "trans" => &[(false, RST)],
        other => panic!("{other}"),
    };
    for (out, flags) in segments {
        let outcome = if *out { bench.out(*flags) } else { bench.back(outside, *flags) };
        assert!(outcome.is_ok());
    }
    (bench, outside)
}

fn with_static() -> Nat64Config {
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Tcp,
        inside: Inside(e6(HOST, 5_000)),
        outside: Outside(e4("192.0.2.1", 80)),
    };
    Nat64Config { static_bindings: vec![binding], ..config() }
}

/// Sends a segment and names the state afterwards.
fn after(name: &str, out: bool, flags: u8) -> &'static str {
    let (mut bench, outside) = in_state(name);
    assert_eq!(bench.state(), name);
    let outcome = if out { bench.out(flags) } else { bench.back(outside, flags) };
    assert!(
        matches!(outcome, Ok(Decision { next: Next::Leave, .. })),
        "{name}: every segment of a session is forwarded"
    );
    bench.state()
}

#[test]
fn every_transition_happens_through_the_whole_nat64() {
    let rows = [
        ("outside init", true, SYN | ACK, "established"),
        ("outside init", true, RST | ACK, "outside init"),
        ("outside init", true, ACK, "outside init"),
        ("outside init", false, SYN, "outside init"),
        ("outside init", false, ACK, "outside init"),
        ("inside init", false, SYN | ACK, "established"),
        ("inside init", false, SYN, "established"),
        ("inside init", true, SYN, "inside init"),
        ("inside init", false, RST | ACK, "inside init"),
        ("inside init", true, ACK, "inside init"),
        ("established", false, FIN | ACK, "fin from outside"),
        ("established", true, FIN | ACK, "fin from inside"),
        ("established", false, RST, "trans"),
        ("established", true, RST, "trans"),
        ("established", false, ACK, "established"),
        ("established", true, SYN, "established"),
        ("fin from outside", true, FIN | ACK, "fin from both"),
        ("fin from outside", false, FIN | ACK, "fin from outside"),
        ("fin from outside", true, RST, "fin from outside"),
        ("fin from inside", false, FIN | ACK, "fin from both"),
        ("fin from inside", true, FIN | ACK, "fin from inside"),
        ("fin from inside", false, RST, "fin from inside"),
        ("fin from both", true, ACK, "fin from both"),
        ("fin from both", false, SYN, "fin from both"),
        ("trans", false, RST, "trans"),
        ("trans", true, RST, "trans"),
        ("trans", true, ACK, "established"),
        ("trans", false, FIN | ACK, "established"),
    ];
    for (before, out, flags, expected) in rows {
        assert_eq!(after(before, out, flags), expected, "{before}, out {out}, flags {flags:#x}");
    }
}

#[test]
fn a_session_in_each_state_ends_after_its_lifetime_and_not_a_nanosecond_before() {
    let lifetimes = [
        ("outside init", TCP_TRANS),
        ("inside init", TCP_TRANS),
        ("established", TCP_EST + TCP_TRANS),
        ("fin from outside", TCP_EST),
        ("fin from inside", TCP_EST),
        ("fin from both", TCP_TRANS),
        ("trans", TCP_TRANS),
    ];
    for (name, lifetime) in lifetimes {
        let (mut bench, _) = in_state(name);
        bench.wait(lifetime - Duration::from_nanos(1));
        bench.expire();
        assert_eq!(bench.sessions().len(), 1, "{name} ended too early");
        bench.wait(Duration::from_nanos(1));
        bench.expire();
        assert_eq!(bench.sessions().len(), 0, "{name} did not end");
        assert_eq!(bench.effects.counters.sessions_ended, 1);
    }
}

#[test]
fn a_session_whose_time_is_up_is_over_even_if_nobody_expired_it() {
    let (mut bench, outside) = in_state("fin from both");
    bench.wait(TCP_TRANS);
    assert_eq!(bench.back(outside, ACK), Err(DropReason::NoSession));
    assert_eq!(bench.effects.counters.sessions_ended, 1);
}

#[test]
fn segments_that_do_not_restart_the_lifetime_let_it_run_out() {
    for (name, out, flags) in [
        ("inside init", true, ACK),
        ("inside init", false, RST),
        ("fin from both", false, ACK),
        ("trans", true, RST),
        ("outside init", false, SYN),
    ] {
        let (mut bench, outside) = in_state(name);
        bench.wait(TCP_TRANS - Duration::from_secs(1));
        let outcome = if out { bench.out(flags) } else { bench.back(outside, flags) };
        assert!(outcome.is_ok());
        bench.wait(Duration::from_secs(1));
        bench.expire();
        assert_eq!(bench.sessions().len(), 0, "{name}");
    }
}

#[test]
fn a_silent_connection_becomes_transitory_and_its_inside_end_is_probed() {
    let (mut bench, _) = in_state("established");
    bench.wait(TCP_EST - Duration::from_nanos(1));
    assert_eq!(bench.expire(), []);
    bench.wait(Duration::from_nanos(1));
    let beside = bench.expire();
    let [Generated::Probe(_, probed)] = &beside[..] else { panic!("no probe") };
    let parsed = crate::parse::parse(probed).unwrap();
    let (source, destination) = (IMAGE.parse().unwrap(), HOST.parse().unwrap());
    assert_eq!(parsed.addresses, Addresses::V6 { source, destination });
    assert_eq!(parsed.transport, ports(80, 5_000, ACK));
    assert_eq!(probed[44..52], [0; 8], "sequence and acknowledgment number");
    let pseudo = sixway_wire::checksum::pseudo6(source, destination, TCP, 20);
    assert_eq!(pseudo.bytes(&probed[40..]).checksum(), 0);
    assert_eq!(bench.state(), "trans");
    assert!(bench.out(ACK).is_ok(), "the inside end answers");
    assert_eq!(bench.state(), "established");
}

#[test]
fn a_segment_that_is_not_a_syn_makes_no_session() {
    let mut bench = Harness::endpoint_independent();
    for flags in [ACK, FIN, RST, 0] {
        assert_eq!(bench.out(flags), Err(DropReason::NoSession));
    }
    assert_eq!(bench.nat64.occupancy().bindings, 0);
}

#[test]
fn a_segment_without_session_is_forwarded_by_its_binding_and_nothing_is_remembered() {
    let mut bench = Harness::endpoint_independent();
    let outside = bench.connect();
    let (source, _) = bench.sent_out(&v6(HOST, "64:ff9b::203.0.113.2", TCP, ports(5_000, 81, ACK)));
    assert_eq!(source, outside);
    let stray = v4(STRANGER, outside.address, TCP, ports(81, outside.port, ACK));
    assert_eq!(bench.sent_in(&stray).1, e6(HOST, 5_000));
    assert_eq!(bench.sessions().len(), 1);
}

#[test]
fn an_inbound_syn_without_binding_is_stored_and_answered_after_six_seconds() {
    let mut bench = Harness::endpoint_independent();
    let outside = e4("192.0.2.3", 4_000);
    assert_eq!(bench.back(outside, SYN), Ok(STORED));
    assert_eq!(bench.back(outside, SYN), Err(DropReason::SynAwaitsInside), "a repeated SYN waits as well");
    assert_eq!(bench.back(outside, ACK), Err(DropReason::SynAwaitsInside));
    assert_eq!((bench.effects.counters.held, bench.effects.counters.bindings_made), (1, 0));
    bench.wait(TCP_INCOMING_SYN - Duration::from_nanos(1));
    assert_eq!(bench.expire(), []);
    bench.wait(Duration::from_nanos(1));
    assert_eq!(bench.expire(), [Generated::Answer(DropReason::InboundSyn, [0x45; 60].into())]);
    assert_eq!(bench.effects.counters.held, 0);
    assert_eq!(bench.effects.counters.dropped[DropReason::InboundSyn as usize], 1);
    assert_eq!(bench.sessions(), []);
}

#[test]
fn a_stored_syn_is_answered_even_if_a_packet_finds_its_time_is_up_first() {
    let mut bench = Harness::endpoint_independent();
    let outside = e4("192.0.2.3", 4_000);
    assert_eq!(bench.back(outside, SYN), Ok(STORED));
    bench.wait(TCP_INCOMING_SYN);
    assert_eq!(bench.back(outside, SYN), Ok(STORED), "the next one is stored in turn");
    assert_eq!(bench.expire().len(), 1);
    assert_eq!((bench.effects.counters.held, bench.sessions().len()), (1, 1));
}

/// A pool of a single port, so that the next binding is sure to get it.
fn one_port() -> Nat64Config {
    let pool = PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![4_000..=4_000] };
    Nat64Config { pool, ..config() }
}

#[test]
fn a_syn_from_inside_completes_the_simultaneous_open_of_a_stored_one() {
    let mut bench = Harness::new(&one_port());
    let outside = e4("192.0.2.1", 4_000);
    assert_eq!(bench.back(outside, SYN), Ok(STORED));
    assert_eq!(bench.sessions()[0].inside, None);
    assert!(bench.out(SYN).is_ok());
    let session = bench.sessions()[0];
    assert_eq!((session.state, session.inside), ("established", Some(Inside(e6(HOST, 5_000)))));
    assert_eq!(
        (bench.effects.counters.held, bench.effects.counters.dropped[DropReason::InboundSyn as usize]),
        (0, 1)
    );
    assert!(matches!(bench.back(outside, SYN | ACK), Ok(Decision { next: Next::Leave, .. })));
    bench.wait(TCP_INCOMING_SYN);
    assert_eq!(bench.expire(), [], "what was answered from inside is not answered again");
    assert_eq!((bench.nat64.occupancy().sessions, bench.nat64.occupancy().bindings), (1, 1));
}

#[test]
fn with_address_dependent_filtering_a_syn_to_a_binding_waits_for_one_from_inside() {
    let mut bench = Harness::address_dependent();
    let outside = bench.connect();
    let syn = v4(STRANGER, outside.address, TCP, ports(81, outside.port, SYN));
    assert_eq!(bench.send(&syn), Ok(STORED));
    let data = v4(STRANGER, outside.address, TCP, ports(82, outside.port, ACK));
    assert_eq!(bench.send(&data), Err(DropReason::Filtered), "what waits lets nobody in");
    assert!(bench.send(&v6(HOST, "64:ff9b::203.0.113.2", TCP, ports(5_000, 81, SYN))).is_ok());
    let data = v4(STRANGER, outside.address, TCP, ports(82, outside.port, ACK));
    assert!(
        matches!(bench.send(&data), Ok(Decision { next: Next::Leave, .. })),
        "the session lets its remote in"
    );
    assert_eq!(bench.effects.counters.held, 0);
}

#[test]
fn with_address_dependent_filtering_a_known_remote_may_open_another_connection() {
    let mut bench = Harness::address_dependent();
    let outside = bench.connect();
    let syn = v4(SERVER, outside.address, TCP, ports(81, outside.port, SYN));
    assert_eq!(bench.sent_in(&syn).1, e6(HOST, 5_000));
    assert_eq!(bench.sessions()[1].state, "outside init");
}

#[test]
fn with_endpoint_independent_filtering_a_syn_to_a_binding_goes_on() {
    let mut bench = Harness::endpoint_independent();
    let outside = bench.connect();
    let syn = v4(STRANGER, outside.address, TCP, ports(81, outside.port, SYN));
    assert_eq!(bench.sent_in(&syn), (e6("64:ff9b::203.0.113.2", 81), e6(HOST, 5_000)));
}

#[test]
fn a_syn_that_finds_no_room_to_be_stored_gets_no_answer() {
    let mut bench = Harness::new(&Nat64Config {
        limits: StateLimits { sessions: 3, ..StateLimits::default() },
        ..config()
    });
    for port in 0..3 {
        let syn = v4(SERVER, "192.0.2.1".parse().unwrap(), TCP, ports(80, 4_000 + port, SYN));
        assert_eq!(bench.send(&syn), Ok(STORED));
    }
    assert_eq!(bench.back(e4("192.0.2.1", 5_000), SYN), Err(DropReason::StoredSynsFull));
}
