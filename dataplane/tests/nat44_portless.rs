//! NAT44: protocols without ports, packet by packet through the whole gateway.

use crate::support;
use crate::support::{Build, Gateway, icmp4, v4};
use sixway_dataplane::mechanism::nat44::{
    Nat44Config, PORTLESS_DEFAULT, PORTLESS_MIN, PortlessBinding, PortlessConfig, PortlessProtocol,
};
use sixway_dataplane::nat::{Inside, Outside};
use sixway_dataplane::stateful::PortlessRow;
use sixway_dataplane::{DropReason, Verdict};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const SERVER: &str = "203.0.113.1";
const STRANGER: &str = "203.0.113.2";
const ROUTER: &str = "198.51.100.9";
const DOOR: &str = "192.0.2.1";
const REFUSED: Verdict = Verdict::Dropped(DropReason::RemoteInUse);
/// Makes a packet between two addresses.
type Packet = fn(&str, &str) -> Build;

const FILTERED: Verdict = Verdict::Dropped(DropReason::Filtered);

fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = support::nat44();
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

/// With one outside address.
fn one_address(edit: impl FnOnce(&mut PortlessConfig)) -> Gateway {
    gateway(|nat44| {
        nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        edit(&mut nat44.portless);
    })
}

fn sit(source: &str, destination: &str) -> Build {
    v4(source, destination).protocol(41, &[0x60; 60], None)
}

fn ipip(source: &str, destination: &str) -> Build {
    v4(source, destination).protocol(4, &[0x45; 60], None)
}

/// GRE without key.
fn gre(source: &str, destination: &str) -> Build {
    v4(source, destination).protocol(47, &[0, 0, 8, 0, 0x45, 0, 0, 0], None)
}

fn gre_with_key(source: &str, destination: &str, key: u32) -> Build {
    let body = [&[0x20, 0, 8, 0][..], &key.to_be_bytes(), &[0x45; 20]].concat();
    v4(source, destination).protocol(47, &body, None)
}

/// GRE of PPTP with the call id of its receiver.
fn pptp(source: &str, destination: &str, call: u16) -> Build {
    let [high, low] = call.to_be_bytes();
    v4(source, destination).protocol(
        47,
        &[0x30, 1, 0x88, 0x0b, 0, 4, high, low, 0, 0, 0, 1, 1, 2, 3, 4],
        None,
    )
}

fn esp(source: &str, destination: &str, spi: u32) -> Build {
    let body = [&spi.to_be_bytes()[..], &[0, 0, 0, 1], &[7; 40]].concat();
    v4(source, destination).protocol(50, &body, None)
}

fn source(packet: &[u8]) -> String {
    Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]).to_string()
}

/// The outside address of a packet that goes out.
#[track_caller]
fn outside(gateway: &mut Gateway, packet: Build) -> String {
    gateway.receives(packet);
    assert_eq!(gateway.last, Verdict::Forward);
    source(&gateway.sent())
}

/// What becomes of a packet that is dropped; its ICMP error is of no interest.
#[track_caller]
fn refused(gateway: &mut Gateway, packet: Build) -> Verdict {
    gateway.receives(packet);
    while gateway.waiting() > 0 {
        gateway.sent();
    }
    gateway.last
}

fn rows(gateway: &mut Gateway) -> Vec<PortlessRow> {
    let now = gateway.now;
    let mut rows = Vec::new();
    let mut cursor = Some(0);
    while let Some(from) = cursor {
        let nat44 = gateway.engine.stateful().next().unwrap();
        cursor = nat44.without_ports().sessions(from, 2, now, &mut rows);
    }
    rows
}

fn binding(protocol: PortlessProtocol, inside: &str, outside: &str) -> PortlessBinding {
    PortlessBinding {
        protocol,
        inside: Inside(inside.parse().unwrap()),
        outside: Outside(outside.parse().unwrap()),
    }
}

#[test]
fn each_protocol_goes_out_and_comes_back_with_its_octets_as_they_are() {
    let packets: [Packet; 5] =
        [sit, ipip, gre, |from, to| gre_with_key(from, to, 7), |from, to| esp(from, to, 9)];
    for packet in packets {
        let mut gateway = gateway(|_| {});
        gateway.receives(packet(HOST, SERVER));
        let sent = gateway.sent();
        let outside = source(&sent);
        assert!(outside.starts_with("192.0.2."), "{outside}");
        assert_eq!(sent, packet(&outside, SERVER).hops(63).octets());
        gateway.receives(packet(SERVER, &outside));
        gateway.sends(packet(SERVER, HOST).hops(63));
        gateway.receives(packet(HOST, SERVER));
        gateway.sends(packet(&outside, SERVER).hops(63));
        gateway.counted([("nat44.to_outside", 2), ("nat44.to_inside", 1), ("nat.portless.made", 1)]);
    }
}

