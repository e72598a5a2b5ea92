//! RFC 6887 §11.3, §13, §15: MAP.

use super::*;
use sixway_control::pcp::{ExistingKind, MOST_FILTERS, Refusal, Transport};

#[test]
fn a_mapping_is_made_with_what_was_asked_in_the_answer() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, TCP, 80);
    let reply = bench.ask(&ask);
    assert_eq!((reply.port(), reply.lifetime(), reply.0.len()), (20_000, 3_600, 60));
    assert_eq!(reply.0[24..42], ask.octets[24..42], "nonce, protocol and inside port");
    assert!(reply.0[12..24].iter().all(|octet| *octet == 0), "reserved");
    assert_eq!(bench.nat.of(Transport::Tcp, ALICE, 80).unwrap().external, 20_000);
    assert!(bench.nat.of(Transport::Udp, ALICE, 80).is_none(), "no other protocol");
}

#[test]
fn the_suggested_external_endpoint_is_given_if_it_is_free() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080)).port(), 8_080);
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 81).suggest("0.0.0.0", 8_081)).port(), 8_081);
    // A poor choice is not worse than none.
    for (port, (address, suggested)) in
        [("192.0.2.1", 8_080), ("192.0.2.1", 80), ("127.0.0.1", 9_000), ("224.0.0.1", 9_000), ("::1", 9_000)]
            .into_iter()
            .enumerate()
    {
        let reply = bench.ask(&Ask::map(BOB, TCP, 100 + port as u16).suggest(address, suggested));
        assert_eq!(reply.result(), ResultCode::Success, "{address}");
    }
}

#[test]
fn with_prefer_failure_another_external_endpoint_is_not_given() {
    let mut bench = Bench::new();
    let free = bench.ask(&Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080).prefer_failure());
    assert_eq!((free.port(), free.map_options()), (8_080, vec![(2, vec![])]));
    for ask in [
        Ask::map(BOB, TCP, 80).suggest("192.0.2.1", 8_080),
        Ask::map(BOB, TCP, 80).suggest("192.0.2.1", 80),
        Ask::map(BOB, TCP, 80).suggest("192.0.2.9", 9_000),
        Ask::map(BOB, TCP, 80).suggest("2001:db8::1", 9_000),
        // A mapping that exists has another one (§11.3, 1).
        Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 9_000),
    ] {
        let reply = bench.ask(&ask.prefer_failure());
        assert_eq!((reply.result(), reply.lifetime()), (ResultCode::CannotProvideExternal, 30));
    }
    assert_eq!(bench.nat.bindings.len(), 1);
}

#[test]
fn a_request_again_renews_the_mapping_and_keeps_the_external_endpoint() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, UDP, 53);
    let port = bench.ask(&ask).port();
    bench.pass(3_000);
    let again = bench.ask(&ask.clone().suggest("192.0.2.1", 9_000));
    assert_eq!((again.port(), again.lifetime()), (port, 3_600));
    bench.pass(3_500);
    assert_eq!(bench.nat.bindings.len(), 1);
    bench.pass(101);
    assert!(bench.nat.bindings.is_empty(), "it was not renewed again");
    assert_eq!(bench.server.counts().expired, 1);
    assert_eq!(bench.server.sizes(), (0, 0, 0));
}

#[test]
fn lifetimes_are_within_their_bounds() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 80).lifetime(1)).lifetime(), 120);
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 80).lifetime(u32::MAX)).lifetime(), 86_400);
    assert_eq!(
        bench.ask(&Ask::map(ALICE, TCP, 80).lifetime(600)).lifetime(),
        600,
        "the owner may shorten it"
    );
}

#[test]
fn a_mapping_is_deleted_by_its_owner_and_again_without_an_error() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, TCP, 80);
    bench.ask(&ask);
    let delete = ask.lifetime(0).suggest("192.0.2.77", 77);
    for _ in 0..2 {
        let reply = bench.ask(&delete);
        assert_eq!((reply.result(), reply.lifetime()), (ResultCode::Success, 0));
        assert_eq!(reply.0[42..60], delete.octets[42..60], "copied from the request");
        assert!(bench.nat.bindings.is_empty());
    }
}

