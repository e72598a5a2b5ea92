//! What an operator sees and does.

use super::*;
use crate::nat::StateLimits;

/// By this key the host of these tests is another worker's than 1, of four.
const KEY: [u64; 2] = [5, 6];
use crate::nat::BindingRow;

fn select(bench: &Harness, selection: &Selection) -> Vec<SessionRow> {
    let mut rows = Vec::new();
    assert_eq!(bench.nat64.sessions(0, u32::MAX, selection, bench.now, &mut rows), None);
    rows
}

fn bindings(bench: &Harness) -> Vec<BindingRow> {
    let mut rows = Vec::new();
    assert_eq!(bench.nat64.bindings(0, u32::MAX, &Selection::default(), &mut rows), None);
    rows
}

#[test]
fn a_row_tells_how_long_and_how_much() {
    let mut bench = Harness::endpoint_independent();
    let outside = bench.connect();
    bench.wait(Duration::from_secs(3));
    assert!(bench.out(ACK).is_ok());
    bench.wait(Duration::from_secs(2));
    let row = bench.sessions()[0];
    assert_eq!(
        (row.protocol, row.inside, row.outside),
        (NatProtocol::Tcp, Some(Inside(e6(HOST, 5_000))), Outside(outside))
    );
    assert_eq!((row.remote, row.state), (e4(SERVER, 80), "established"));
    assert_eq!(
        (row.idle, row.ends_in),
        (Duration::from_secs(2), TCP_EST + TCP_TRANS - Duration::from_secs(2))
    );
    assert_eq!((row.packets_out, row.packets_in, row.octets_out, row.octets_in), (2, 1, 200, 100));
}

#[test]
fn a_gso_packet_counts_its_segments() {
    let mut bench = Harness::endpoint_independent();
    let packet = Packet { length: 30_000, ..v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)) };
    let mut probe = Probe::EMPTY;
    bench.nat64.probe(&packet, &mut probe);
    let segments = Segments { size: 1_427, kind: SegmentKind::Udp };
    let mut frame = Frame::holding(&[0x60; 100]);
    frame.offload.segments = Some(segments);
    let arrival = Arrival::new(&frame, &packet, None);
    assert_eq!(arrival.segments(), 21);
    assert!(bench.nat64.decide(&arrival, &probe, bench.now, &mut bench.effects).is_ok());
    assert_eq!((bench.sessions()[0].packets_out, bench.sessions()[0].octets_out), (21, 30_000));
}

#[test]
fn rows_are_selected_by_either_side_and_the_remote() {
    let mut bench = Harness::endpoint_independent();
    let (one, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    bench.sent_out(&v6(OTHER, IMAGE, TCP, ports(6_000, 80, SYN)));
    bench.sent_out(&v6(OTHER, "64:ff9b::203.0.113.2", UDP, ports(6_000, 53, 0)));
    let all = Selection::default();
    let count = |selection| select(&bench, &selection).len();
    assert_eq!(count(all), 3);
    assert_eq!(count(Selection { inside: Some("2001:db8::2/128".parse().unwrap()), ..all }), 2);
    assert_eq!(count(Selection { inside_port: Some(5_000), ..all }), 1);
    assert_eq!(count(Selection { outside_port: Some(one.port), protocol: Some(NatProtocol::Udp), ..all }), 1);
    assert_eq!(count(Selection { outside: Some("198.51.100.0/24".parse().unwrap()), ..all }), 0);
    assert_eq!(count(Selection { remote: Some("203.0.113.2/32".parse().unwrap()), ..all }), 1);
    assert_eq!(count(Selection { remote_port: Some(80), ..all }), 1);
}

#[test]
fn a_dump_goes_on_where_it_stopped() {
    let mut bench = Harness::endpoint_independent();
    for port in 0..25 {
        bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000 + port, 53, 0)));
    }
    let (mut rows, mut cursor, mut calls) = (Vec::new(), Some(0), 0);
    while let Some(from) = cursor {
        cursor = bench.nat64.sessions(from, 10, &Selection::default(), bench.now, &mut rows);
        calls += 1;
    }
    assert_eq!((rows.len(), calls), (25, 3));
    let mut rows = Vec::new();
    assert_eq!(bench.nat64.bindings(20, 10, &Selection::default(), &mut rows), None);
    assert_eq!(rows.len(), 5);
}