#[test]
fn a_session_is_of_one_remote_host_and_one_protocol() {
    let mut gateway = one_address(|_| {});
    gateway.refuses_silently(sit(SERVER, DOOR));
    gateway.receives(sit(HOST, SERVER));
    gateway.sent();
    assert_eq!(refused(&mut gateway, sit(STRANGER, DOOR)), FILTERED);
    assert_eq!(refused(&mut gateway, ipip(SERVER, DOOR)), FILTERED);
    assert_eq!(refused(&mut gateway, esp(SERVER, DOOR, 1)), FILTERED);
    gateway.receives(sit(SERVER, DOOR));
    gateway.sends(sit(SERVER, HOST).hops(63));
}

trait Silently {
    fn refuses_silently(&mut self, packet: Build);
}

impl Silently for Gateway {
    /// Nobody has sent there: the remote host gets an error, and no state is made.
    #[track_caller]
    fn refuses_silently(&mut self, packet: Build) {
        self.receives(packet);
        assert_eq!(self.last, FILTERED);
        assert_eq!(self.sent()[20..22], [3, 13], "administratively prohibited");
        assert!(rows(self).is_empty());
    }
}

#[test]
fn a_host_keeps_the_outside_address_of_its_bindings() {
    // RFC 4787 REQ-2, RFC 6888 REQ-2.
    let mut gateway = gateway(|_| {});
    let addresses = (1..=20).map(|n| {
        let (host, remote) = (format!("10.0.1.{n}"), format!("203.0.113.{n}"));
        let first = outside(&mut gateway, v4(&host, &remote).udp(4_001, 53, b"question"));
        assert_eq!(outside(&mut gateway, sit(&host, &remote)), first);
        assert_eq!(outside(&mut gateway, esp(&host, &remote, 5)), first);
        first
    });
    assert_eq!(addresses.collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn without_bindings_a_host_has_one_outside_address_also_in_another_process() {
    let address = |packet: fn(&str, &str) -> Build, to: &str, n: u8| {
        outside(&mut gateway(|_| {}), packet(&format!("10.0.1.{n}"), to))
    };
    let addresses = (1..=20).map(|n| {
        let first = address(sit, SERVER, n);
        assert_eq!(address(sit, SERVER, n), first);
        assert_eq!(address(gre, STRANGER, n), first);
        first
    });
    assert_eq!(addresses.collect::<BTreeSet<_>>().len(), 4, "hosts spread over the pool");
}

#[test]
fn a_second_host_to_the_same_remote_gets_another_address_and_if_there_is_none_is_refused() {
    let packets: [Packet; 5] =
        [sit, ipip, gre, |from, to| pptp(from, to, 1), |from, to| gre_with_key(from, to, 7)];
    for packet in packets {
        let mut gateway = gateway(|_| {});
        let given: BTreeSet<_> =
            (1..=4).map(|n| outside(&mut gateway, packet(&format!("10.0.1.{n}"), SERVER))).collect();
        assert_eq!(given.len(), 4, "one host at each address");
        gateway.counted_before();
        gateway.receives(packet("10.0.1.5", SERVER));
        assert_eq!(gateway.last, REFUSED);
        assert_eq!(gateway.sent()[20..22], [3, 1], "host unreachable");
        gateway.counted([("RemoteInUse", 1), ("icmp_errors.made", 1)]);
        outside(&mut gateway, packet("10.0.1.5", STRANGER));
        for n in 1..=4 {
            let to = outside(&mut gateway, packet(&format!("10.0.1.{n}"), SERVER));
            gateway.receives(packet(SERVER, &to));
            gateway.sends(packet(SERVER, &format!("10.0.1.{n}")).hops(63));
        }
    }
}

#[test]
fn hosts_with_other_keys_share_an_address_towards_a_remote() {
    let mut gateway = one_address(|_| {});
    for (host, key) in [(HOST, 1), (OTHER, 2)] {
        assert_eq!(outside(&mut gateway, gre_with_key(host, SERVER, key)), DOOR);
    }
    assert_eq!(refused(&mut gateway, gre_with_key(OTHER, SERVER, 1)), REFUSED);
    for (host, key) in [(HOST, 1), (OTHER, 2)] {
        gateway.receives(gre_with_key(SERVER, DOOR, key));
        gateway.sends(gre_with_key(SERVER, host, key).hops(63));
    }
    // Neither of the two has sent with it.
    assert_eq!(refused(&mut gateway, gre_with_key(SERVER, DOOR, 3)), FILTERED);
    // One without key is a third.
    assert_eq!(outside(&mut gateway, gre("10.0.0.3", SERVER)), DOOR);
    gateway.receives(gre(SERVER, DOOR));
    gateway.sends(gre(SERVER, "10.0.0.3").hops(63));
}

#[test]
fn the_keys_of_the_two_directions_may_differ_if_only_one_host_has_a_tunnel_to_the_remote() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, gre_with_key(HOST, SERVER, 1));
    gateway.receives(gre_with_key(SERVER, DOOR, 2));
    gateway.sends(gre_with_key(SERVER, HOST, 2).hops(63));
}

