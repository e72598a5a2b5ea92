//! While one subscriber does its worst, what do the others lose? (RFC 6888 REQ-4, REQ-5)

use crate::support;
use crate::support::{Gateway, v4, v6};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{StateLimits, SubscriberLimits, SubscriberRow};
use sixway_dataplane::{DropReason, Verdict};
use std::time::Duration;

const GREEDY: &str = "10.0.0.1";
const SERVER: &str = "203.0.113.1";
const SYN: u8 = 2;

/// With one outside address.
fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = support::nat44();
        nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        nat44.pool.ports = vec![1_024..=65_535];
        nat44.limits = StateLimits { sessions: 8_192, bindings: 1 << 20, ..StateLimits::default() };
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

fn flows(gateway: &mut Gateway, host: &str, ports: std::ops::Range<u16>) -> usize {
    gateway.flows(host, SERVER, ports)
}

/// How many of these new sessions of one port of a host pass, each with another remote port.
fn sessions(gateway: &mut Gateway, host: &str, remotes: std::ops::Range<u16>) -> usize {
    let pass = |remote: &u16| gateway.passes(v4(host, SERVER).tcp(4_000, *remote, SYN, b""));
    remotes.filter(pass).count()
}

fn rows(gateway: &mut Gateway) -> Vec<SubscriberRow> {
    let now = gateway.now;
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    let mut rows = Vec::new();
    assert_eq!(translator.subscribers(0, u32::MAX, None, now, &mut rows), None);
    rows.sort_by_key(|row| row.address);
    rows
}

#[test]
fn who_fills_the_session_table_through_one_binding_leaves_room_for_others() {
    let mut gateway = gateway(|_| {});
    let taken = sessions(&mut gateway, GREEDY, 1..20_000);
    assert!((7_200..7_300).contains(&taken), "eight ninths: {taken}");
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SubscriberShare));
    let passed: usize =
        (2..12).map(|host| flows(&mut gateway, &format!("10.0.0.{host}"), 2_000..2_060)).sum();
    assert_eq!(passed, 600, "none of the others' flows fails");
}

#[test]
fn who_takes_the_ports_of_an_address_leaves_some_for_those_who_share_it() {
    let mut gateway = gateway(|nat44| nat44.limits.sessions = 1 << 20);
    let taken = flows(&mut gateway, GREEDY, 1_024..65_535);
    assert!((61_000..62_700).contains(&taken), "32 of 33 ports: {taken}");
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SubscriberShare));
    let passed: usize =
        (2..22).map(|host| flows(&mut gateway, &format!("10.0.0.{host}"), 2_000..2_060)).sum();
    assert_eq!(passed, 1_200, "none of the others' flows fails");
    assert_eq!(rows(&mut gateway)[0].bindings, [0, u32::try_from(taken).unwrap(), 0]);
}

#[test]
fn whoever_sends_from_outside_takes_nothing_of_what_inside_hosts_may_open() {
    let limits = SubscriberLimits { sessions: 100, ..SubscriberLimits::NONE };
    let mut gateway = gateway(|nat44| nat44.limits.of_subscriber = limits);
    gateway.receives(v4(GREEDY, SERVER).udp(4_000, 53, b""));
    let sent = gateway.sent();
    let port = u16::from_be_bytes([sent[20], sent[21]]);
    let admitted = (1..1_000)
        .filter(|remote| gateway.passes(v4("203.0.113.9", "192.0.2.1").udp(*remote, port, b"")))
        .count();
    assert_eq!((admitted, gateway.last), (25, Verdict::Dropped(DropReason::OutsideSessionsFull)));
    assert_eq!(flows(&mut gateway, GREEDY, 5_000..6_000), 99, "with the first one, a hundred");
    assert_eq!(flows(&mut gateway, "10.0.0.2", 5_000..5_050), 50);
    let row = rows(&mut gateway)[0];
    assert_eq!((row.sessions, row.from_outside, row.refused), (125, 25, 901));
}

#[test]
fn new_flows_a_second_are_limited_for_each_subscriber() {
    let limits = SubscriberLimits { new_sessions_per_second: 20, ..SubscriberLimits::NONE };
    let mut gateway = gateway(|nat44| {
        nat44.limits.of_subscriber = limits;
        nat44.subscribers.exempt_destinations = vec!["203.0.113.53/32".parse().unwrap()];
    });
    assert_eq!(flows(&mut gateway, GREEDY, 2_000..2_100), 20);
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SubscriberLimit));
    assert_eq!(flows(&mut gateway, "10.0.0.2", 2_000..2_020), 20);
    assert!(gateway.passes(v4("10.0.0.3", "203.0.113.53").udp(53, 53, b"")));
    assert_eq!(flows(&mut gateway, "10.0.0.3", 2_000..2_100), 20, "in addition to an exempt one");
    gateway.now = gateway.now + Duration::from_millis(500);
    assert_eq!(flows(&mut gateway, GREEDY, 2_100..2_200), 10);
    assert_eq!(sessions(&mut gateway, GREEDY, 1..10), 0, "the rate is that of all protocols");
    let row = rows(&mut gateway)[0];
    assert_eq!((row.made, row.per_second), (30, 3));
}