#[test]
fn whole_protocols_are_not_mapped_and_their_deletion_succeeds() {
    let mut bench = Bench::new();
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 0)), ResultCode::UnsuppProtocol);
    assert_eq!(bench.result(&Ask::map(ALICE, 0, 0)), ResultCode::UnsuppProtocol);
    assert_eq!(bench.result(&Ask::map(ALICE, 132, 80)), ResultCode::UnsuppProtocol);
    assert_eq!(bench.result(&Ask::map(ALICE, 0, 80)), ResultCode::MalformedRequest);
    assert_eq!(bench.result(&Ask::map(ALICE, 0, 80).lifetime(0)), ResultCode::MalformedRequest);
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 0).lifetime(0)), ResultCode::Success);
    assert_eq!(bench.result(&Ask::map(ALICE, 0, 0).lifetime(0)), ResultCode::Success);
}

#[test]
fn a_static_binding_is_told_with_an_endless_lifetime_and_cannot_be_deleted() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Tcp, ALICE, 80, 8_080, ExistingKind::Static);
    let reply = bench.ask(&Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 9_000));
    assert_eq!((reply.port(), reply.lifetime()), (8_080, u32::MAX));
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 80).nonce(99)).port(), 8_080, "no nonce is recorded");
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 80).lifetime(0)), ResultCode::NotAuthorized);
    assert_eq!(bench.server.sizes(), (0, 0, 0));
}

#[test]
fn an_outbound_binding_keeps_its_external_endpoint_and_outlives_the_mapping() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Udp, ALICE, 5_000, 31_000, ExistingKind::Dynamic);
    assert_eq!(bench.result(&Ask::map(ALICE, UDP, 5_000).lifetime(0)), ResultCode::NotAuthorized);
    let reply = bench.ask(&Ask::map(ALICE, UDP, 5_000).lifetime(120).suggest("192.0.2.1", 9_000));
    // §15: not sooner than it would have ended otherwise.
    assert_eq!((reply.port(), reply.lifetime()), (31_000, 200));
    let reply = bench.ask(&Ask::map(ALICE, UDP, 5_000).lifetime(0));
    assert_eq!((reply.result(), reply.lifetime()), (ResultCode::Success, 200));
    assert_eq!(bench.nat.bindings[0].kind, ExistingKind::Dynamic);
}

#[test]
fn the_external_ports_of_the_protocol_itself_are_not_mapped() {
    let mut bench = Bench::new();
    bench.nat.ports = 5_350..=5_400;
    bench.nat.next = 5_350;
    let reply = bench.ask(&Ask::map(ALICE, UDP, 80).suggest("192.0.2.1", 5_351));
    assert_eq!(reply.port(), 5_352);
    let exactly = Ask::map(BOB, UDP, 80).suggest("192.0.2.1", 5_350).prefer_failure();
    assert_eq!(bench.result(&exactly), ResultCode::CannotProvideExternal);
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 5_351)).port(), 5_351);
    // A packet has made this one, and its session keeps it.
    bench.nat.add(Transport::Udp, ALICE, 7_000, 5_351, ExistingKind::Dynamic);
    assert_eq!(bench.result(&Ask::map(ALICE, UDP, 7_000)), ResultCode::NoResources);
    assert_eq!(bench.nat.of(Transport::Udp, ALICE, 7_000).unwrap().kind, ExistingKind::Dynamic);
}

#[test]
fn what_the_nat_refuses_has_its_result_code() {
    for (refusal, result) in [
        (Refusal::NotServed, ResultCode::NotAuthorized),
        (Refusal::SubscriberLimit, ResultCode::UserExQuota),
        (Refusal::Full, ResultCode::NoResources),
        (Refusal::NoExternal, ResultCode::NetworkFailure),
    ] {
        let mut bench = Bench::new();
        bench.nat.refuses = Some(refusal);
        assert_eq!(bench.result(&Ask::map(ALICE, TCP, 80)), result);
        assert_eq!(bench.server.sizes(), (0, 0, 0));
    }
}