#[test]
fn a_call_of_pptp_comes_back_with_the_call_id_of_the_other_end() {
    let mut gateway = one_address(|_| {});
    assert_eq!(outside(&mut gateway, pptp(HOST, SERVER, 7)), DOOR);
    gateway.receives(pptp(SERVER, DOOR, 9));
    gateway.sends(pptp(SERVER, HOST, 9).hops(63));
    assert_eq!(refused(&mut gateway, pptp(OTHER, SERVER, 8)), REFUSED, "its answers could be either's");
}

#[test]
fn the_spi_of_what_comes_in_is_learnt_and_then_another_host_may_follow() {
    let mut gateway = one_address(|_| {});
    assert_eq!(outside(&mut gateway, esp(HOST, SERVER, 1)), DOOR);
    assert_eq!(refused(&mut gateway, esp(OTHER, SERVER, 2)), REFUSED, "an answer could be either's");
    answered(&mut gateway, HOST, 101);
    assert_eq!(outside(&mut gateway, esp(OTHER, SERVER, 2)), DOOR);
    answered(&mut gateway, OTHER, 102);
    for (host, spi) in [(HOST, 101), (OTHER, 102), (HOST, 101)] {
        gateway.receives(esp(SERVER, DOOR, spi));
        gateway.sends(esp(SERVER, host, spi).hops(63));
        outside(&mut gateway, esp(host, SERVER, spi - 100));
        gateway.receives(esp(SERVER, DOOR, spi));
        gateway.sends(esp(SERVER, host, spi).hops(63));
    }
    assert_eq!(refused(&mut gateway, esp(SERVER, DOOR, 103)), FILTERED);
    outside(&mut gateway, esp(HOST, SERVER, 1));
    assert_eq!(
        refused(&mut gateway, esp(SERVER, DOOR, 103)),
        FILTERED,
        "who has what it waited for no longer waits"
    );
}

#[test]
fn what_comes_for_an_only_host_that_does_not_wait_is_its_newest_sessions() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, esp(HOST, STRANGER, 1));
    outside(&mut gateway, esp(HOST, SERVER, 1));
    let nat44 = gateway.engine.stateful().next().unwrap().without_ports_mut();
    assert!(nat44.end(50, HOST.parse().unwrap(), STRANGER.parse().unwrap(), &mut Default::default()));
    for (spi, answer) in [(1, 101), (1, 101), (2, 102), (2, 102)] {
        gateway.now = gateway.now + Duration::from_secs(1);
        outside(&mut gateway, esp(HOST, SERVER, spi));
        gateway.receives(esp(SERVER, DOOR, answer));
        gateway.sends(esp(SERVER, HOST, answer).hops(63));
    }
    answered(&mut gateway, HOST, 103);
    let packets: Vec<_> = rows(&mut gateway).iter().map(|row| row.packets).collect();
    assert_eq!(packets, [[2, 3], [3, 2]]);
}

#[test]
fn a_host_that_nobody_answers_keeps_others_out_for_ten_seconds_however_often_it_changes_its_spi() {
    let mut gateway = one_address(|portless| portless.sessions_per_subscriber = 0);
    for n in 0..9 {
        outside(&mut gateway, esp(OTHER, SERVER, 1_000 + n));
        assert_eq!(refused(&mut gateway, esp(HOST, SERVER, 1)), REFUSED);
        gateway.waits(Duration::from_secs(1));
    }
    gateway.waits(Duration::from_secs(1));
    outside(&mut gateway, esp(OTHER, SERVER, 1_009));
    assert_eq!(outside(&mut gateway, esp(HOST, SERVER, 1)), DOOR);
    assert_eq!(refused(&mut gateway, esp(OTHER, SERVER, 1_010)), REFUSED);
    answered(&mut gateway, HOST, 101);
    gateway.waits(Duration::from_secs(15));
    assert_eq!(refused(&mut gateway, esp(OTHER, SERVER, 1_011)), REFUSED, "it had its time");
    gateway.waits(Duration::from_secs(15));
    assert_eq!(outside(&mut gateway, esp(OTHER, SERVER, 1_012)), DOOR);
}

/// A packet of ESP with this SPI comes in, and goes to this host.
fn answered(gateway: &mut Gateway, host: &str, spi: u32) {
    gateway.receives(esp(SERVER, DOOR, spi));
    gateway.sends(esp(SERVER, host, spi).hops(63));
}

/// Two hosts with sessions of the same remote host; the answers of the first are not known.
fn with_two_hosts() -> Gateway {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, esp(HOST, SERVER, 1));
    answered(&mut gateway, HOST, 666);
    outside(&mut gateway, esp(OTHER, SERVER, 2));
    answered(&mut gateway, OTHER, 102);
    outside(&mut gateway, esp(OTHER, SERVER, 2));
    answered(&mut gateway, OTHER, 102);
    gateway
}

#[test]
fn who_got_a_forged_answer_waits_again_when_it_sends() {
    let mut gateway = with_two_hosts();
    assert_eq!(refused(&mut gateway, esp(SERVER, DOOR, 101)), FILTERED);
    outside(&mut gateway, esp(HOST, SERVER, 1));
    answered(&mut gateway, HOST, 101);
    outside(&mut gateway, esp(HOST, SERVER, 1));
    answered(&mut gateway, HOST, 101);
    assert_eq!(refused(&mut gateway, esp(SERVER, DOOR, 103)), FILTERED, "everybody has what it waited for");
}