#[test]
fn new_bindings_a_second_are_limited_from_the_first_on() {
    let limits = SubscriberLimits { new_bindings_per_second: 5, ..SubscriberLimits::NONE };
    let mut gateway = gateway(|nat44| nat44.limits.of_subscriber = limits);
    assert_eq!(flows(&mut gateway, GREEDY, 2_000..2_100), 5);
    assert_eq!(sessions(&mut gateway, "10.0.0.2", 1..100), 99, "which are of one binding");
}

#[test]
fn well_known_ports_are_not_left_for_those_who_need_high_ones() {
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![1..=1_223]);
    assert_eq!(flows(&mut gateway, GREEDY, 2_000..3_000), 195, "32 of 33 of 200");
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SubscriberShare));
    assert_eq!(flows(&mut gateway, "10.0.0.2", 2_000..2_005), 5);
    assert_eq!(flows(&mut gateway, GREEDY, 1..60), 59, "it may have those");
}

#[test]
fn exempt_subscribers_and_destinations_are_not_limited() {
    let limits = SubscriberLimits { sessions: 5, ..SubscriberLimits::NONE };
    let mut gateway = gateway(|nat44| {
        nat44.limits.of_subscriber = limits;
        nat44.subscribers.exempt = vec!["10.0.0.2/32".parse().unwrap()];
        nat44.subscribers.exempt_destinations = vec!["203.0.113.53/32".parse().unwrap()];
    });
    assert_eq!(flows(&mut gateway, GREEDY, 2_000..2_100), 5);
    assert_eq!(flows(&mut gateway, "10.0.0.2", 2_000..2_100), 100);
    for port in 2_100..2_120 {
        assert!(gateway.passes(v4(GREEDY, "203.0.113.53").udp(port, 53, b"")));
    }
    assert_eq!(rows(&mut gateway)[0].sessions, 25);
    assert_eq!(flows(&mut gateway, GREEDY, 3_000..3_100), 0, "of five, it has five");
    gateway.waits(Duration::from_secs(301));
    (0..10).for_each(|_| gateway.waits(Duration::from_secs(1)));
    assert_eq!(rows(&mut gateway), []);
}

#[test]
fn a_subscriber_may_be_a_longer_or_shorter_prefix() {
    let mut gateway = support::gateway(|config| {
        let mut nat64 = support::nat64();
        nat64.limits.of_subscriber.bindings = 3;
        nat64.subscribers.bits = 56;
        config.nat64.push(nat64);
    });
    let mut passes = |host: &str| gateway.passes(v6(host, "64:ff9b::203.0.113.1").udp(2_000, 53, b""));
    let customer = ["2001:db8:1::1", "2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:ff::1"];
    assert_eq!(customer.map(&mut passes), [true, true, true, false]);
    assert!(passes("2001:db8:1:100::1"), "another /56");
    let rows = rows(&mut gateway);
    assert_eq!((rows[0].address.to_string(), rows[0].bits, rows[0].hosts), ("2001:db8:1::".into(), 56, 3));
}

#[test]
fn who_takes_a_new_address_for_each_flow_leaves_ports_for_others() {
    let mut gateway = support::gateway(|config| {
        let mut nat64 = support::nat64();
        nat64.pool.addresses = vec!["192.0.2.0/31".parse().unwrap()];
        nat64.pool.ports = vec![2_000..=2_999];
        config.nat64.push(nat64);
    });
    let mut passes = |host: &str| gateway.passes(v6(host, "64:ff9b::203.0.113.1").udp(2_000, 53, b""));
    let taken = (1..2_500).filter(|host| passes(&format!("2001:db8:1::{host:x}"))).count();
    assert!(taken < 950, "{taken} of two thousand ports, half of which have the parity");
    let others = (1..20).filter(|other| passes(&format!("2001:db8:2:{other:x}::1"))).count();
    assert_eq!(others, 19);
}

/// A refused packet counts once to a rate, and the reason is the table, not the rate.
#[test]
fn a_packet_that_finds_no_binding_counts_once_to_the_rate_of_its_subscriber() {
    let mut gateway = gateway(|nat44| {
        nat44.limits.bindings = 1;
        nat44.limits.of_subscriber.new_sessions_per_second = 4;
    });
    assert_eq!(flows(&mut gateway, GREEDY, 1_000..1_001), 1);
    let mut refused = |port| {
        assert_eq!(flows(&mut gateway, GREEDY, port..port + 1), 0);
        gateway.last
    };
    let [full, limit] = [DropReason::BindingTableFull, DropReason::SubscriberLimit].map(Verdict::Dropped);
    assert_eq!([refused(2_000), refused(2_001), refused(2_002), refused(2_003)], [full, full, full, limit]);
}
