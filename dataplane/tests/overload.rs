//! An engine with a standing queue in front of it: who sends most loses, others do not, and what is left keeps its order.

use crate::support::{
    Build, Gateway, configured, gateway, in_ipv4, isatap, nat64, six_rd, six_to_four, v4, v6,
};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::fair_share::{BUCKETS, Bucket, FilterRule, SenderTable, sender_bits};
use sixway_dataplane::frame::{Ingress, Realm};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::six_rd::Role;
use sixway_dataplane::mechanism::six_to_four::{NativeSources, SixToFourConfig};
use sixway_dataplane::mechanism::{isatap as isatap_link, six_to_four as six_to_four_site};
use sixway_dataplane::{DropReason, Frame, Outbox, Verdict};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HEAVY: &str = "2001:db8:1::1";
const LIGHT: &str = "2001:db8:1:1::1";
const SERVER: &str = "64:ff9b::203.0.113.2";
/// Packets of a batch, of which one is the light sender's.
const BATCH: u16 = 64;

/// What became of the packets of both, in batches 2 ms apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fates {
    heavy: [usize; 2],
    light: [usize; 2],
}

/// `is_empty`: whether the queue is empty after each batch.
fn run(is_empty: bool) -> Fates {
    let mut gateway = gateway_with_shares();
    let (mut fates, mut out) = (Fates::default(), Outbox::new(1_024));
    for round in 0..500_u16 {
        gateway.now = gateway.now + Duration::from_millis(2);
        let own = round % BATCH;
        let packet = |number: u16| {
            let source = if number == own { LIGHT } else { HEAVY };
            Frame::holding(&v6(source, SERVER).udp(4_000 + number, 53, &round.to_be_bytes()).octets())
        };
        let mut frames: Vec<_> = (0..BATCH).map(packet).collect();
        gateway.engine.process(&mut frames, gateway.now, &mut out);
        for (number, frame) in frames.iter().enumerate() {
            let fate = if number == usize::from(own) { &mut fates.light } else { &mut fates.heavy };
            match frame.verdict {
                Verdict::Dropped(DropReason::Overload) => {
                    fate[1] += 1;
                    assert_eq!(frame.bytes()[0] >> 4, 6, "nothing was done with it");
                }
                _ => {
                    fate[0] += 1;
                    assert_eq!(frame.bytes()[0] >> 4, 4, "{:?}", frame.verdict);
                    assert!(frame.bytes().ends_with(&round.to_be_bytes()));
                }
            }
        }
        out.clear();
        if is_empty {
            gateway.engine.emptied(gateway.now);
        }
    }
    let counters = gateway.engine.counters();
    assert_eq!(counters.received, 500 * u64::from(BATCH));
    assert_eq!(counters.received, counters.forwarded + counters.dropped_total(), "packets are conserved");
    assert_eq!(counters.dropped_total(), (fates.heavy[1] + fates.light[1]) as u64);
    fates
}

#[test]
fn a_standing_queue_causes_drops_of_the_heavy_sender_and_none_of_the_light_one() {
    let fates = run(false);
    assert_eq!(fates.light, [500, 0]);
    assert!(fates.heavy[1] > 1_000, "{fates:?}");
    // Four fifths of what was processed before are processed at least.
    assert!(fates.heavy[0] + fates.light[0] > 500 * usize::from(BATCH) * 4 / 5, "{fates:?}");
}

#[test]
fn without_a_standing_queue_nothing_is_dropped() {
    assert_eq!(run(true), Fates { heavy: [500 * 63, 0], light: [500, 0] });
}

/// Full batches 2 ms apart, each with one packet of the light sender: what is dropped of the heavy and of the light one. `handed_over`: another
/// worker handed them over, after this number of passes.
fn dropped(gateway: &mut Gateway, heavy: &Build, light: &Build, handed_over: Option<u8>) -> [usize; 2] {
    let (mut dropped, mut out) = ([0, 0], Outbox::new(1_024));
    for round in 0..500_u16 {
        gateway.now = gateway.now + Duration::from_millis(2);
        let own = usize::from(round % BATCH);
        let packet = |number| {
            let octets = if number == own { light } else { heavy }.clone().octets();
            let mut frame = Frame::holding(&octets);
            frame.passes = handed_over.unwrap_or(0);
            frame
        };
        let mut frames: Vec<_> = (0..BATCH.into()).map(packet).collect();
        match handed_over {
            Some(_) => gateway.engine.take_over(&mut frames, gateway.now, &mut out),
            None => gateway.engine.process(&mut frames, gateway.now, &mut out),
        }
        for (number, frame) in frames.iter().enumerate() {
            let is_dropped = frame.verdict == Verdict::Dropped(DropReason::Overload);
            dropped[usize::from(number == own)] += usize::from(is_dropped);
        }
        out.clear();
    }
    dropped
}