#[test]
fn what_came_once_for_a_host_is_anothers_who_waits_later_and_what_is_confirmed_is_not() {
    let mut gateway = with_two_hosts();
    gateway.waits(Duration::from_secs(9));
    outside(&mut gateway, esp("10.0.0.3", SERVER, 3));
    answered(&mut gateway, HOST, 666);
    gateway.waits(Duration::from_secs(10));
    for (host, spi) in [("10.0.0.3", 666), (OTHER, 102)] {
        gateway.receives(esp(SERVER, DOOR, spi));
        gateway.sends(esp(SERVER, host, spi).hops(63));
    }
}

#[test]
fn what_came_once_for_a_host_stays_its_own_while_nobody_waits() {
    let mut gateway = with_two_hosts();
    gateway.waits(Duration::from_secs(15));
    answered(&mut gateway, HOST, 666);
}

#[test]
fn a_session_that_is_over_does_not_count_to_the_hosts_with_a_remote() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, esp(HOST, SERVER, 1));
    answered(&mut gateway, HOST, 101);
    gateway.now = gateway.now + (PORTLESS_DEFAULT - Duration::from_secs(60));
    for _ in 0..2 {
        outside(&mut gateway, esp(OTHER, SERVER, 2));
        answered(&mut gateway, OTHER, 102);
    }
    assert_eq!(refused(&mut gateway, esp(SERVER, DOOR, 112)), FILTERED);
    // Nothing has ended the first one yet.
    gateway.now = gateway.now + Duration::from_secs(60);
    answered(&mut gateway, OTHER, 112);
}

#[test]
fn a_session_that_is_over_does_not_wait() {
    let mut gateway = with_two_hosts();
    outside(&mut gateway, esp(HOST, SERVER, 1));
    for _ in 0..2 {
        gateway.now = gateway.now + PORTLESS_DEFAULT / 2;
        outside(&mut gateway, esp(OTHER, SERVER, 2));
    }
    answered(&mut gateway, OTHER, 112);
}

#[test]
fn a_host_that_rekeys_keeps_its_address_and_gets_what_the_new_spi_brings() {
    let mut gateway = gateway(|_| {});
    let address = outside(&mut gateway, esp(HOST, SERVER, 1));
    gateway.receives(esp(SERVER, &address, 101));
    gateway.sends(esp(SERVER, HOST, 101).hops(63));
    // The other end may be first to use its new one, as long as this host is the only one.
    gateway.receives(esp(SERVER, &address, 111));
    gateway.sends(esp(SERVER, HOST, 111).hops(63));
    assert_eq!(outside(&mut gateway, esp(HOST, SERVER, 11)), address);
    gateway.receives(esp(SERVER, &address, 111));
    gateway.sends(esp(SERVER, HOST, 111).hops(63));
    for spi in [121, 131] {
        gateway.receives(esp(SERVER, &address, spi));
        gateway.sends(esp(SERVER, HOST, spi).hops(63));
    }
    let packets: Vec<_> = rows(&mut gateway).iter().map(|row| row.packets).collect();
    assert_eq!(packets, [[1, 3], [1, 2]], "what is not known is the newest session's");
}

#[test]
fn a_host_that_rekeys_while_another_one_waits_does_not_get_another_address() {
    let mut gateway = gateway(|_| {});
    let address = outside(&mut gateway, esp(HOST, SERVER, 1));
    gateway.receives(esp(SERVER, &address, 101));
    gateway.sends(esp(SERVER, HOST, 101).hops(63));
    // Another host with this address: each one has a remote host of its own, so that it is not another one's that it cannot have.
    let gets = |gateway: &mut Gateway, n| {
        outside(gateway, esp(&format!("10.0.0.{n}"), &format!("198.51.100.{n}"), 1))
    };
    let other = (2..=40).find(|n| gets(&mut gateway, *n) == address).map(|n| format!("10.0.0.{n}")).unwrap();
    gateway.now = gateway.now + Duration::from_secs(60);
    assert_eq!(outside(&mut gateway, esp(&other, SERVER, 2)), address);
    // The remote host would not know what comes from elsewhere.
    assert_eq!(refused(&mut gateway, esp(HOST, SERVER, 11)), REFUSED);
    gateway.receives(esp(SERVER, &address, 102));
    gateway.sends(esp(SERVER, &other, 102).hops(63));
    assert_eq!(outside(&mut gateway, esp(HOST, SERVER, 11)), address);
}