#[test]
fn a_session_ends_by_order_and_its_last_takes_the_binding_along() {
    let mut bench = Harness::endpoint_independent();
    for port in [53, 54] {
        bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, port, 0)));
    }
    let end = |bench: &mut Harness, port| {
        let inside = Inside(e6(HOST, 5_000));
        bench.nat64.end_session(
            NatProtocol::Udp,
            inside.into(),
            e4(SERVER, port),
            &mut bench.effects.counters,
        )
    };
    assert!(end(&mut bench, 53));
    assert!(!end(&mut bench, 53));
    assert_eq!((bench.sessions().len(), bindings(&bench).len()), (1, 1));
    assert!(end(&mut bench, 54));
    assert_eq!((bench.sessions().len(), bindings(&bench).len()), (0, 0));
    assert_eq!((bench.effects.counters.sessions_ended, bench.effects.counters.bindings_ended), (2, 1));
}

#[test]
fn a_binding_ends_by_order_some_sessions_at_a_time() {
    let mut bench = Harness::endpoint_independent();
    let mut outside = None;
    for port in 0..25 {
        outside = Some(bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53 + port, 0))).0);
    }
    let outside = Outside(outside.unwrap());
    let end = |bench: &mut Harness| {
        bench.nat64.end_binding(NatProtocol::Udp, outside, 10, &mut bench.effects.counters)
    };
    assert_eq!(
        [end(&mut bench), end(&mut bench), end(&mut bench), end(&mut bench)],
        [Some(false), Some(false), Some(true), None]
    );
    assert_eq!((bench.effects.counters.sessions_ended, bench.effects.counters.bindings_ended), (25, 1));
}

#[test]
fn a_static_binding_is_made_and_removed_at_run_time() {
    let mut bench = Harness::endpoint_independent();
    let outside = e4("192.0.2.1", 80);
    let new = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Tcp,
        inside: Inside(e6(HOST, 5_000)),
        outside: Outside(outside),
    };
    assert_eq!(bench.nat64.add_static(&new), Ok(()));
    assert_eq!(bench.nat64.add_static(&new), Err(StaticBindingError::InsideInUse));
    assert!(bindings(&bench)[0].is_static);
    assert!(matches!(bench.back(outside, SYN), Ok(Decision { next: Next::Leave, .. })));
    assert_eq!(
        bench.nat64.end_binding(NatProtocol::Tcp, Outside(outside), 10, &mut bench.effects.counters),
        None
    );
    assert_eq!(bench.nat64.remove_static(&new, 10, &mut bench.effects.counters), Some(true));
    assert_eq!(bench.nat64.remove_static(&new, 10, &mut bench.effects.counters), None);
    assert_eq!((bench.sessions().len(), bindings(&bench).len()), (0, 0));
}

#[test]
fn the_dynamic_bindings_of_a_host_share_the_address_of_its_static_one() {
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Tcp,
        inside: Inside(e6(HOST, 80)),
        outside: Outside(e4("192.0.2.9", 80)),
    };
    let mut bench = Harness::new(&Nat64Config { static_bindings: vec![binding], ..config() });
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    assert_eq!(outside.address, binding.outside.0.address);
}

