//! ICMP errors and queries (RFC 6146 §3.4, §3.5.3, §3.6).

use super::*;

const ROUTER_INSIDE: &str = "2001:db8:ffff::1";
const ROUTER_OUTSIDE: &str = "198.51.100.254";
const ERROR: Transport = Transport::IcmpError { kind: 3, code: 3 };

fn decision(outcome: Result<Decision, DropReason>) -> Decision {
    match outcome {
        Ok(decision) => decision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_from_outside_goes_to_the_inside_end_of_the_quoted_packet() {
    let mut bench = Harness::endpoint_independent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    let error = v4(ROUTER_OUTSIDE, outside.address, ICMPV4, ERROR);
    let quoted = QuotedTuple::V4 { source: outside, destination: e4(SERVER, 53), protocol: UDP };
    let decision = decision(bench.send_quoting(&error, Some(quoted)));
    let source = e6("64:ff9b::198.51.100.254", 0);
    let edit = Edit::Translate4To6 { source, destination: e6(HOST, 5_000), keep_ports: true };
    assert_eq!(decision.action, Action { edit: Some(edit), policy: PolicyId(3), ..Action::default() });
    let (source, destination) = (e6(HOST, 5_000), e6(IMAGE, 53));
    assert_eq!(bench.quoted(&decision), Some(Quoted::V6 { source, destination, keep_ports: false }));
}

#[test]
fn an_error_from_a_router_inside_leaves_with_the_outside_address_of_the_binding() {
    let mut bench = Harness::endpoint_independent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, TCP, ports(5_000, 80, SYN)));
    let error = v6(ROUTER_INSIDE, IMAGE, ICMPV6, Transport::IcmpError { kind: 1, code: 3 });
    let quoted = QuotedTuple::V6 { source: e6(IMAGE, 80), destination: e6(HOST, 5_000), protocol: TCP };
    let decision = decision(bench.send_quoting(&error, Some(quoted)));
    let Some(Edit::Translate6To4 { source, destination, keep_ports: true }) = decision.action.edit else {
        panic!()
    };
    assert_eq!((source.address, destination.address), (outside.address, SERVER.parse().unwrap()));
    let (source, destination) = (e4(SERVER, 80), outside);
    assert_eq!(bench.quoted(&decision), Some(Quoted::V4 { source, destination, keep_ports: false }));
}

#[test]
fn an_error_about_an_echo_is_found_by_its_identifier() {
    let mut bench = Harness::endpoint_independent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, ICMPV6, echo(128, 77)));
    let error = v4(ROUTER_OUTSIDE, outside.address, ICMPV4, ERROR);
    let quoted = QuotedTuple::V4 { source: outside, destination: e4(SERVER, outside.port), protocol: ICMPV4 };
    let from_outside = decision(bench.send_quoting(&error, Some(quoted)));
    let (source, destination) = (e6(HOST, 77), e6(IMAGE, 77));
    assert_eq!(bench.quoted(&from_outside), Some(Quoted::V6 { source, destination, keep_ports: false }));

    let error = v6(HOST, IMAGE, ICMPV6, Transport::IcmpError { kind: 1, code: 4 });
    let quoted = QuotedTuple::V6 { source: e6(IMAGE, 77), destination: e6(HOST, 77), protocol: ICMPV6 };
    let from_inside = decision(bench.send_quoting(&error, Some(quoted)));
    let (source, destination) = (e4(SERVER, outside.port), outside);
    assert_eq!(bench.quoted(&from_inside), Some(Quoted::V4 { source, destination, keep_ports: false }));
}