#[test]
fn the_only_hosts_last_spi_is_not_taken_for_another_hosts_first() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, esp(HOST, SERVER, 1));
    for spi in [101, 111, 121, 131, 141] {
        gateway.now = gateway.now + Duration::from_secs(1);
        gateway.receives(esp(SERVER, DOOR, spi));
        gateway.sends(esp(SERVER, HOST, spi).hops(63));
    }
    outside(&mut gateway, esp(OTHER, SERVER, 2));
    for spi in [141, 131, 121, 111] {
        gateway.receives(esp(SERVER, DOOR, spi));
        gateway.sends(esp(SERVER, HOST, spi).hops(63));
    }
    answered(&mut gateway, OTHER, 102);
    outside(&mut gateway, esp(OTHER, SERVER, 2));
    answered(&mut gateway, OTHER, 102);
    // Only the last four are remembered.
    assert_eq!(refused(&mut gateway, esp(SERVER, DOOR, 101)), FILTERED);
}

#[test]
fn a_host_that_waits_may_use_another_spi() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, esp(HOST, SERVER, 1));
    assert_eq!(outside(&mut gateway, esp(HOST, SERVER, 2)), DOOR);
    answered(&mut gateway, HOST, 102);
    let packets: Vec<_> = rows(&mut gateway).iter().map(|row| row.packets).collect();
    assert_eq!(packets, [[1, 0], [1, 1]], "it is the newest one's");
}

#[test]
fn a_host_that_nobody_answers_keeps_another_one_waiting_for_ten_seconds() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, esp(HOST, SERVER, 1));
    gateway.waits(Duration::from_secs(9));
    outside(&mut gateway, esp(HOST, SERVER, 1));
    assert_eq!(refused(&mut gateway, esp(OTHER, SERVER, 2)), REFUSED);
    gateway.waits(Duration::from_secs(1));
    assert_eq!(outside(&mut gateway, esp(OTHER, SERVER, 2)), DOOR);
    answered(&mut gateway, OTHER, 102);
}

#[test]
fn a_session_ends_when_nothing_came_for_its_lifetime_and_not_before() {
    let mut gateway = one_address(|portless| portless.timeout = Duration::ZERO);
    outside(&mut gateway, sit(HOST, SERVER));
    gateway.waits(PORTLESS_MIN - Duration::from_secs(1));
    gateway.receives(sit(SERVER, DOOR));
    gateway.sends(sit(SERVER, HOST).hops(63));
    gateway.waits(PORTLESS_MIN - Duration::from_secs(1));
    assert_eq!(refused(&mut gateway, sit(OTHER, SERVER)), REFUSED);
    assert_eq!(rows(&mut gateway).len(), 1);
    gateway.now = gateway.now + Duration::from_secs(1);
    // No tick was in time: it has expired all the same.
    assert!(rows(&mut gateway).is_empty());
    assert_eq!(refused(&mut gateway, sit(SERVER, DOOR)), FILTERED);
    assert_eq!(outside(&mut gateway, sit(OTHER, SERVER)), DOOR);
    gateway.waits(PORTLESS_DEFAULT);
    let counters = gateway.engine.counters();
    assert_eq!((counters.portless_made, counters.portless_ended), (2, 2));
    let nat44 = gateway.engine.stateful().next().unwrap();
    assert_eq!(nat44.without_ports().occupancy().0, 0);
}

#[test]
fn the_default_lifetime_is_that_of_udp() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, sit(HOST, SERVER));
    gateway.waits(PORTLESS_DEFAULT - Duration::from_secs(1));
    assert_eq!(rows(&mut gateway).len(), 1);
    gateway.waits(Duration::from_secs(1));
    assert!(rows(&mut gateway).is_empty());
}

#[test]
fn a_host_that_opens_all_it_may_does_not_keep_another_out() {
    let mut gateway = gateway(|nat44| nat44.portless.sessions_per_subscriber = 3);
    for n in 1..=3 {
        outside(&mut gateway, sit(HOST, &format!("203.0.113.{n}")));
    }
    assert_eq!(
        refused(&mut gateway, sit(HOST, "203.0.113.4")),
        Verdict::Dropped(DropReason::SubscriberLimit)
    );
    outside(&mut gateway, sit(OTHER, "203.0.113.4"));
    // No address is looked for: it would be in use at all of them.
    let hosts = (3..=5).map(|n| format!("10.0.0.{n}"));
    hosts.for_each(|host| drop(outside(&mut gateway, sit(&host, "203.0.113.4"))));
    assert_eq!(
        refused(&mut gateway, sit(HOST, "203.0.113.4")),
        Verdict::Dropped(DropReason::SubscriberLimit)
    );
    gateway.waits(PORTLESS_DEFAULT);
    outside(&mut gateway, sit(HOST, "203.0.113.4"));
}

#[test]
fn a_full_table_refuses_what_is_new_and_keeps_what_is_there() {
    let mut gateway = gateway(|nat44| {
        (nat44.portless.sessions, nat44.portless.sessions_per_subscriber) = (2, 0);
    });
    let first = outside(&mut gateway, sit(HOST, SERVER));
    outside(&mut gateway, sit(HOST, STRANGER));
    assert_eq!(refused(&mut gateway, sit(OTHER, ROUTER)), Verdict::Dropped(DropReason::SessionTableFull));
    gateway.receives(sit(SERVER, &first));
    gateway.sends(sit(SERVER, HOST).hops(63));
    gateway.now = gateway.now + PORTLESS_DEFAULT;
    // An expired one makes room for a new one without a tick.
    outside(&mut gateway, sit(OTHER, ROUTER));
    assert_eq!(rows(&mut gateway).len(), 1);
}