#[test]
fn filters_are_added_and_cleared_in_their_order_and_come_back() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, UDP, 53).filter("198.51.100.0", 120, 0).filter("203.0.113.7", 128, 53);
    let reply = bench.ask(&ask);
    assert_eq!(reply.result(), ResultCode::Success);
    assert_eq!(reply.0[60..], ask.octets[60..]);
    let filters = |bench: &Bench| -> Vec<String> {
        let all = &bench.nat.of(Transport::Udp, ALICE, 53).unwrap().filters;
        all.iter().map(|it| format!("{}:{}", it.remote, it.port)).collect()
    };
    assert_eq!(filters(&bench), ["198.51.100.0/24:0", "203.0.113.7/32:53"]);
    // The same again adds nothing, another one is added, and a request without one leaves them.
    bench.ask(&ask);
    bench.ask(&Ask::map(ALICE, UDP, 53).filter("192.0.2.200", 128, 0));
    bench.ask(&Ask::map(ALICE, UDP, 53));
    assert_eq!(filters(&bench).len(), 3);
    bench.ask(&Ask::map(ALICE, UDP, 53).filter("0.0.0.0", 0, 0).filter("203.0.113.8", 128, 0));
    assert_eq!(filters(&bench), ["203.0.113.8/32:0"]);
    bench.ask(&Ask::map(ALICE, UDP, 53).filter("::", 0, 0));
    assert!(filters(&bench).is_empty());
}

#[test]
fn more_filters_than_there_is_room_for_are_refused_together() {
    let mut bench = Bench::new();
    bench.ask(&Ask::map(ALICE, UDP, 53).filter("198.51.100.1", 128, 0));
    let mut many = Ask::map(ALICE, UDP, 53);
    for port in 0..MOST_FILTERS as u16 {
        many = many.filter("203.0.113.7", 128, 1_000 + port);
    }
    let reply = bench.ask(&many);
    assert_eq!((reply.result(), reply.lifetime()), (ResultCode::ExcessiveRemotePeers, 1_800));
    assert_eq!(bench.nat.bindings[0].filters.len(), 1, "nothing has changed");
    // An IPv6 host that no NAT64 stands for cannot be admitted.
    let of_ipv6 = Ask::map(ALICE, UDP, 53).filter("2001:db8::1", 128, 0);
    assert_eq!(bench.result(&of_ipv6), ResultCode::ExcessiveRemotePeers);
}

#[test]
fn map_can_be_disabled() {
    let mut bench = Bench::with(|settings| settings.map = false);
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 80)), ResultCode::NotAuthorized);
    assert_eq!(bench.result(&Ask::announce(ALICE)), ResultCode::Success);
}

#[test]
fn a_host_of_a_nat64_asks_by_ipv6() {
    let mut bench = Bench::new();
    let reply = bench.ask(&Ask::map("2001:db8::7", TCP, 80).suggest("::", 0));
    assert_eq!((reply.port(), reply.internal_port()), (20_000, 80));
}

/// §7.4: CANNOT_PROVIDE_EXTERNAL and EXCESSIVE_REMOTE_PEERS MUST only be returned to requests that can have them.
#[test]
fn a_request_that_takes_any_external_endpoint_is_never_told_that_it_cannot_be_provided() {
    let mut bench = Bench::new();
    bench.nat.refuses = Some(Refusal::ExternalTaken);
    let reply = bench.ask(&Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080));
    assert_eq!((reply.result(), reply.lifetime()), (ResultCode::NoResources, 30));
    let exactly = Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080).prefer_failure();
    assert_eq!(bench.result(&exactly), ResultCode::CannotProvideExternal);
}

/// §11.3, 1: also if the mapping is static.
#[test]
fn with_prefer_failure_a_static_binding_must_have_the_suggested_external_endpoint() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Tcp, ALICE, 80, 8_080, ExistingKind::Static);
    let ask = |port| Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", port).prefer_failure();
    assert_eq!(bench.result(&ask(9_000)), ResultCode::CannotProvideExternal);
    let reply = bench.ask(&ask(8_080));
    assert_eq!((reply.port(), reply.lifetime()), (8_080, u32::MAX));
}

/// §15.1: MAP deletes what MAP has made alone.
#[test]
fn map_does_not_delete_an_outbound_mapping_that_peer_has_made() {
    let mut bench = Bench::new();
    bench.ask(&Ask::peer(ALICE, TCP, 4_000, ("198.51.100.9", 443)));
    let before = bench.nat.bindings.len();
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 4_000).lifetime(0)), ResultCode::NotAuthorized);
    assert_eq!((bench.nat.bindings.len(), bench.server.sizes().2), (before, 1));
}
