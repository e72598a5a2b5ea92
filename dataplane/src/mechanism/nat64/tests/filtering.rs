//! Packets from outside (RFC 6146 §3.5.1, §3.5.3).

use super::*;

fn udp_in(source: &str, port: u16, outside: Endpoint4) -> Packet {
    v4(source, outside.address, UDP, ports(port, outside.port, 0))
}

#[test]
fn without_a_binding_nothing_comes_in() {
    let mut bench = Harness::endpoint_independent();
    let nobody = e4("192.0.2.5", 5_555);
    assert_eq!(bench.send(&udp_in(SERVER, 53, nobody)), Err(DropReason::NoBinding));
    let request = v4(SERVER, nobody.address, ICMPV4, echo(8, 5_555));
    assert_eq!(bench.send(&request), Err(DropReason::NoBinding));
    assert_eq!(bench.back(nobody, ACK), Err(DropReason::NoSession));
}

#[test]
fn endpoint_independent_filtering_lets_any_remote_in_and_makes_its_session() {
    let mut bench = Harness::endpoint_independent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    let (source, destination) = bench.sent_in(&udp_in(STRANGER, 99, outside));
    assert_eq!((source, destination), (e6("64:ff9b::203.0.113.2", 99), e6(HOST, 5_000)));
    assert_eq!(bench.sessions().len(), 2);
}

#[test]
fn address_dependent_filtering_lets_in_the_address_whatever_its_port() {
    let mut bench = Harness::address_dependent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 53, 0)));
    assert_eq!(bench.send(&udp_in(STRANGER, 53, outside)), Err(DropReason::Filtered));
    assert_eq!(bench.sent_in(&udp_in(SERVER, 99, outside)).1, e6(HOST, 5_000));
    bench.wait(UDP_DEFAULT);
    bench.expire();
    assert_eq!(bench.send(&udp_in(SERVER, 99, outside)), Err(DropReason::NoBinding));
}

#[test]
fn address_dependent_filtering_holds_for_echoes_too() {
    let mut bench = Harness::address_dependent();
    let (outside, _) = bench.sent_out(&v6(HOST, IMAGE, ICMPV6, echo(128, 7)));
    let stranger = v4(STRANGER, outside.address, ICMPV4, echo(8, outside.port));
    assert_eq!(bench.send(&stranger), Err(DropReason::Filtered));
    let server = v4(SERVER, outside.address, ICMPV4, echo(8, outside.port));
    assert_eq!(bench.sent_in(&server), (e6(IMAGE, 7), e6(HOST, 7)));
}

#[test]
fn address_dependent_filtering_refuses_data_of_unknown_connections() {
    let mut bench = Harness::address_dependent();
    let outside = bench.connect();
    let data = v4(STRANGER, outside.address, TCP, ports(80, outside.port, ACK));
    assert_eq!(bench.send(&data), Err(DropReason::Filtered));
}

#[test]
fn a_static_binding_lets_everyone_in_whatever_the_filtering() {
    let outside = e4("192.0.2.1", 53);
    let binding = StaticBinding {
        protocol: NatProtocol::Udp,
        softwire: None,
        inside: Inside(e6(HOST, 53)),
        outside: Outside(outside),
    };
    for filtering in
        [Filtering::EndpointIndependent, Filtering::AddressDependent, Filtering::AddressAndPortDependent]
    {
        let mut bench = Harness::new(&Nat64Config { filtering, static_bindings: vec![binding], ..config() });
        assert_eq!(bench.sent_in(&udp_in(STRANGER, 999, outside)).1, e6(HOST, 53));
        bench.wait(UDP_DEFAULT);
        bench.expire();
        assert_eq!((bench.sessions().len(), bench.nat64.occupancy().bindings), (0, 1));
        assert_eq!(
            bench.sent_in(&udp_in(STRANGER, 999, outside)).1,
            e6(HOST, 53),
            "it outlives its sessions"
        );
    }
}

#[test]
fn packets_from_either_side_keep_a_session_alive_until_its_very_last_second() {
    for (protocol, transport, lifetime) in
        [(UDP, ports(5_000, 53, 0), UDP_DEFAULT), (ICMPV6, echo(128, 7), Duration::from_secs(60))]
    {
        let mut bench = Harness::endpoint_independent();
        let request = v6(HOST, IMAGE, protocol, transport);
        let (outside, _) = bench.sent_out(&request);
        let answer = match protocol {
            UDP => udp_in(SERVER, 53, outside),
            _ => v4(SERVER, outside.address, ICMPV4, echo(0, outside.port)),
        };
        for packet in [answer, request, answer] {
            bench.wait(lifetime - Duration::from_nanos(1));
            bench.expire();
            assert!(bench.send(&packet).is_ok());
            assert_eq!(bench.effects.counters.sessions_made, 1);
        }
        // A lifetime starts in whole seconds, rounded up.
        bench.wait(lifetime + Duration::from_secs(1));
        bench.expire();
        assert_eq!(bench.sessions(), []);
        assert_eq!((bench.effects.counters.bindings_ended, bench.nat64.occupancy().bindings), (1, 0));
    }
}