#[test]
fn with_no_room_at_all_nothing_is_held() {
    let mut gateway = one_address(|portless| portless.sessions = 0);
    let part = |packet: Build| packet.fragment(7, 0, true).part(0, 32);
    for packet in [sit(HOST, SERVER), sit(SERVER, DOOR)] {
        assert_eq!(refused(&mut gateway, part(packet)), Verdict::Dropped(DropReason::ProtocolUnsupported));
    }
}

#[test]
fn with_no_room_at_all_only_static_bindings_pass() {
    let mut gateway = one_address(|portless| {
        portless.sessions = 0;
        portless.bindings = vec![binding(PortlessProtocol::Gre, OTHER, DOOR)];
    });
    let unsupported = Verdict::Dropped(DropReason::ProtocolUnsupported);
    assert_eq!(refused(&mut gateway, sit(HOST, SERVER)), unsupported);
    assert_eq!(refused(&mut gateway, sit(SERVER, DOOR)), unsupported);
    assert_eq!(outside(&mut gateway, gre(OTHER, SERVER)), DOOR);
}

#[test]
fn a_host_with_a_static_binding_is_reached_by_any_remote_and_others_do_not_get_the_address() {
    let mut gateway = one_address(|portless| {
        portless.bindings = vec![
            binding(PortlessProtocol::Ipv6, OTHER, DOOR),
            // The first one holds, and an address elsewhere is not this NAT's.
            binding(PortlessProtocol::Ipv6, HOST, DOOR),
            binding(PortlessProtocol::Ipv6, OTHER, "198.51.100.1"),
            binding(PortlessProtocol::Gre, HOST, "198.51.100.1"),
        ];
    });
    gateway.receives(sit(STRANGER, DOOR));
    gateway.sends(sit(STRANGER, OTHER).hops(63));
    gateway.receives(sit(OTHER, STRANGER));
    gateway.sends(sit(DOOR, STRANGER).hops(63));
    gateway.counted([("nat44.to_inside", 1), ("nat44.to_outside", 1)]);
    assert_eq!(refused(&mut gateway, sit(HOST, SERVER)), REFUSED);
    assert_eq!(outside(&mut gateway, gre(HOST, SERVER)), DOOR, "the binding is for one protocol");
    let mut bindings = Vec::new();
    let nat44 = gateway.engine.stateful().next().unwrap();
    assert_eq!(nat44.without_ports().bindings(0, 9, &mut bindings), None);
    assert_eq!(bindings.len(), 1);
    assert_eq!((bindings[0].protocol, bindings[0].inside.to_string()), (41, OTHER.into()));
}

#[test]
fn addresses_that_may_have_no_sessions_have_none() {
    let mut gateway = gateway(|nat44| {
        nat44.excluded = vec!["203.0.113.0/24".parse().unwrap()];
        nat44.portless.bindings = vec![binding(PortlessProtocol::Ipv6, OTHER, DOOR)];
    });
    let excluded = Verdict::Dropped(DropReason::ExcludedIpv4);
    assert_eq!(refused(&mut gateway, gre(HOST, SERVER)), excluded);
    assert_eq!(refused(&mut gateway, sit(OTHER, SERVER)), excluded);
    assert_eq!(refused(&mut gateway, sit(SERVER, DOOR)), excluded);
    let link_local = Verdict::Dropped(DropReason::LinkLocalIpv4);
    assert_eq!(refused(&mut gateway, gre(HOST, "169.254.0.1")), link_local);
    outside(&mut gateway, gre(HOST, ROUTER));
}

#[test]
fn between_inside_hosts_and_of_other_protocols_nothing_passes() {
    let mut gateway = one_address(|portless| {
        portless.bindings = vec![binding(PortlessProtocol::Ipv6, OTHER, DOOR)];
    });
    let unsupported = Verdict::Dropped(DropReason::ProtocolUnsupported);
    assert_eq!(refused(&mut gateway, sit(HOST, DOOR)), unsupported);
    for number in [51, 89, 132, 255] {
        assert_eq!(refused(&mut gateway, v4(HOST, SERVER).protocol(number, &[0; 20], None)), unsupported);
        assert_eq!(refused(&mut gateway, v4(SERVER, DOOR).protocol(number, &[0; 20], None)), unsupported);
    }
    let gre_of_version_2 = v4(HOST, SERVER).protocol(47, &[0, 2, 8, 0, 0, 0, 0, 0], None);
    assert_eq!(refused(&mut gateway, gre_of_version_2), unsupported);
    let cut = Verdict::Dropped(DropReason::TransportTruncated);
    assert_eq!(refused(&mut gateway, v4(HOST, SERVER).protocol(47, &[0x20, 0, 8, 0, 0, 0, 0], None)), cut);
    assert_eq!(refused(&mut gateway, v4(HOST, SERVER).protocol(50, &[0, 0, 0], None)), cut);
}