/// Those that are dropped lie between the others, and of more than a stride of packets as well.
#[test]
fn every_packet_stays_at_its_place() {
    let mut gateway = gateway_with_shares();
    let (mut places, mut out) = ([0, 0], Outbox::new(1_024));
    for round in 0..500_u16 {
        gateway.now = gateway.now + Duration::from_millis(3);
        let source = |number: u16| if number.is_multiple_of(10) { LIGHT } else { HEAVY };
        let packet = |number: u16| v6(source(number), SERVER).udp(4_000, 53, &number.to_be_bytes()).octets();
        let mut frames: Vec<_> = (0..BATCH + 40).map(|number| Frame::holding(&packet(number))).collect();
        gateway.engine.process(&mut frames, gateway.now, &mut out);
        for (frame, number) in frames.iter().zip(0_u16..) {
            let is_dropped = frame.verdict == Verdict::Dropped(DropReason::Overload);
            assert!(frame.bytes().ends_with(&number.to_be_bytes()), "{round} {number}");
            assert_eq!(frame.bytes()[0] >> 4, if is_dropped { 6 } else { 4 }, "{round} {number}");
            places[usize::from(is_dropped)] += 1;
        }
        out.clear();
    }
    assert!(places.iter().all(|count| *count > 1_000), "{places:?}");
}

fn gateway_with_shares() -> Gateway {
    gateway(|engine| {
        engine.nat64.push(nat64());
        engine.fair_shares = Some(64);
    })
}

/// Fragments, ICMP errors and what turns around come from other workers. A flood of them must not cost this worker's own senders anything.
#[test]
fn what_other_workers_hand_over_has_shares_as_well() {
    let mut gateway = gateway_with_shares();
    let of = |source| v6(source, SERVER).udp(4_000, 53, b"data");
    let [heavy, light] = dropped(&mut gateway, &of(HEAVY), &of(LIGHT), Some(0));
    assert!(heavy > 1_000 && light == 0, "{heavy} {light}");
    // What turns around has the outside address of all hosts.
    let of = |port| v4("192.0.2.1", "192.0.2.1").udp(port, 53, b"data");
    let mut gateway = gateway_with_shares();
    let [heavy, light] = dropped(&mut gateway, &of(4_000), &of(5_000), Some(1));
    assert!(heavy > 1_000 && light == 0, "{heavy} {light}");
}

/// Behind the remote end of a tunnel that has the way to everywhere is everybody, and behind another one a customer, whatever sources it writes.
#[test]
fn senders_behind_a_relay_are_known_by_the_packets_inside() {
    let tunnel = |prefix: &str| {
        let prefixes = vec![prefix.parse().unwrap()];
        gateway(|engine| {
            engine.tunnels.push(TunnelConfig::Configured(ConfiguredConfig { prefixes, ..configured() }));
            engine.fair_shares = Some(64);
        })
    };
    let inner = |source: &str| v6(source, "2001:db8:1::1").udp(53, 4_000, b"data");
    let through = |remote, source| in_ipv4(remote, "192.0.2.9", inner(source));
    let relay = "198.51.100.7";
    let [heavy, light] = ["2001:4860:1::1", "2001:4860:2::1"].map(|source| through(relay, source));
    let [of_heavy, of_light] = dropped(&mut tunnel("2000::/3"), &heavy, &light, None);
    assert!(of_heavy > 1_000 && of_light == 0, "{of_heavy} {of_light}");
    // Sources of its choice give a customer no other shares.
    let [heavy, own] = ["2001:db8:7:1::1", "2001:db8:7:2::1"].map(|source| through(relay, source));
    let [of_heavy, of_own] = dropped(&mut tunnel("2001:db8:7::/48"), &heavy, &own, None);
    assert!(of_heavy > 1_000 && of_own > 0, "{of_heavy} {of_own}");
    // 6rd: a border relay is one, another customer's edge is not.
    let mut edge = six_rd(Role::CustomerEdge, "10.100.100.1");
    edge.border_relays = vec![relay.parse().unwrap()];
    let mut site = gateway(|engine| {
        engine.tunnels.push(TunnelConfig::SixRd(edge.clone()));
        engine.fair_shares = Some(64);
    });
    let to_site = |source: &str| {
        in_ipv4(relay, "10.100.100.1", v6(source, "2001:db8:6464:100::1").udp(53, 4_000, b"data"))
    };
    let [heavy, light] = ["2001:4860:1::1", "2001:4860:2::1"].map(to_site);
    let [of_heavy, of_light] = dropped(&mut site, &heavy, &light, None);
    assert!(of_heavy > 1_000 && of_light == 0, "{of_heavy} {of_light}");
    // A border relay looks through no customer's edge, not even one at the address of another border relay.
    let border = TunnelConfig::SixRd(six_rd(Role::BorderRelay, "10.0.0.9"));
    let [of_heavy, of_own] = dropped_behind(border, "10.0.0.1", ["10.0.0.9", "2001:4860:3::1"]);
    assert!(of_heavy > 1_000 && of_own > 0, "a border relay: {of_heavy} {of_own}");
}

