//! RFC 6887 §12.3: PEER.

use super::*;
use sixway_control::pcp::{ExistingKind, Transport};

const REMOTE: (&str, u16) = ("198.51.100.9", 443);

#[test]
fn an_outbound_mapping_is_made_as_a_packet_would() {
    let mut bench = Bench::new();
    let ask = Ask::peer(ALICE, TCP, 4_000, REMOTE);
    let reply = bench.ask(&ask);
    assert_eq!((reply.port(), reply.lifetime(), reply.0.len()), (20_000, 240, 80));
    assert_eq!(reply.0[24..42], ask.octets[24..42]);
    assert_eq!(reply.0[60..80], ask.octets[60..80], "the remote endpoint");
    assert_eq!(bench.nat.bindings[0].kind, ExistingKind::Dynamic);
    assert_eq!(bench.server.sizes(), (0, 1, 1));
    bench.pass(241);
    assert_eq!(bench.server.sizes(), (0, 0, 0), "the nonce is forgotten with the mapping");
}

#[test]
fn an_outbound_mapping_that_exists_is_told() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Tcp, ALICE, 4_000, 31_000, ExistingKind::Dynamic);
    let reply = bench.ask(&Ask::peer(ALICE, TCP, 4_000, REMOTE).suggest("192.0.2.1", 9_000));
    assert_eq!((reply.port(), reply.lifetime()), (31_000, 300));
}

#[test]
fn a_lost_mapping_is_made_again_or_not_at_all() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(&Ask::peer(ALICE, TCP, 4_000, REMOTE).suggest("192.0.2.1", 9_000)).port(), 9_000);
    for (address, port) in [("192.0.2.1", 9_000), ("192.0.2.9", 9_001), ("2001:db8::1", 9_002)] {
        let ask = Ask::peer(BOB, TCP, 4_000, REMOTE).suggest(address, port);
        assert_eq!(bench.result(&ask), ResultCode::CannotProvideExternal);
    }
    assert_eq!(bench.nat.bindings.len(), 1);
}

#[test]
fn another_nonce_is_refused_while_the_mapping_is_kept() {
    let mut bench = Bench::new();
    let ask = Ask::peer(ALICE, TCP, 4_000, REMOTE);
    bench.ask(&ask);
    bench.pass(40);
    let reply = bench.ask(&ask.clone().nonce(99));
    assert_eq!((reply.result(), reply.lifetime()), (ResultCode::NotAuthorized, 200));
    assert_eq!(bench.ask(&ask).result(), ResultCode::Success);
}

#[test]
fn a_request_without_protocol_port_or_a_remote_host_that_can_be_reached_is_malformed() {
    let mut bench = Bench::new();
    for ask in [
        Ask::peer(ALICE, 0, 0, REMOTE),
        Ask::peer(ALICE, TCP, 0, REMOTE),
        Ask::peer(ALICE, TCP, 4_000, ("198.51.100.9", 0)),
        Ask::peer(ALICE, TCP, 4_000, ("127.0.0.1", 80)),
        Ask::peer(ALICE, TCP, 4_000, ("2001:db8::1", 80)),
        Ask::peer("2001:db8::7", TCP, 4_000, REMOTE),
    ] {
        assert_eq!(bench.result(&ask), ResultCode::MalformedRequest);
    }
    assert_eq!(bench.result(&Ask::peer(ALICE, 132, 4_000, REMOTE)), ResultCode::UnsuppProtocol);
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn a_client_of_a_nat64_names_the_remote_host_as_it_sees_it() {
    let prefix = sixway_dataplane::translate::address::rfc6052::WELL_KNOWN_PREFIX;
    let prefix = sixway_dataplane::translate::address::Rfc6052::new(prefix, true).unwrap();
    let mut bench = Bench::with(|settings| settings.prefixes64 = vec![prefix]);
    let ask = Ask::peer("2001:db8::7", TCP, 4_000, ("64:ff9b::c633:6409", 443));
    assert_eq!(bench.ask(&ask).port(), 20_000);
}

#[test]
fn peer_can_be_disabled() {
    let mut bench = Bench::with(|settings| settings.peer = false);
    assert_eq!(bench.result(&Ask::peer(ALICE, TCP, 4_000, REMOTE)), ResultCode::NotAuthorized);
}