#[test]
fn errors_are_translated_with_what_they_quote_in_both_directions() {
    let packets: [Packet; 4] = [sit, gre, |from, to| gre_with_key(from, to, 7), |from, to| esp(from, to, 9)];
    for packet in packets {
        let mut gateway = gateway(|_| {});
        let address = outside(&mut gateway, packet(HOST, SERVER));
        // With as little as RFC 792 asks for: eight octets behind the header.
        for length in [28, usize::MAX] {
            let cut = |packet: Build| {
                let octets = packet.hops(60).octets();
                octets[..length.min(octets.len())].to_vec()
            };
            let seen = cut(packet(&address, SERVER));
            gateway.receives(v4(ROUTER, &address).icmp(icmp4(3, 4, [0, 0, 5, 0xdc], &seen)));
            let quote = cut(packet(HOST, SERVER));
            gateway.sends(v4(ROUTER, HOST).hops(63).icmp(icmp4(3, 4, [0, 0, 5, 0xdc], &quote)));

            let seen = cut(packet(SERVER, HOST));
            gateway.receives(v4("10.9.9.9", SERVER).icmp(icmp4(3, 1, [0; 4], &seen)));
            let quote = cut(packet(SERVER, &address));
            gateway.sends(v4(&address, SERVER).hops(63).icmp(icmp4(3, 1, [0; 4], &quote)));
        }
        assert_eq!(rows(&mut gateway).len(), 1);
        assert_eq!(rows(&mut gateway)[0].packets, [1, 0], "errors are not the session's packets");
    }
}

#[test]
fn of_several_hosts_with_one_remote_an_error_is_for_the_one_that_sent_what_it_quotes() {
    let mut gateway = one_address(|_| {});
    for (host, spi) in [(HOST, 1), (OTHER, 2)] {
        outside(&mut gateway, esp(host, SERVER, spi));
        gateway.receives(esp(SERVER, DOOR, 100 + spi));
        gateway.sent();
    }
    for (host, spi) in [(HOST, 1), (OTHER, 2)] {
        let error = |from: &str| icmp4(3, 1, [0; 4], &esp(from, SERVER, spi).octets());
        gateway.receives(v4(ROUTER, DOOR).icmp(error(DOOR)));
        gateway.sends(v4(ROUTER, host).hops(63).icmp(error(host)));
    }
    let error = v4(ROUTER, DOOR).icmp(icmp4(3, 1, [0; 4], &esp(DOOR, SERVER, 3).octets()));
    gateway.refuses(error, DropReason::NoSessionForError);
}

#[test]
fn an_error_about_gre_is_for_the_host_with_its_key_or_without_one() {
    let mut gateway = one_address(|_| {});
    outside(&mut gateway, gre(HOST, SERVER));
    outside(&mut gateway, gre_with_key(OTHER, SERVER, 7));
    for (host, seen, quote) in [
        (HOST, gre(DOOR, SERVER), gre(HOST, SERVER)),
        (OTHER, gre_with_key(DOOR, SERVER, 7), gre_with_key(OTHER, SERVER, 7)),
    ] {
        gateway.receives(v4(ROUTER, DOOR).icmp(icmp4(3, 1, [0; 4], &seen.octets())));
        gateway.sends(v4(ROUTER, host).hops(63).icmp(icmp4(3, 1, [0; 4], &quote.octets())));
    }
    // Cut before the key: it could be about either's.
    let cut = gre_with_key(DOOR, SERVER, 7).octets()[..26].to_vec();
    gateway.refuses(v4(ROUTER, DOOR).icmp(icmp4(3, 1, [0; 4], &cut)), DropReason::NoSessionForError);
}

#[test]
fn what_takes_the_place_of_a_session_that_is_over_stays_when_that_one_is_forgotten() {
    let mut gateway = one_address(|portless| portless.sessions_per_subscriber = 0);
    let remote = |n: u8| format!("203.0.113.{n}");
    // More than three new sessions examine to make room.
    for n in 0..100 {
        outside(&mut gateway, sit(HOST, &remote(n)));
        outside(&mut gateway, esp(HOST, &remote(n), 1));
    }
    gateway.now = gateway.now + PORTLESS_DEFAULT;
    outside(&mut gateway, sit(OTHER, &remote(99)));
    outside(&mut gateway, esp(OTHER, &remote(99), 1));
    outside(&mut gateway, sit(HOST, &remote(98)));
    for _ in 0..3 {
        gateway.waits(Duration::ZERO);
    }
    assert_eq!(rows(&mut gateway).len(), 3);
    for (host, n) in [(OTHER, 99), (HOST, 98)] {
        gateway.receives(sit(&remote(n), DOOR));
        gateway.sends(sit(&remote(n), host).hops(63));
        outside(&mut gateway, sit(host, &remote(n)));
    }
    gateway.receives(esp(&remote(99), DOOR, 9));
    gateway.sends(esp(&remote(99), OTHER, 9).hops(63));
    assert_eq!(rows(&mut gateway).len(), 3);
    assert_eq!(gateway.engine.counters().portless_made, 203);
}

