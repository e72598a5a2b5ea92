//! Which packets are refused, and why.

use super::*;
use crate::nat::StateLimits;

#[test]
fn only_tcp_udp_and_icmp_are_translated() {
    let mut bench = Harness::endpoint_independent();
    let outside = "192.0.2.1".parse().unwrap();
    for protocol in [SCTP, 47, 50, 33, 136] {
        let reason = Err(DropReason::ProtocolUnsupported);
        assert_eq!(bench.send(&v6(HOST, IMAGE, protocol, ports(1, 2, 0))), reason);
        assert_eq!(bench.send(&v6(HOST, IMAGE, protocol, Transport::Opaque)), reason);
        assert_eq!(bench.send(&v4(SERVER, outside, protocol, ports(1, 2, 0))), reason);
    }
    assert_eq!(bench.send(&v6(HOST, IMAGE, ICMPV4, echo(8, 1))), Err(DropReason::ProtocolUnsupported));
    assert_eq!(bench.send(&v4(SERVER, outside, ICMPV6, echo(128, 1))), Err(DropReason::ProtocolUnsupported));
}

#[test]
fn a_later_fragment_that_was_not_reassembled_is_refused() {
    let mut bench = Harness::endpoint_independent();
    assert_eq!(bench.send(&v6(HOST, IMAGE, UDP, Transport::Opaque)), Err(DropReason::BadFragment));
    let later = v4(SERVER, "192.0.2.1".parse().unwrap(), TCP, Transport::Opaque);
    assert_eq!(bench.send(&later), Err(DropReason::BadFragment));
}

#[test]
fn a_source_under_the_prefix_is_dropped_whatever_it_carries() {
    let mut bench = Harness::endpoint_independent();
    let reason = Err(DropReason::SourceInTranslationPrefix);
    let from = "64:ff9b::192.0.2.1";
    assert_eq!(bench.send(&v6(from, IMAGE, UDP, ports(500, 500, 0))), reason);
    assert_eq!(bench.send(&v6(from, IMAGE, TCP, ports(500, 500, ACK))), reason);
    assert_eq!(bench.send(&v6(from, IMAGE, SCTP, Transport::Opaque)), reason);
    assert_eq!(bench.send(&v6(from, IMAGE, ICMPV6, Transport::IcmpError { kind: 1, code: 0 })), reason);
}

#[test]
fn an_embedded_destination_that_is_not_a_host_is_dropped() {
    let mut bench = Harness::endpoint_independent();
    for address in ["127.0.0.1", "224.0.0.1", "0.0.0.0", "255.255.255.255"] {
        let packet = v6(HOST, &format!("64:ff9b::{address}"), UDP, ports(1, 2, 0));
        assert_eq!(bench.send(&packet), Err(DropReason::MartianDestination), "{address}");
    }
}

#[test]
fn the_well_known_prefix_does_not_stand_for_private_addresses_in_either_direction() {
    let prefix = Rfc6052::new("64:ff9b::/96".parse().unwrap(), false).unwrap();
    let mut bench = Harness::new(&Nat64Config { prefix, ..config() });
    let out = v6(HOST, "64:ff9b::10.0.0.1", UDP, ports(5_000, 53, 0));
    assert_eq!(bench.send(&out), Err(DropReason::NonGlobalWithWellKnownPrefix));
    let (outside, _) = bench.sent_out(&v6(HOST, "64:ff9b::8.8.8.8", UDP, ports(5_000, 53, 0)));
    let back = v4("10.0.0.1", outside.address, UDP, ports(53, outside.port, 0));
    assert_eq!(bench.send(&back), Err(DropReason::NonGlobalWithWellKnownPrefix));
    assert_eq!(bench.sessions().len(), 1);
}

#[test]
fn an_octet_u_that_is_not_zero_is_refused() {
    let prefix = Rfc6052::new("2001:db8:122::/48".parse().unwrap(), false).unwrap();
    let mut bench = Harness::new(&Nat64Config { prefix, ..config() });
    let packet = v6(HOST, "2001:db8:122:c000:102:2100::", UDP, ports(1, 2, 0));
    assert_eq!(bench.send(&packet), Err(DropReason::OctetUNotZero));
}

#[test]
fn a_full_table_of_sessions_refuses_new_ones_and_serves_the_old() {
    let mut bench = Harness::new(&Nat64Config {
        limits: StateLimits { sessions: 2, ..StateLimits::default() },
        ..config()
    });
    let first = v6(HOST, IMAGE, UDP, ports(5_000, 1, 0));
    let (outside, _) = bench.sent_out(&first);
    bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 2, 0)));
    let refused = Err(DropReason::SessionTableFull);
    assert_eq!(bench.send(&v6(HOST, IMAGE, UDP, ports(5_000, 3, 0))), refused);
    assert_eq!(bench.send(&v6(OTHER, IMAGE, UDP, ports(5_000, 3, 0))), refused);
    assert_eq!(bench.send(&v4(SERVER, outside.address, UDP, ports(3, outside.port, 0))), refused);
    assert_eq!(bench.nat64.occupancy().bindings, 1, "a refused session leaves no binding behind");
    assert_eq!(bench.sent_out(&first).0, outside);
}

#[test]
fn a_full_table_of_bindings_refuses_new_hosts_and_serves_the_old() {
    let mut bench = Harness::new(&Nat64Config {
        limits: StateLimits { bindings: 1, ..StateLimits::default() },
        ..config()
    });
    bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 1, 0)));
    let refused = bench.send(&v6(OTHER, IMAGE, UDP, ports(5_000, 1, 0)));
    assert_eq!(refused, Err(DropReason::BindingTableFull));
    bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 2, 0)));
}

#[test]
fn an_empty_pool_refuses_until_a_port_is_free_again() {
    let pool = PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![4_000..=4_000] };
    let mut bench = Harness::new(&Nat64Config { pool, ..config() });
    bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000, 1, 0)));
    let other = v6(OTHER, IMAGE, UDP, ports(5_000, 1, 0));
    assert_eq!(bench.send(&other), Err(DropReason::PortPoolEmpty));
    bench.sent_out(&v6(OTHER, IMAGE, ICMPV6, echo(128, 9)));
    bench.wait(UDP_DEFAULT);
    bench.expire();
    assert_eq!(bench.sent_out(&other).0, e4("192.0.2.1", 4_000));
}

#[test]
fn expiry_does_no_more_than_its_budget_and_the_rest_later() {
    let mut bench = Harness::endpoint_independent();
    for port in 0..100 {
        bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_000 + port, 1, 0)));
    }
    bench.wait(UDP_DEFAULT);
    for left in [90, 80, 70] {
        bench.nat64.expire(bench.now, 10, &mut bench.effects);
        assert_eq!(bench.nat64.occupancy().sessions, left);
    }
    bench.expire();
    assert_eq!((bench.nat64.occupancy().sessions, bench.nat64.occupancy().bindings), (0, 0));
}
