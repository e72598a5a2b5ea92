//! RFC 6886: NAT-PMP.

use super::*;
use sixway_control::pcp::{ExistingKind, Refusal, Transport};

fn map(opcode: u8, port: u16, suggested: u16, lifetime: u32) -> Vec<u8> {
    let mut octets = vec![0, opcode, 0, 0];
    octets.extend(port.to_be_bytes());
    octets.extend(suggested.to_be_bytes());
    octets.extend(lifetime.to_be_bytes());
    octets
}

impl Bench {
    /// The opcode, result, inside port, external port and lifetime of an answer.
    fn nat_pmp(&mut self, client: &str, octets: &[u8]) -> (u8, u16, u16, u16, u32) {
        let reply = self.send(client, octets).unwrap().remove(0).0;
        assert_eq!((reply[0], reply.len()), (0, 16));
        let at = |at: usize| u16::from_be_bytes([reply[at], reply[at + 1]]);
        (reply[1], at(2), at(8), at(10), u32::from_be_bytes(reply[12..].try_into().unwrap()))
    }
}

#[test]
fn the_external_address_is_told_with_the_seconds_since_the_start() {
    let mut bench = Bench::new();
    bench.pass(77);
    assert_eq!(bench.send(ALICE, &[0, 0]).unwrap()[0].0, [0, 128, 0, 0, 0, 0, 0, 77, 192, 0, 2, 1]);
    bench.nat.has_address = false;
    assert_eq!(bench.send(ALICE, &[0, 0]).unwrap()[0].0, [0, 128, 0, 3, 0, 0, 0, 77, 0, 0, 0, 0]);
}

#[test]
fn a_mapping_is_made_renewed_and_deleted() {
    let mut bench = Bench::new();
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 8_080, 7_200)), (130, 0, 80, 8_080, 7_200));
    assert!(bench.nat.of(Transport::Udp, ALICE, 80).is_none());
    bench.pass(7_000);
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 9_999, 7_200)), (130, 0, 80, 8_080, 7_200));
    bench.pass(7_000);
    assert_eq!(bench.nat.bindings.len(), 1);
    for _ in 0..2 {
        assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 0)), (130, 0, 80, 0, 0));
        assert!(bench.nat.bindings.is_empty());
    }
}

#[test]
fn no_lifetime_is_longer_than_what_was_asked_for() {
    let mut bench = Bench::new();
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 80, 0, 5)).4, 5);
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 80, 0, u32::MAX)).4, 86_400);
}

#[test]
fn all_mappings_of_a_protocol_are_deleted_together() {
    let mut bench = Bench::new();
    for port in [80, 81, 82] {
        bench.nat_pmp(ALICE, &map(2, port, 0, 7_200));
    }
    bench.nat_pmp(ALICE, &map(1, 80, 0, 7_200));
    bench.nat_pmp(BOB, &map(2, 80, 0, 7_200));
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 0, 0, 0)), (130, 0, 0, 0, 0));
    assert_eq!(bench.nat.bindings.len(), 2);
    // What PCP protects by a nonce stays, and the answer says so.
    bench.ask(&Ask::map(ALICE, UDP, 90));
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 0, 0, 0)), (129, 2, 0, 0, 0));
    assert!(bench.nat.of(Transport::Udp, ALICE, 80).is_none());
    assert!(bench.nat.of(Transport::Udp, ALICE, 90).is_some());
}

#[test]
fn a_static_binding_is_told_and_not_deleted() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Tcp, ALICE, 80, 8_080, ExistingKind::Static);
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 7_200)), (130, 0, 80, 8_080, 7_200));
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 0)), (130, 2, 80, 0, 0));
}

#[test]
fn a_mapping_with_a_nonce_is_refused_and_one_without_is_taken_over_by_pcp() {
    let mut bench = Bench::new();
    bench.ask(&Ask::map(ALICE, TCP, 80));
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 7_200)).1, 2);
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 0)).1, 2);
    let (_, _, _, external, _) = bench.nat_pmp(ALICE, &map(1, 80, 0, 7_200));
    assert_eq!(bench.ask(&Ask::map(ALICE, UDP, 80)).port(), external);
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 80, 0, 0)).1, 2, "it has a nonce now");
}

/// §3.3: neither when sessions would keep the endpoint for longer. They keep it without the mapping.
#[test]
fn a_lifetime_is_not_longer_because_of_sessions() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Udp, ALICE, 5_000, 31_000, ExistingKind::Dynamic);
    for lifetime in [60, 30] {
        assert_eq!(bench.nat_pmp(ALICE, &map(1, 5_000, 0, lifetime)).3, 31_000);
        assert_eq!(bench.nat_pmp(ALICE, &map(1, 5_000, 0, lifetime)).4, lifetime);
    }
    bench.pass(30);
    assert_eq!(bench.nat.of(Transport::Udp, ALICE, 5_000).unwrap().kind, ExistingKind::Dynamic);
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 5_000, 0, 60)).4, 60);
}

#[test]
fn the_companion_port_of_another_clients_mapping_is_not_given() {
    let mut bench = Bench::new();
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 8_080, 7_200)).3, 8_080);
    assert_ne!(bench.nat_pmp(BOB, &map(1, 80, 8_080, 7_200)).3, 8_080);
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 80, 8_080, 7_200)).3, 8_080);
}

