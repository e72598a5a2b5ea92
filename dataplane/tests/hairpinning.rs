//! Two IPv6 hosts with explicit mappings talk to one another by their IPv4 addresses (RFC 7757 §4, Appendix B.1).

use crate::support::{Gateway, eam, icmp4, icmp6, siit, v4, v6};
use sixway_dataplane::mechanism::siit::Hairpinning;
use sixway_dataplane::translate::address::Rfc6052;

/// The hosts, and the IPv4 addresses of each as IPv6 sees them.
const A: &str = "2001:db8:aaaa::";
const B: &str = "2001:db8:bbbb::b";
const A_OUTSIDE: &str = "64:ff9b::192.0.2.1";
const B_OUTSIDE: &str = "64:ff9b::192.0.2.2";

/// The table of Figure 1, as far as B.1 uses it, with the pool of RFC 6791 that B.1 assumes.
fn appendix_b(hairpinning: Hairpinning) -> Gateway {
    siit(|config| {
        config.prefix = Some(Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap());
        config.eam = eam(&[("192.0.2.1", A), ("192.0.2.2/32", "2001:db8:bbbb::b/128")]);
        config.icmp_source_pool = vec!["198.51.100.1".parse().unwrap()];
        config.hairpinning = hairpinning;
    })
}

/// The packet of Figure 8 as it arrives at its destination, and so as an error quotes it.
fn figure_8_arrived() -> Vec<u8> {
    v6(A_OUTSIDE, B).hops(63).udp(4000, 53, b"question").octets()
}

#[test]
fn hairpinning_is_on_by_default() {
    assert_eq!(Hairpinning::default(), Hairpinning::Intrinsic);
}

#[test]
fn a_packet_and_its_answer_are_turned_around_as_figures_8_and_11_show() {
    let mut gateway = appendix_b(Hairpinning::Intrinsic);
    gateway.receives(v6(A, B_OUTSIDE).udp(4000, 53, b"question"));
    gateway.sends(figure_8_arrived());
    gateway.counted([("siit.v6_to_v4", 1), ("siit.v4_to_v6", 1)]);
    gateway.receives(v6(B, A_OUTSIDE).udp(53, 4000, b"answer"));
    gateway.sends(v6(B_OUTSIDE, A).hops(63).udp(53, 4000, b"answer"));
    gateway.counted([("siit.v6_to_v4", 1), ("siit.v4_to_v6", 1)]);
}

#[test]
fn the_gateway_is_one_hop_for_a_packet_that_it_turns_around() {
    let mut gateway = appendix_b(Hairpinning::Intrinsic);
    gateway.receives(v6(A, B_OUTSIDE).hops(2).tcp(4000, 80, 0x10, b"data"));
    gateway.sends(v6(A_OUTSIDE, B).hops(1).tcp(4000, 80, 0x10, b"data"));
}

#[test]
fn a_routers_error_is_turned_around_as_figure_9_shows() {
    let mut gateway = appendix_b(Hairpinning::Intrinsic);
    let quote = figure_8_arrived();
    gateway.receives(v6("2001:db8::1234", A_OUTSIDE).icmp(icmp6(1, 0, [0; 4], &quote)));
    let sent_by_a = v6(A, B_OUTSIDE).hops(63).udp(4000, 53, b"question").octets();
    gateway.sends(v6("64:ff9b::198.51.100.1", A).hops(63).icmp(icmp6(1, 0, [0; 4], &sent_by_a)));
    gateway.counted([("siit.v6_to_v4", 1), ("siit.v4_to_v6", 1)]);
}

#[test]
fn a_hosts_error_is_turned_around_as_figure_10_shows() {
    let mut gateway = appendix_b(Hairpinning::Intrinsic);
    let quote = figure_8_arrived();
    gateway.receives(v6(B, A_OUTSIDE).icmp(icmp6(1, 4, [0; 4], &quote)));
    let sent_by_a = v6(A, B_OUTSIDE).hops(63).udp(4000, 53, b"question").octets();
    gateway.sends(v6(B_OUTSIDE, A).hops(63).icmp(icmp6(1, 4, [0; 4], &sent_by_a)));
    gateway.counted([("siit.v6_to_v4", 1), ("siit.v4_to_v6", 1)]);
}

#[test]
fn a_packet_to_an_ipv4_host_is_not_turned_around() {
    let mut gateway = appendix_b(Hairpinning::Intrinsic);
    gateway.receives(v6(A, "64:ff9b::203.0.113.9").hops(9).udp(1, 2, &[0; 1_400]));
    gateway.sends(v4("192.0.2.1", "203.0.113.9").hops(8).udp(1, 2, &[0; 1_400]));
    gateway.counted([("siit.v6_to_v4", 1)]);
}

#[test]
fn with_simple_hairpinning_the_ipv4_network_turns_packets_around() {
    let mut gateway = appendix_b(Hairpinning::Simple);
    gateway.receives(v6(A, B_OUTSIDE).udp(4000, 53, &[0; 1_300]));
    let outside = gateway.sent();
    assert_eq!(outside, v4("192.0.2.1", "192.0.2.2").hops(63).udp(4000, 53, &[0; 1_300]).octets());
    gateway.receives(outside);
    gateway.sends(v6(A_OUTSIDE, B).hops(62).udp(4000, 53, &[0; 1_300]));
}

#[test]
fn with_simple_hairpinning_the_table_is_asked_for_errors_sources_but_not_for_quoted_destinations() {
    let mut gateway = appendix_b(Hairpinning::Simple);
    let quote = v4("192.0.2.1", "192.0.2.2").udp(4000, 53, b"question").octets();
    let sent_by_a = v6(A, B_OUTSIDE).udp(4000, 53, b"question").octets();
    gateway.receives(v4("198.51.100.1", "192.0.2.1").icmp(icmp4(3, 1, [0; 4], &quote)));
    gateway.sends(v6("64:ff9b::198.51.100.1", A).hops(63).icmp(icmp6(1, 0, [0; 4], &sent_by_a)));
    gateway.receives(v4("192.0.2.2", "192.0.2.1").icmp(icmp4(3, 3, [0; 4], &quote)));
    gateway.sends(v6(B_OUTSIDE, A).hops(63).icmp(icmp6(1, 4, [0; 4], &sent_by_a)));
    let to_elsewhere = v4("192.0.2.1", "203.0.113.9").udp(4000, 53, b"question").octets();
    let sent_by_a = v6(A, "64:ff9b::203.0.113.9").udp(4000, 53, b"question").octets();
    gateway.receives(v4("192.0.2.2", "192.0.2.1").icmp(icmp4(3, 1, [0; 4], &to_elsewhere)));
    gateway.sends(v6(B, A).hops(63).icmp(icmp6(1, 0, [0; 4], &sent_by_a)));
}

#[test]
fn without_hairpinning_both_addresses_follow_the_table() {
    let mut gateway = appendix_b(Hairpinning::Off);
    gateway.receives(v6(A, B_OUTSIDE).udp(4000, 53, &[0; 1_300]));
    let outside = gateway.sent();
    gateway.receives(outside);
    gateway.sends(v6(A, B).hops(62).udp(4000, 53, &[0; 1_300]));
}