/// Packets of native sources through this remote end, and what their heavy and their light sender lose.
fn dropped_behind(tunnel: TunnelConfig, remote: &str, [local, host]: [&str; 2]) -> [usize; 2] {
    let mut gateway = gateway(|engine| {
        engine.tunnels.push(tunnel);
        engine.fair_shares = Some(64);
    });
    let [heavy, light] = ["2001:4860:1::1", "2001:4860:2::1"]
        .map(|source| in_ipv4(remote, local, v6(source, host).udp(53, 4_000, b"data")));
    dropped(&mut gateway, &heavy, &light, None)
}

/// A 6to4 router gets what comes from native IPv6 by its relay, and an ISATAP host by its router.
#[test]
fn senders_behind_a_6to4_relay_or_an_isatap_router_are_known_by_the_packets_inside() {
    let (router, other, third) = ("192.0.2.8", "203.0.113.7", "203.0.113.99");
    let site = ["192.0.2.8", "2002:c000:208::1"];
    let any = six_to_four(six_to_four_site::Role::Router, router);
    let native_sources = NativeSources::Listed(vec![other.parse().unwrap()]);
    let listed = SixToFourConfig { native_sources, ..any.clone() };
    let link = ["10.1.2.3", "2001:db8:1:2:0:5efe:a01:203"];
    let host = TunnelConfig::Isatap(isatap(isatap_link::Role::Host, link[0]));
    let [any, listed] = [any, listed].map(TunnelConfig::SixToFour);
    for (tunnel, remote, at) in [
        (any.clone(), "192.88.99.1", site),
        (listed.clone(), "192.88.99.1", site),
        (listed.clone(), other, site),
        (host, "10.0.0.1", link),
    ] {
        let [heavy, light] = dropped_behind(tunnel, remote, at);
        assert!(heavy > 1_000 && light == 0, "{remote}: {heavy} {light}");
    }
    // Sources of its choice give anybody else no other shares, and neither does a relay's own tunnel to its sites.
    for (tunnel, remote) in [(any, third), (listed, third)] {
        let [heavy, own] = dropped_behind(tunnel, remote, site);
        assert!(heavy > 1_000 && own > 0, "{remote}: {heavy} {own}");
    }
    let relay = six_to_four(six_to_four_site::Role::Relay, "192.88.99.1");
    let native_sources = NativeSources::Listed(vec![other.parse().unwrap()]);
    let relay = TunnelConfig::SixToFour(SixToFourConfig { native_sources, ..relay });
    let [heavy, own] = dropped_behind(relay, other, ["192.88.99.1", "2001:db8::2"]);
    assert!(heavy > 1_000 && own > 0, "{heavy} {own}");
    let host = TunnelConfig::SixToFour(six_to_four(six_to_four_site::Role::Host, router));
    let [heavy, light] = dropped_behind(host, "192.88.99.1", site);
    assert!(heavy > 1_000 && light == 0, "a host: {heavy} {light}");
    let on_link = TunnelConfig::Isatap(isatap(isatap_link::Role::Router, "10.0.0.2"));
    let [heavy, own] = dropped_behind(on_link, "10.0.0.1", ["10.0.0.2", "2001:db8:1:2::1"]);
    assert!(heavy > 1_000 && own > 0, "an ISATAP router: {heavy} {own}");
}