#[test]
fn a_static_binding_belongs_to_the_worker_of_its_host_and_the_others_keep_their_hands_off_it() {
    let outside = e4("192.0.2.1", 1_024 + 64);
    let binding = StaticBinding {
        protocol: NatProtocol::Udp,
        softwire: None,
        inside: Inside(e6(HOST, 53)),
        outside: Outside(outside),
    };
    let pool = PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![1_088..=1_088] };
    let config = Nat64Config { static_bindings: vec![binding], pool, ..config() };
    // The worker of the block is another than that of the host, by this key.
    let worker = Nat64::new(&config, PolicyId(0), WorkerId(1), 4, KEY)
        .ownership()
        .worker_of_inside(HOST.parse().unwrap());
    assert_ne!(worker, WorkerId(1));
    let owner = Nat64::new(&config, PolicyId(0), worker, 4, KEY);
    let neighbour = Nat64::new(&config, PolicyId(0), WorkerId(1), 4, KEY);
    assert_eq!((owner.occupancy().bindings, neighbour.occupancy().bindings), (1, 0));
    for nat64 in [&owner, &neighbour] {
        let ownership = nat64.ownership();
        assert_eq!(ownership.worker_of_outside(NatProtocol::Udp, outside), worker);
        assert_eq!(ownership.worker_of_outside(NatProtocol::Tcp, outside), WorkerId(1));
        assert_eq!(ownership.worker_of_inside(HOST.parse().unwrap()), worker);
    }
    let mut bench = Harness { nat64: neighbour, now: Instant::from_secs(1), effects: Effects::default() };
    let packet = v6(OTHER, IMAGE, UDP, ports(5_000, 53, 0));
    assert_eq!(bench.send(&packet), Err(DropReason::PortPoolEmpty));
    assert_eq!(bench.nat64.remove_static(&binding, 1, &mut bench.effects.counters), Some(true));
    assert_eq!(bench.sent_out(&packet).0, outside);
}

#[test]
fn static_bindings_that_contradict_the_rest_are_named() {
    let new = |inside, outside| StaticBinding {
        softwire: None,
        protocol: NatProtocol::Tcp,
        inside: Inside(e6(HOST, inside)),
        outside: Outside(outside),
    };
    let static_bindings = vec![
        new(1, e4("192.0.2.1", 1)),
        new(1, e4("192.0.2.1", 2)),
        new(2, e4("192.0.2.1", 1)),
        new(3, e4("198.51.100.1", 1)),
        new(4, e4("192.0.2.1", 4)),
        new(5, e4("192.0.2.1", 5)),
    ];
    let config = Nat64Config {
        static_bindings,
        limits: StateLimits { bindings: 2, ..StateLimits::default() },
        ..config()
    };
    assert_eq!(
        config.faults(),
        [
            (1, StaticBindingError::InsideInUse),
            (2, StaticBindingError::OutsideInUse),
            (3, StaticBindingError::NotInPool),
            (5, StaticBindingError::TableFull),
        ]
    );
    let nat64 = Nat64::new(&config, PolicyId(0), WorkerId(0), 1, [5, 6]);
    assert_eq!(nat64.occupancy().bindings, 2);
}

#[test]
fn a_hairpin_comes_back_with_both_ends_seen_from_outside() {
    let mut bench = Harness::endpoint_independent();
    let (callee, _) = bench.sent_out(&v6(OTHER, IMAGE, UDP, ports(7_000, 53, 0)));
    let image = format!("64:ff9b::{}", callee.address);
    let packet = v6(HOST, &image, UDP, ports(5_000, callee.port, 0));
    let Ok(Decision { next, .. }) = bench.send(&packet) else { panic!() };
    assert_eq!(next, Next::Again);
    let (caller, destination) = bench.sent_out(&packet);
    assert_eq!(destination, callee);
    let again = v4(&caller.address.to_string(), callee.address, UDP, ports(caller.port, callee.port, 0));
    let (source, destination) = bench.sent_in(&again);
    assert_eq!(source, e6(&format!("64:ff9b::{}", caller.address), caller.port));
    assert_eq!(destination, e6(OTHER, 7_000));
}
