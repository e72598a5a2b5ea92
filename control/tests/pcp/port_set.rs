//! RFC 7753: sets of ports.

use super::*;
use sixway_control::pcp::{ExistingKind, Transport};

/// The size and first port of the set in a reply.
fn set(reply: &Reply) -> Option<(u16, u16)> {
    let found = reply.map_options().into_iter().find(|(code, _)| *code == 130)?;
    let data = found.1;
    Some((u16::from_be_bytes([data[0], data[1]]), u16::from_be_bytes([data[2], data[3]])))
}

#[test]
fn consecutive_ports_are_mapped_to_consecutive_ports() {
    let mut bench = Bench::new();
    let reply = bench.ask(&Ask::map(ALICE, UDP, 50_000).port_set(4));
    assert_eq!((reply.port(), set(&reply)), (20_000, Some((4, 50_000))));
    for offset in 0..4 {
        assert_eq!(bench.nat.of(Transport::Udp, ALICE, 50_000 + offset).unwrap().external, 20_000 + offset);
    }
    assert_eq!(bench.server.sizes(), (1, 4, 0));
    // It ends as one.
    bench.pass(3_601);
    assert!(bench.nat.bindings.is_empty());
    assert_eq!(bench.server.sizes(), (0, 0, 0));
}

#[test]
fn as_many_as_possible_are_mapped_and_a_single_port_has_no_option() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Udp, BOB, 1, 20_002, ExistingKind::Dynamic);
    let reply = bench.ask(&Ask::map(ALICE, UDP, 50_000).port_set(10));
    assert_eq!((reply.port(), set(&reply)), (20_000, Some((2, 50_000))));
    let mut limited = Bench::with(|settings| settings.max_port_set = 32);
    assert_eq!(set(&limited.ask(&Ask::map(ALICE, UDP, 50_000).port_set(100))), Some((32, 50_000)));
    assert_eq!(set(&limited.ask(&Ask::map(BOB, UDP, 65_534).port_set(0xffff))), Some((2, 65_534)));
    assert_eq!(set(&limited.ask(&Ask::map(BOB, UDP, 100).port_set(1))), None);
    let mut off = Bench::with(|settings| settings.max_port_set = 1);
    assert_eq!(set(&off.ask(&Ask::map(ALICE, UDP, 50_000).port_set(4))), None);
    let mut quota = Bench::with(|settings| settings.mappings_per_subscriber = 3);
    assert_eq!(set(&quota.ask(&Ask::map(ALICE, UDP, 50_000).port_set(4))), Some((3, 50_000)));
    assert_eq!(quota.result(&Ask::map(ALICE, UDP, 1).port_set(2)), ResultCode::UserExQuota);
    let mut full = Bench::with(|settings| settings.max_mappings = 5);
    assert_eq!(set(&full.ask(&Ask::map(ALICE, UDP, 50_000).port_set(3))), Some((3, 50_000)));
    assert_eq!(set(&full.ask(&Ask::map(BOB, UDP, 50_000).port_set(3))), Some((2, 50_000)));
}

#[test]
fn a_set_is_renewed_and_deleted_as_one() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, UDP, 50_000).port_set(4);
    bench.ask(&ask);
    bench.pass(3_000);
    let again = bench.ask(&ask);
    assert_eq!((again.port(), set(&again), again.lifetime()), (20_000, Some((4, 50_000)), 3_600));
    bench.pass(3_000);
    assert_eq!(bench.nat.bindings.len(), 4);
    let mut delete = Ask::map(ALICE, UDP, 50_000).lifetime(0).port_set(4);
    assert_eq!(bench.result(&delete.clone().nonce(99)), ResultCode::NotAuthorized);
    delete.octets[4..8].fill(0);
    assert_eq!(bench.result(&delete), ResultCode::Success);
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn a_request_that_overlaps_renews_each_mapping_and_has_an_answer_for_each() {
    let mut bench = Bench::new();
    bench.ask(&Ask::map(ALICE, UDP, 100).suggest("192.0.2.1", 30_100));
    bench.ask(&Ask::map(ALICE, UDP, 101).suggest("192.0.2.1", 30_201).port_set(9));
    bench.pass(60);
    // §5.3.
    let ask = Ask::map(ALICE, UDP, 100).port_set(10);
    let replies = bench.send(ALICE, &ask.octets).unwrap();
    let told: Vec<_> = replies.iter().map(|it| (it.internal_port(), it.port(), set(it))).collect();
    assert_eq!(told, [(100, 30_100, None), (101, 30_201, Some((9, 101)))]);
    // §6.3: a request within a set is one for the set.
    let reply = bench.ask(&Ask::map(ALICE, UDP, 105).port_set(20));
    assert_eq!((reply.internal_port(), reply.port(), set(&reply)), (105, 30_201, Some((9, 101))));
    assert_eq!(bench.server.sizes(), (2, 10, 0));
}

#[test]
fn another_hosts_ports_are_no_part_of_a_set() {
    let mut bench = Bench::new();
    bench.ask(&Ask::map(BOB, UDP, 50_001));
    let reply = bench.ask(&Ask::map(ALICE, UDP, 50_000).port_set(3));
    assert_eq!((reply.port(), set(&reply)), (20_001, Some((3, 50_000))));
    // A binding of its own that packets made, with another port, ends the set.
    bench.nat.add(Transport::Udp, ALICE, 60_001, 44_000, ExistingKind::Dynamic);
    assert_eq!(set(&bench.ask(&Ask::map(ALICE, UDP, 60_000).port_set(3))), None);
    // So does a static one, although it has the port that would follow: it is the administrator's.
    bench.nat.add(Transport::Udp, ALICE, 61_001, 45_001, ExistingKind::Static);
    let reply = bench.ask(&Ask::map(ALICE, UDP, 61_000).suggest("192.0.2.1", 45_000).port_set(3));
    assert_eq!((reply.port(), set(&reply)), (45_000, None));
}