/// Who forges the source of a packet inside uses up no share of the host that has the address, and who has many prefixes of a site is one sender.
#[test]
fn a_sender_behind_a_relay_is_another_one_than_a_host_inside_and_has_one_share_for_its_site() {
    let (router, relay, host) = ("192.0.2.8", "192.88.99.1", "2002:c000:208::1");
    let site = || {
        let site = six_to_four(six_to_four_site::Role::Router, router);
        gateway(|engine| {
            engine.tunnels.push(TunnelConfig::SixToFour(site));
            engine.fair_shares = Some(64);
        })
    };
    let through = |source: &str| in_ipv4(relay, router, v6(source, host).udp(53, 4_000, b"data"));
    let own = v6(host, "2001:4860:2::1").udp(53, 4_000, b"data");
    let [of_forger, of_host] = dropped(&mut site(), &through(host), &own, None);
    assert!(of_forger > 1_000 && of_host == 0, "{of_forger} {of_host}");
    let same_site = ["2001:4860:1:1::1", "2001:4860:1:2::1"].map(through);
    let [of_heavy, of_own] = dropped(&mut site(), &same_site[0], &same_site[1], None);
    assert!(of_heavy > 1_000 && of_own > 0, "another prefix of its site: {of_heavy} {of_own}");
    // A site has a /48, neither less nor more.
    let far = ["2001:4860:1::1", "2001:4860:1:8000::1"].map(through);
    let [of_heavy, of_own] = dropped(&mut site(), &far[0], &far[1], None);
    assert!(of_heavy > 1_000 && of_own > 0, "the other half of its site: {of_heavy} {of_own}");
    let next = ["2001:4860:2::1", "2001:4860:3::1"].map(through);
    let [of_heavy, of_next] = dropped(&mut site(), &next[0], &next[1], None);
    assert!(of_heavy > 1_000 && of_next == 0, "the next site: {of_heavy} {of_next}");
}

/// Relays are found whatever their order, also one that several tunnels have.
#[test]
fn each_of_many_relays_is_looked_through() {
    let relays = ["203.0.113.9", "192.0.2.77", "198.51.100.1", "203.0.113.9"];
    for relay in relays {
        let mut edge = six_rd(Role::CustomerEdge, "10.100.100.1");
        edge.border_relays = relays.iter().map(|relay| relay.parse().unwrap()).collect();
        let tunnel = TunnelConfig::SixRd(edge);
        let [heavy, light] = dropped_behind(tunnel, relay, ["10.100.100.1", "2001:db8:6464:100::1"]);
        assert!(heavy > 1_000 && light == 0, "{relay}: {heavy} {light}");
    }
}

/// What is not an IP packet has no sender. It is dropped for what it is.
#[test]
fn octets_without_a_source_address_are_dropped_for_another_reason() {
    let mut gateway = gateway(|engine| engine.fair_shares = Some(64));
    for octets in [&[][..], &[0x45; 15], &[0x60; 23], &[0x10; 60]] {
        for _ in 0..100 {
            gateway.now = gateway.now + Duration::from_millis(10);
            let mut frames = [Frame::holding(octets), Frame::holding(octets)];
            gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(8));
            for frame in frames {
                let is_other =
                    matches!(frame.verdict, Verdict::Dropped(reason) if reason != DropReason::Overload);
                assert!(is_other, "{:?}", frame.verdict);
            }
        }
    }
}

/// A filter in front of the queue.
#[derive(Clone)]
struct Filter(Arc<(Vec<Bucket>, Mutex<Option<FilterRule>>, AtomicU64)>);

impl Filter {
    fn new() -> Self {
        let buckets = (0..BUCKETS).map(|_| Bucket::default()).collect();
        Self(Arc::new((buckets, Mutex::new(None), AtomicU64::new(0))))
    }

    fn rule(&self) -> Option<FilterRule> {
        self.0.1.lock().unwrap().clone()
    }

    /// Whether a packet enters the queue.
    fn passes(&self, source: &str) -> bool {
        let Some(rule) = self.rule() else { return true };
        let sender = sender_bits(source.parse().unwrap(), u128::MAX << 64);
        let passes = rule.admits(&self.0.0, rule.hash.bucket(Realm(0), sender, 0));
        self.0.2.fetch_add(u64::from(!passes), Relaxed);
        passes
    }
}

impl SenderTable for Filter {
    fn buckets(&self) -> &[Bucket] {
        &self.0.0
    }

    fn set(&mut self, rule: Option<&FilterRule>) {
        *self.0.1.lock().unwrap() = rule.cloned();
    }