#[test]
fn an_error_about_a_packet_of_nobody_is_dropped() {
    let mut bench = Harness::endpoint_independent();
    let outside = e4("192.0.2.1", 4_000);
    let from_outside = v4(ROUTER_OUTSIDE, outside.address, ICMPV4, ERROR);
    for protocol in [TCP, UDP, ICMPV4, ICMPV6, SCTP] {
        let quoted = QuotedTuple::V4 { source: outside, destination: e4(SERVER, 53), protocol };
        let outcome = bench.send_quoting(&from_outside, Some(quoted));
        assert_eq!(outcome, Err(DropReason::NoSessionForError));
    }
    let from_inside = v6(HOST, IMAGE, ICMPV6, ERROR);
    for (remote, protocol) in [(IMAGE, UDP), (IMAGE, ICMPV4), ("2001:db8::99", UDP), (IMAGE, SCTP)] {
        let quoted = QuotedTuple::V6 { source: e6(remote, 53), destination: e6(HOST, 5_000), protocol };
        let outcome = bench.send_quoting(&from_inside, Some(quoted));
        assert_eq!(outcome, Err(DropReason::NoSessionForError));
    }
}

#[test]
fn an_error_without_a_readable_quote_is_dropped() {
    let mut bench = Harness::endpoint_independent();
    let from_outside = v4(ROUTER_OUTSIDE, "192.0.2.1".parse().unwrap(), ICMPV4, ERROR);
    assert_eq!(bench.send(&from_outside), Err(DropReason::QuoteUnusable));
    let quoted = QuotedTuple::V6 { source: e6(IMAGE, 80), destination: e6(HOST, 5_000), protocol: TCP };
    assert_eq!(bench.send_quoting(&from_outside, Some(quoted)), Err(DropReason::QuoteUnusable));
}

#[test]
fn with_address_dependent_filtering_an_error_about_an_unknown_remote_is_dropped() {
    let mut bench = Harness::address_dependent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    let error = v4(ROUTER_OUTSIDE, outside.address, ICMPV4, ERROR);
    let about = |remote| QuotedTuple::V4 { source: outside, destination: remote, protocol: UDP };
    assert!(bench.send_quoting(&error, Some(about(e4(SERVER, 53)))).is_ok());
    let outcome = bench.send_quoting(&error, Some(about(e4(STRANGER, 53))));
    assert_eq!(outcome, Err(DropReason::NoSessionForError));
}

#[test]
fn errors_change_no_lifetime() {
    let mut bench = Harness::endpoint_independent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    bench.wait(UDP_DEFAULT - Duration::from_secs(1));
    let error = v4(ROUTER_OUTSIDE, outside.address, ICMPV4, ERROR);
    let quoted = QuotedTuple::V4 { source: outside, destination: e4(SERVER, 53), protocol: UDP };
    assert!(bench.send_quoting(&error, Some(quoted)).is_ok());
    bench.wait(Duration::from_secs(1));
    bench.expire();
    assert_eq!(bench.sessions(), []);
}

#[test]
fn an_error_of_a_sender_that_the_well_known_prefix_may_not_stand_for_is_refused() {
    for (lifted, is_refused) in [(false, true), (true, false)] {
        let prefix = Rfc6052::new("64:ff9b::/96".parse().unwrap(), lifted).unwrap();
        let mut bench = Harness::new(&Nat64Config { prefix, ..config() });
        let (outside, _) = bench.sent_out(&v6(HOST, "64:ff9b::8.8.8.8", UDP, ports(5_000, 53, 0)));
        let error = v4("10.0.0.1", outside.address, ICMPV4, Transport::IcmpError { kind: 11, code: 0 });
        let quoted = QuotedTuple::V4 { source: outside, destination: e4("8.8.8.8", 53), protocol: UDP };
        let outcome = bench.send_quoting(&error, Some(quoted));
        assert_eq!(outcome == Err(DropReason::NonGlobalWithWellKnownPrefix), is_refused, "{outcome:?}");
    }
}

#[test]
fn queries_other_than_echoes_are_not_translated() {
    let mut bench = Harness::endpoint_independent();
    let timestamp = v4(SERVER, "192.0.2.1".parse().unwrap(), ICMPV4, echo(13, 1));
    assert_eq!(bench.send(&timestamp), Err(DropReason::IcmpUntranslatable));
    let information = v6(HOST, IMAGE, ICMPV6, echo(139, 1));
    assert_eq!(bench.send(&information), Err(DropReason::IcmpUntranslatable));
}