#[test]
fn errors_about_what_nobody_sent_are_dropped_and_those_of_static_bindings_are_not() {
    let mut gateway = one_address(|portless| {
        portless.bindings = vec![binding(PortlessProtocol::Ipip, OTHER, DOOR)];
    });
    outside(&mut gateway, sit(HOST, SERVER));
    let about = |packet: Build| icmp4(3, 1, [0; 4], &packet.octets());
    for packet in [sit(DOOR, STRANGER), gre(DOOR, SERVER)] {
        gateway.refuses(v4(ROUTER, DOOR).icmp(about(packet)), DropReason::NoSessionForError);
    }
    for packet in [sit(STRANGER, HOST), sit(SERVER, OTHER), gre(SERVER, HOST)] {
        gateway.refuses(v4(OTHER, SERVER).icmp(about(packet)), DropReason::NoSessionForError);
    }
    gateway.receives(v4(ROUTER, DOOR).icmp(about(ipip(DOOR, STRANGER))));
    gateway.sends(v4(ROUTER, OTHER).hops(63).icmp(about(ipip(OTHER, STRANGER))));
    gateway.receives(v4(OTHER, STRANGER).icmp(about(ipip(STRANGER, OTHER))));
    gateway.sends(v4(DOOR, STRANGER).hops(63).icmp(about(ipip(STRANGER, DOOR))));
}

#[test]
fn fragments_are_translated_with_their_packet() {
    let mut gateway = one_address(|_| {});
    let part = |whole: &Build, from: usize, to: usize, more| {
        whole.clone().fragment(7, from as u16, more).part(from, to)
    };
    let whole = sit(HOST, SERVER);
    gateway.receives(part(&whole, 32, 60, false));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.receives(part(&whole, 0, 32, true));
    let sent = gateway.sent();
    assert_eq!((source(&sent), &sent[20..]), (DOOR.into(), &[0x60; 60][..]));
    let answer = sit(SERVER, DOOR);
    gateway.receives(part(&answer, 0, 32, true));
    gateway.receives(part(&answer, 32, 60, false));
    let sent = gateway.sent();
    assert_eq!((sent[16..20].to_vec(), &sent[20..]), (vec![10, 0, 0, 1], &[0x60; 60][..]));
    // What could never come in is not held.
    assert_eq!(refused(&mut gateway, part(&sit(STRANGER, DOOR), 0, 32, true)), FILTERED);
    assert_eq!(refused(&mut gateway, part(&gre(SERVER, DOOR), 0, 8, true)), FILTERED);
}

#[test]
fn what_is_too_large_is_answered_or_cut() {
    let mut gateway = one_address(|_| {});
    let large = v4(HOST, SERVER).protocol(41, &[0x60; 1_500], None);
    gateway.receives(large.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
    let error = gateway.sent();
    assert_eq!((&error[20..22], &error[26..28]), (&[3, 4][..], &1_500_u16.to_be_bytes()[..]));
    gateway.receives(large.may_fragment());
    let (first, second) = (gateway.sent(), gateway.sent());
    assert_eq!((source(&first), source(&second)), (DOOR.into(), DOOR.into()));
    assert_eq!(first.len() + second.len(), 1_500 + 2 * 20);
    assert_eq!(first[4..6], second[4..6]);
}

#[test]
fn rows_show_what_passed_and_a_session_can_be_ended() {
    let mut gateway = one_address(|_| {});
    for key in [1, 2] {
        outside(&mut gateway, gre_with_key(HOST, SERVER, key));
    }
    outside(&mut gateway, sit(HOST, SERVER));
    gateway.receives(sit(SERVER, DOOR));
    gateway.sent();
    gateway.now = gateway.now + Duration::from_secs(40);
    let all = rows(&mut gateway);
    assert_eq!(all.len(), 3);
    let row = all.iter().find(|row| row.protocol == 41).unwrap();
    let addresses = [row.inside, row.outside, row.remote].map(|address| address.to_string());
    assert_eq!(addresses, [HOST, DOOR, SERVER]);
    assert_eq!((row.packets, row.octets), ([1, 1], [80, 80]));
    assert_eq!((row.idle.as_secs(), row.ends_in.as_secs()), (40, 260));

    let (nat44, counters) = gateway.engine.stateful_at(0).unwrap();
    let [host, server, stranger] = [HOST, SERVER, STRANGER].map(|address| address.parse().unwrap());
    assert!(!nat44.without_ports_mut().end(47, host, stranger, counters));
    assert!(!nat44.without_ports_mut().end(50, host, server, counters));
    assert!(nat44.without_ports_mut().end(47, host, server, counters), "with both keys");
    assert!(!nat44.without_ports_mut().end(47, host, server, counters));
    assert_eq!(rows(&mut gateway).len(), 1);
    assert_eq!(refused(&mut gateway, gre_with_key(SERVER, DOOR, 1)), FILTERED);
    assert_eq!(outside(&mut gateway, gre_with_key(OTHER, SERVER, 1)), DOOR, "its key is free again");
}