/// §3.3: another client MUST NOT be able to acquire it, by whatever protocol and however it is made; also not after a restart.
#[test]
fn the_companion_port_is_kept_for_the_client_as_long_as_the_mapping_is() {
    let mut bench = Bench::new();
    bench.nat.ports = 2_000..=2_003;
    bench.nat.next = 2_000;
    let port = bench.nat_pmp(ALICE, &map(2, 80, 2_001, 7_200)).3;
    assert_eq!((port, bench.nat.bindings.len()), (2_001, 1), "and no mapping that was not asked for");
    let mut restored = Bench::new();
    restored.nat.ports = 2_000..=2_003;
    restored.nat.next = 2_000;
    restored.server.restore(bench.server.kept(bench.now), &mut restored.nat, NOW);
    for bench in [&mut bench, &mut restored] {
        // Also after a renewal.
        assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 7_200)).3, 2_001);
        let of_bob: Vec<_> =
            (0..4).map(|number| bench.nat_pmp(BOB, &map(1, 80 + number, 0, 7_200))).collect();
        let given: Vec<_> = of_bob.iter().filter(|it| it.1 == 0).map(|it| it.3).collect();
        assert_eq!(given, [2_000, 2_002, 2_003]);
        assert_eq!(of_bob[3].1, 4, "out of resources");
        assert_eq!(bench.result(&Ask::map(BOB, UDP, 90)), ResultCode::NoResources);
        assert_eq!(bench.nat_pmp(ALICE, &map(1, 80, 2_001, 7_200)).3, 2_001);
        // A new mapping, too, has a port whose companion is not another's.
        assert_eq!(bench.nat_pmp(ALICE, &map(2, 81, 2_002, 7_200)).1, 4);
        bench.nat_pmp(ALICE, &map(1, 80, 0, 0));
        assert_eq!(bench.nat_pmp(BOB, &map(1, 90, 2_001, 7_200)).1, 4, "it is kept for Alice");
        bench.nat_pmp(ALICE, &map(2, 80, 0, 0));
        assert_eq!(bench.nat_pmp(BOB, &map(1, 90, 2_001, 7_200)).3, 2_001);
    }
}

/// §3.4: in the order of the clause.
#[test]
fn a_mapping_that_is_not_renewed_is_deleted() {
    let mut bench = Bench::new();
    bench.nat_pmp(ALICE, &map(2, 80, 8_080, 60));
    bench.pass(59);
    assert_eq!(bench.nat.bindings.len(), 1);
    bench.pass(1);
    assert!(bench.nat.bindings.is_empty());
    assert_eq!(bench.nat_pmp(BOB, &map(1, 80, 8_080, 60)).3, 8_080, "its companion is free as well");
}

/// §3.4: as many as possible are deleted, and the result is not zero.
#[test]
fn the_deletion_of_all_mappings_fails_if_a_static_one_is_left() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Tcp, ALICE, 22, 22_000, ExistingKind::Static);
    bench.nat_pmp(ALICE, &map(2, 80, 0, 7_200));
    bench.nat_pmp(ALICE, &map(1, 80, 0, 7_200));
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 0, 0, 0)), (130, 2, 0, 0, 0));
    assert!(
        bench.nat.of(Transport::Tcp, ALICE, 80).is_none()
            && bench.nat.of(Transport::Tcp, ALICE, 22).is_some()
    );
    assert_eq!(bench.nat_pmp(ALICE, &map(1, 0, 0, 0)), (129, 0, 0, 0, 0));
    assert_eq!(bench.nat_pmp(BOB, &map(2, 0, 0, 0)), (130, 0, 0, 0, 0), "others have none");
}

#[test]
fn an_opcode_that_is_not_known_is_returned_with_the_whole_request() {
    let mut bench = Bench::new();
    let replies = bench.send(ALICE, &[0, 9, 0, 0, 1, 2, 3]).unwrap();
    assert_eq!(replies[0].0, [0, 137, 0, 5, 1, 2, 3]);
    assert_eq!(bench.send(ALICE, &[0, 128, 0, 0]).unwrap_err(), Ignored::NotRequest);
}

#[test]
fn what_is_refused_has_the_port_that_was_asked_for() {
    let mut bench = Bench::new();
    for (refusal, result) in [(Refusal::Full, 4), (Refusal::NoExternal, 3), (Refusal::SubscriberLimit, 4)] {
        bench.nat.refuses = Some(refusal);
        assert_eq!(bench.nat_pmp(ALICE, &map(2, 80, 0, 7_200)), (130, result, 80, 0, 0));
    }
    assert_eq!(bench.nat_pmp(ALICE, &map(2, 0, 0, 7_200)).1, 2);
    let mut off = Bench::with(|settings| settings.map = false);
    assert_eq!(off.nat_pmp(ALICE, &map(2, 80, 0, 7_200)).1, 2);
}

#[test]
fn a_request_that_is_cut_is_not_answered_and_ipv6_hosts_are_told_of_pcp() {
    let mut bench = Bench::new();
    let request = map(2, 80, 0, 7_200);
    for length in 2..request.len() {
        assert_eq!(bench.send(ALICE, &request[..length]).unwrap_err(), Ignored::Short, "{length}");
    }
    let replies = bench.send("2001:db8::7", &request).unwrap();
    assert_eq!(replies[0].result(), ResultCode::UnsuppVersion);
}