    fn dropped(&self) -> u64 {
        self.0.2.load(Relaxed)
    }
}

fn gateway_with_filter() -> (Gateway, Filter) {
    let (mut gateway, filter) = (gateway_with_shares(), Filter::new());
    gateway.engine.set_filters(vec![Box::new(filter.clone())]);
    (gateway, filter)
}

#[test]
fn a_filter_drops_packets_of_the_heavy_sender_and_they_are_counted() {
    let (mut gateway, filter) = gateway_with_filter();
    let mut out = Outbox::new(1_024);
    let (mut arrived, mut queue) = ([0, 0], VecDeque::new());
    for round in 0..1_000_u64 {
        gateway.now = gateway.now + Duration::from_millis(2);
        // Twice as many as are taken out of the queue.
        for number in 0..2 * u64::from(BATCH) {
            let source = if number == round % 128 { LIGHT } else { HEAVY };
            arrived[usize::from(source == LIGHT)] += 1;
            if filter.passes(source) {
                queue.push_back(source);
            }
        }
        let count = queue.len().min(BATCH.into());
        let packet = |source| Frame::holding(&v6(source, SERVER).udp(4_000, 53, b"data").octets());
        let mut frames: Vec<_> = queue.drain(..count).map(packet).collect();
        gateway.engine.process(&mut frames, gateway.now, &mut out);
        assert!(frames.iter().all(|frame| frame.bytes()[0] >> 4 == 4), "what passed the filter is processed");
        out.clear();
        gateway.engine.tick(gateway.now, &mut out);
        if queue.is_empty() {
            gateway.engine.caught_up();
        }
    }
    assert!(queue.len() < 1_000, "{}", queue.len());
    assert!(filter.dropped() > 50_000);
    for _ in 0..50 {
        gateway.now = gateway.now + Duration::from_millis(10);
        gateway.engine.tick(gateway.now, &mut out);
        gateway.engine.caught_up();
    }
    assert_eq!(filter.rule(), None, "overload is over");
    let counters = gateway.engine.counters();
    assert_eq!(counters.dropped[DropReason::Overload as usize], filter.dropped());
    assert_eq!(counters.received, arrived[0] + arrived[1] - queue.len() as u64);
    assert!(counters.frames_are_conserved());
}

/// They did not pass this filter.
#[test]
fn what_comes_by_a_socket_or_from_another_worker_is_judged_by_the_engine() {
    let of = |source| v6(source, SERVER).udp(4_000, 53, b"data");
    let (mut gateway, filter) = gateway_with_filter();
    let [heavy, light] = dropped(&mut gateway, &of(HEAVY), &of(LIGHT), Some(0));
    assert!(heavy > 1_000 && light == 0, "{heavy} {light}");
    assert!(filter.rule().is_some());

    let (mut gateway, _) = gateway_with_filter();
    let mut refused = 0;
    for _ in 0..500 {
        gateway.now = gateway.now + Duration::from_millis(2);
        let mut frames: Vec<_> = (0..BATCH).map(|_| Frame::holding(&of(HEAVY).octets())).collect();
        frames.iter_mut().for_each(|frame| frame.ingress = Ingress::Socket);
        gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(1_024));
        refused += frames.iter().filter(|it| it.verdict == Verdict::Dropped(DropReason::Overload)).count();
    }
    assert!(refused > 1_000, "{refused}");
}

/// It does not see who is behind a relay.
#[test]
fn a_filter_is_not_used_where_a_relay_has_packets_of_everybody() {
    let prefixes = vec!["2000::/3".parse().unwrap()];
    let mut gateway = gateway(|engine| {
        engine.tunnels.push(TunnelConfig::Configured(ConfiguredConfig { prefixes, ..configured() }));
        engine.fair_shares = Some(64);
    });
    let filter = Filter::new();
    gateway.engine.set_filters(vec![Box::new(filter.clone())]);
    let inner = |source: &str| v6(source, "2001:db8:1::1").udp(53, 4_000, b"data");
    let [heavy, light] = ["2001:4860:1::1", "2001:4860:2::1"]
        .map(|source| in_ipv4("198.51.100.7", "192.0.2.9", inner(source)));
    let [of_heavy, of_light] = dropped(&mut gateway, &heavy, &light, None);
    assert!(of_heavy > 1_000 && of_light == 0, "{of_heavy} {of_light}");
    assert_eq!(filter.rule(), None);
}
