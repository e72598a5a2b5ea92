//! Two workers: a packet is processed by the one that owns its state, whichever receives it, and both count it.

use crate::support;
use crate::support::{Build, checksum_is_right, hex, icmp4, icmp6, v4, v6};
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::nat44::{PortlessBinding, PortlessProtocol};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, Spread, StaticBinding, TCP_INCOMING_SYN};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const PEER6: &str = "2001:db8:64::203.0.113.2";
const WORKERS: usize = 2;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A gateway of two workers, and what it sent.
struct Workers {
    engines: Vec<Engine>,
    now: Instant,
    sent: Vec<Vec<u8>>,
    last: Verdict,
    /// How often the last packet was handed over.
    handed_over: usize,
}

fn workers(edit: impl Fn(&mut EngineConfig)) -> Workers {
    let engine = |worker| {
        let mut config = EngineConfig {
            own4: Some("192.0.2.254".parse().unwrap()),
            own6: Some("2001:db8::fe".parse().unwrap()),
            worker: WorkerId(worker),
            workers: WORKERS as u8,
            seed: [0x5eed, 0x1ab],
            ..EngineConfig::default()
        };
        edit(&mut config);
        Engine::new(&config).unwrap()
    };
    Workers {
        engines: (0..WORKERS as u8).map(engine).collect(),
        now: Instant::from_secs(1_000),
        sent: Vec::new(),
        last: Verdict::Pending,
        handed_over: 0,
    }
}

fn stateful() -> Workers {
    workers(|config| config.nat64.push(support::nat64()))
}

fn with_dynamic_pool() -> Workers {
    workers(|config| {
        config.siit.push(SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            dynamic_pool: Some(DynamicPoolConfig::new("172.16.0.0/24".parse().unwrap())),
            ..SiitConfig::default()
        });
    })
}

impl Workers {
    /// A packet comes in at a worker's queue.
    #[track_caller]
    fn receives(&mut self, at: usize, packet: impl Into<Vec<u8>>) {
        let mut frame = Frame::holding(&packet.into());
        let mut out = Outbox::new(64);
        self.engines[at].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        self.handed_over = 0;
        while let Verdict::HandOver(worker) = frame.verdict {
            self.handed_over += 1;
            assert!(self.handed_over < 4, "it goes in circles: {frame:?}");
            self.engines[usize::from(worker.0)].take_over(
                std::slice::from_mut(&mut frame),
                self.now,
                &mut out,
            );
        }
        self.last = frame.verdict;
        if frame.verdict.leaves() {
            self.sent.push(frame.bytes().to_vec());
        }
        self.collect(out);
    }

    #[track_caller]
    fn waits(&mut self, time: Duration) {
        self.now = self.now + time;
        for index in 0..WORKERS {
            let mut out = Outbox::new(64);
            self.engines[index].tick(self.now, &mut out);
            self.collect(out);
        }
    }

    #[track_caller]
    fn collect(&mut self, mut out: Outbox) {
        for error in out.frames() {
            match error.verdict {
                Verdict::HandOver(worker) => self.hand_over_error(worker, error),
                _ => self.sent.push(error.bytes().to_vec()),
            }
        }
        let (mut given, mut taken) = (0, 0);
        for engine in &self.engines {
            let counters = engine.counters();
            assert!(counters.frames_are_conserved(), "{counters:?}");
            given += counters.handed_over + counters.icmp_errors_handed_over;
            taken += counters.taken_over;
        }
        assert_eq!(given, taken, "what is handed over is taken over");
    }

    /// An error about a hairpinned packet goes to the worker of the sender.
    fn hand_over_error(&mut self, worker: WorkerId, error: &mut Frame) {
        let mut out = Outbox::new(64);
        self.engines[usize::from(worker.0)].take_over(std::slice::from_mut(error), self.now, &mut out);
        assert!(out.is_empty(), "no error about an error");
        assert!(error.verdict.leaves(), "{error:?}");
        self.sent.push(error.bytes().to_vec());
    }

    #[track_caller]
    fn sent(&mut self) -> Vec<u8> {
        assert!(!self.sent.is_empty(), "nothing was sent; the last verdict: {:?}", self.last);
        self.sent.remove(0)
    }

    #[track_caller]
    fn sends(&mut self, expected: impl Into<Vec<u8>>) {
        assert_eq!(hex(&self.sent()), hex(&expected.into()), "\nleft: sent, right: expected");
    }

    /// The n-th host that a worker owns.
    fn host(&mut self, worker: usize, n: usize) -> String {
        let ownership = self.engines[0].nat64()[0].ownership();
        // Each of a network of its own: those of one belong to one worker.
        let hosts = (1u128..).map(|n| Ipv6Addr::from_bits((0x2001_0db8_0001 << 80) | n << 64 | 1));
        let mut owned = hosts.filter(|host| usize::from(ownership.worker_of_inside(*host).0) == worker);
        owned.nth(n).unwrap().to_string()
    }
}

/// Address and source port (or identifier) of an IPv4 packet.
fn outside(packet: &[u8]) -> (String, u16) {
    let port_at = if packet[9] == 1 { 24 } else { 20 };
    let address = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
    (address.to_string(), u16::from_be_bytes([packet[port_at], packet[port_at + 1]]))
}

/// Every way in which `packets` packets can arrive at two workers.
fn arrivals(packets: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << packets).map(move |bits| (0..packets).map(|n| bits >> n & 1).collect())
}

#[test]
fn a_flow_is_translated_wherever_its_packets_arrive() {
    for owner in 0..WORKERS {
        for at in arrivals(3) {
            let mut gateway = stateful();
            let host = gateway.host(owner, 0);
            gateway.receives(at[0], v6(&host, SERVER6).udp(4_001, 53, b"question"));
            assert_eq!(gateway.handed_over, usize::from(at[0] != owner), "straight to its owner");
            let sent = gateway.sent();
            assert!(checksum_is_right(&sent));
            let (address, port) = outside(&sent);
            gateway.receives(at[1], v4(SERVER, &address).udp(53, port, b"answer"));
            assert_eq!(gateway.handed_over, usize::from(at[1] != owner));
            gateway.sends(v6(SERVER6, &host).hops(63).udp(53, 4_001, b"answer"));
            gateway.receives(at[2], v6(&host, SERVER6).udp(4_001, 53, b"question"));
            assert_eq!(outside(&gateway.sent()), (address, port));
            let made: u64 = gateway.engines.iter().map(|engine| engine.counters().sessions_made).sum();
            assert_eq!(made, 1);
        }
    }
}

#[test]
fn a_connection_is_opened_wherever_its_packets_arrive() {
    for owner in 0..WORKERS {
        for at in arrivals(3) {
            let mut gateway = stateful();
            let host = gateway.host(owner, 0);
            gateway.receives(at[0], v6(&host, SERVER6).tcp(4_001, 80, SYN, b""));
            let (address, port) = outside(&gateway.sent());
            gateway.receives(at[1], v4(SERVER, &address).tcp(80, port, SYN | ACK, b""));
            gateway.sends(v6(SERVER6, &host).hops(63).tcp(80, 4_001, SYN | ACK, b""));
            gateway.receives(at[2], v6(&host, SERVER6).tcp(4_001, 80, ACK, b"data"));
            assert_eq!(outside(&gateway.sent()), (address, port));
        }
    }
}

#[test]
fn an_echo_and_its_reply_cross_wherever_they_arrive() {
    for owner in 0..WORKERS {
        for at in arrivals(2) {
            let mut gateway = stateful();
            let host = gateway.host(owner, 0);
            gateway.receives(at[0], v6(&host, SERVER6).echo(7, 1, b"ping"));
            let (address, identifier) = outside(&gateway.sent());
            gateway.receives(at[1], v4(SERVER, &address).echo_reply(identifier, 1, b"ping"));
            gateway.sends(v6(SERVER6, &host).hops(63).echo_reply(7, 1, b"ping"));
        }
    }
}

#[test]
fn no_two_workers_give_the_same_outside_endpoint() {
    let mut gateway = stateful();
    let hosts: Vec<String> =
        (0..20).flat_map(|n| [(0, n), (1, n)]).map(|(worker, n)| gateway.host(worker, n)).collect();
    let mut seen = HashSet::from([]);
    for host in &hosts {
        for port in 4_000..4_020 {
            gateway.receives(usize::from(port % 2 == 0), v6(host, SERVER6).udp(port, 53, b"question"));
            assert!(seen.insert(outside(&gateway.sent())), "{host} {port}");
        }
    }
}

#[test]
fn two_hosts_of_two_workers_talk_by_their_outside_endpoints() {
    for (one, other) in [(0, 1), (1, 0), (0, 0), (1, 1)] {
        for at in arrivals(4) {
            let mut gateway = stateful();
            let (caller, called) = (gateway.host(one, 0), gateway.host(other, 1));
            gateway.receives(at[0], v6(&called, SERVER6).udp(7_000, 53, b"register"));
            let called4 = outside(&gateway.sent());
            gateway.receives(at[1], v6(&caller, SERVER6).udp(4_001, 53, b"register"));
            let caller4 = outside(&gateway.sent());
            let seen = |(address, port): &(String, u16)| (format!("64:ff9b::{address}"), *port);
            let ((called6, called_port), (caller6, caller_port)) = (seen(&called4), seen(&caller4));
            gateway.receives(at[2], v6(&caller, &called6).udp(4_001, called_port, b"hello"));
            gateway.sends(v6(&caller6, &called).hops(63).udp(caller_port, 7_000, b"hello"));
            gateway.receives(at[3], v6(&called, &caller6).udp(7_000, caller_port, b"hello yourself"));
            gateway.sends(v6(&called6, &caller).hops(63).udp(called_port, 4_001, b"hello yourself"));
        }
    }
}

#[test]
fn a_caller_hears_that_nobody_is_at_another_workers_port() {
    for owner in 0..WORKERS {
        let mut gateway = stateful();
        let caller = gateway.host(owner, 0);
        // A port of each worker.
        for other in 0..WORKERS {
            let called = gateway.host(other, 1);
            gateway.receives(0, v6(&called, SERVER6).udp(7_000, 53, b"register"));
            let (address, port) = outside(&gateway.sent());
            let (nobody, door) = (port ^ 1, format!("64:ff9b::{address}"));
            let packet = v6(&caller, &door).udp(4_001, nobody, b"hello");
            gateway.receives(0, packet.clone());
            let error = gateway.sent();
            assert!(checksum_is_right(&error));
            assert_eq!((error[6], error[40], error[41]), (58, 1, 0), "{owner} {other}");
            assert_eq!(error[24..40], caller.parse::<Ipv6Addr>().unwrap().octets());
            // What it quotes is what the caller sent, but for the hop limit.
            assert_eq!(error[48 + 8..], packet.octets()[8..], "{owner} {other}");
        }
    }
}

#[test]
fn an_icmp_error_finds_its_host_wherever_it_arrives() {
    for owner in 0..WORKERS {
        for at in arrivals(2) {
            let mut gateway = stateful();
            let host = gateway.host(owner, 0);
            gateway.receives(at[0], v6(&host, SERVER6).hops(9).udp(4_001, 53, b"question"));
            let sent = gateway.sent();
            let (address, _) = outside(&sent);
            gateway.receives(at[1], v4("198.51.100.1", &address).icmp(icmp4(3, 1, [0; 4], &sent)));
            let as_sent = v6(&host, SERVER6).hops(8).udp(4_001, 53, b"question").octets();
            gateway.sends(v6("64:ff9b::198.51.100.1", &host).hops(63).icmp(icmp6(1, 0, [0; 4], &as_sent)));
        }
    }
}

#[test]
fn an_icmp_error_from_inside_leaves_wherever_it_arrives() {
    for owner in 0..WORKERS {
        for at in arrivals(2) {
            let mut gateway = stateful();
            let host = gateway.host(owner, 0);
            gateway.receives(0, v6(&host, SERVER6).udp(4_001, 53, b"question"));
            let (address, port) = outside(&gateway.sent());
            gateway.receives(at[0], v4(SERVER, &address).udp(53, port, b"answer"));
            let arrived = gateway.sent();
            // A router inside sends it, which another worker may own than the host.
            for router in [gateway.host(0, 9), gateway.host(1, 9)] {
                gateway.receives(at[1], v6(&router, SERVER6).icmp(icmp6(1, 3, [0; 4], &arrived)));
                let sent = gateway.sent();
                assert_eq!((sent[9], sent[20], sent[21]), (1, 3, 1));
                assert_eq!(sent[48..52], [0, 53, (port >> 8) as u8, port as u8]);
            }
        }
    }
}

#[test]
fn an_icmp_error_crosses_a_hairpin_between_two_workers() {
    for (one, other) in [(0, 1), (1, 0)] {
        for at in arrivals(2) {
            let mut gateway = stateful();
            let (caller, called) = (gateway.host(one, 0), gateway.host(other, 1));
            gateway.receives(0, v6(&called, SERVER6).udp(7_000, 53, b"register"));
            let (called4, called_port) = outside(&gateway.sent());
            let called6 = format!("64:ff9b::{called4}");
            gateway.receives(at[0], v6(&caller, &called6).hops(9).udp(4_001, called_port, b"hello"));
            let arrived = gateway.sent();
            let caller6 = Ipv6Addr::from(<[u8; 16]>::try_from(&arrived[8..24]).unwrap()).to_string();
            gateway.receives(at[1], v6(&called, &caller6).icmp(icmp6(1, 4, [0; 4], &arrived)));
            let as_sent = v6(&caller, &called6).hops(8).udp(4_001, called_port, b"hello").octets();
            gateway.sends(v6(&called6, &caller).hops(63).icmp(icmp6(1, 4, [0; 4], &as_sent)));
        }
    }
}

/// Two fragments of a packet.
fn halves(whole: &Build, identification: u32, at: usize, end: usize) -> [Build; 2] {
    [
        whole.clone().fragment(identification, 0, true).part(0, at),
        whole.clone().fragment(identification, at as u16, false).part(at, end),
    ]
}

/// What the packets that were sent carry behind their IP headers, put together.
fn carried(gateway: &mut Workers) -> Vec<u8> {
    let mut octets = Vec::new();
    for sent in std::mem::take(&mut gateway.sent) {
        assert!(sent.len() <= 1_500);
        let front = if sent[0] >> 4 == 4 { 20 } else { 48 };
        octets.extend(&sent[front..]);
    }
    octets
}

#[test]
fn fragments_from_inside_meet_wherever_they_arrive() {
    let data: Vec<u8> = (0..1_800u32).map(|n| n as u8).collect();
    for owner in 0..WORKERS {
        // Some identifications let another worker than the host's put the packet together.
        for identification in 0..6 {
            for at in arrivals(2) {
                let mut gateway = stateful();
                let host = gateway.host(owner, 0);
                gateway.receives(0, v6(&host, SERVER6).udp(4_001, 53, b"question"));
                let (address, port) = outside(&gateway.sent());
                let whole = v6(&host, SERVER6).udp(4_001, 53, &data);
                for (part, at) in halves(&whole, identification, 1_232, 1_808).into_iter().zip(at) {
                    gateway.receives(at, part);
                }
                let expected = v4(&address, SERVER).udp(port, 53, &data).octets();
                assert_eq!(carried(&mut gateway), expected[20..], "{:?}", gateway.last);
            }
        }
    }
}

#[test]
fn fragments_from_outside_meet_wherever_they_arrive() {
    let data: Vec<u8> = (0..1_800u32).map(|n| n as u8).collect();
    for owner in 0..WORKERS {
        for identification in 0..6 {
            for at in arrivals(2) {
                let mut gateway = stateful();
                let host = gateway.host(owner, 0);
                gateway.receives(0, v6(&host, SERVER6).udp(4_001, 53, b"question"));
                let (address, port) = outside(&gateway.sent());
                let whole = v4(SERVER, &address).udp(53, port, &data);
                for (part, at) in halves(&whole, identification, 1_480, 1_808).into_iter().zip(at) {
                    gateway.receives(at, part);
                }
                let expected = v6(SERVER6, &host).udp(53, 4_001, &data).octets();
                assert_eq!(carried(&mut gateway), expected[40..], "{:?}", gateway.last);
            }
        }
    }
}

#[test]
fn a_fragmented_packet_crosses_a_hairpin_between_two_workers() {
    let data: Vec<u8> = (0..1_800u32).map(|n| n as u8).collect();
    for identification in 0..6 {
        let mut gateway = stateful();
        let (caller, called) = (gateway.host(0, 0), gateway.host(1, 1));
        gateway.receives(0, v6(&called, SERVER6).udp(7_000, 53, b"register"));
        let (called4, called_port) = outside(&gateway.sent());
        let called6 = format!("64:ff9b::{called4}");
        let whole = v6(&caller, &called6).udp(4_000, called_port, &data);
        for (at, part) in halves(&whole, identification, 1_232, 1_808).into_iter().enumerate() {
            gateway.receives(at, part);
        }
        let arrived = carried(&mut gateway);
        assert_eq!(arrived[8..], data, "{:?}", gateway.last);
        assert_eq!(arrived[2..4], 7_000u16.to_be_bytes());
    }
}

#[test]
fn a_static_binding_is_reached_wherever_packets_arrive() {
    for owner in 0..WORKERS {
        for port in [5_353, 5_353 + 64] {
            for at in arrivals(2) {
                let host = stateful().host(owner, 0);
                let mut gateway = workers(|config| {
                    let mut nat64 = support::nat64();
                    nat64.static_bindings = vec![StaticBinding {
                        softwire: None,
                        protocol: NatProtocol::Udp,
                        inside: Inside(Endpoint6::new(host.parse().unwrap(), 53)),
                        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port)),
                    }];
                    config.nat64.push(nat64);
                });
                gateway.receives(at[0], v4(SERVER, "192.0.2.1").udp(9, port, b"question"));
                gateway.sends(v6(SERVER6, &host).hops(63).udp(9, 53, b"question"));
                gateway.receives(at[1], v6(&host, SERVER6).udp(53, 9, b"answer"));
                assert_eq!(outside(&gateway.sent()), ("192.0.2.1".to_owned(), port));
            }
        }
    }
}

#[test]
fn a_stored_syn_is_joined_by_the_syn_from_inside_wherever_both_arrive() {
    for owner in 0..WORKERS {
        for at in arrivals(2) {
            let mut gateway = workers(|config| {
                let mut nat64 = support::nat64();
                nat64.filtering = sixway_dataplane::nat::Filtering::AddressDependent;
                config.nat64.push(nat64);
            });
            let host = gateway.host(owner, 0);
            gateway.receives(0, v6(&host, SERVER6).tcp(4_001, 80, SYN, b""));
            let (address, port) = outside(&gateway.sent());
            gateway.receives(at[0], v4("203.0.113.99", &address).tcp(80, port, SYN, b""));
            assert_eq!(gateway.last, Verdict::Held);
            gateway.receives(at[1], v6(&host, "64:ff9b::203.0.113.99").tcp(4_001, 80, SYN, b""));
            assert_eq!(outside(&gateway.sent()), (address, port));
            gateway.waits(TCP_INCOMING_SYN + Duration::from_secs(2));
            assert!(gateway.sent.is_empty(), "it is answered no more");
        }
    }
}

#[test]
fn hosts_of_the_dynamic_pool_keep_their_address_and_are_reached_wherever_packets_arrive() {
    let mut gateway = with_dynamic_pool();
    let mut addresses = HashSet::from([]);
    for n in 1..60 {
        let host = format!("2001:db8:ffff::{n:x}");
        let mut seen = HashSet::from([]);
        for at in 0..WORKERS {
            gateway.receives(at, v6(&host, PEER6).udp(1, 2, b"data"));
            seen.insert(outside(&gateway.sent()).0);
        }
        assert_eq!(seen.len(), 1, "{host} has one address");
        let address = seen.into_iter().next().unwrap();
        for at in 0..WORKERS {
            gateway.receives(at, v4(SERVER, &address).udp(2, 1, b"answer"));
            gateway.sends(v6(PEER6, &host).hops(63).udp(2, 1, b"answer"));
        }
        assert!(addresses.insert(address), "its own");
    }
}

#[test]
fn hosts_of_the_dynamic_pool_talk_to_one_another() {
    for (one, other) in (1..6).flat_map(|one| (10..15).map(move |other| (one, other))) {
        let mut gateway = with_dynamic_pool();
        let hosts = [format!("2001:db8:ffff::{one:x}"), format!("2001:db8:ffff::{other:x}")];
        let seen = hosts.clone().map(|host| {
            gateway.receives(0, v6(&host, PEER6).udp(1, 2, b"data"));
            format!("2001:db8:64::{}", outside(&gateway.sent()).0)
        });
        for at in 0..WORKERS {
            gateway.receives(at, v6(&hosts[0], &seen[1]).udp(1, 2, b"hello"));
            gateway.sends(v6(&seen[0], &hosts[1]).hops(63).udp(1, 2, b"hello"));
            gateway.receives(at, v6(&hosts[1], &seen[0]).udp(2, 1, b"hello yourself"));
            gateway.sends(v6(&seen[1], &hosts[0]).hops(63).udp(2, 1, b"hello yourself"));
        }
    }
}

#[test]
fn a_routers_error_about_a_host_of_the_dynamic_pool_crosses_wherever_it_arrives() {
    let mut gateway = with_dynamic_pool();
    for n in 1..20 {
        let (host, router) = (format!("2001:db8:ffff::{n:x}"), format!("2001:db8:eeee::{n:x}"));
        gateway.receives(0, v6(&host, PEER6).udp(1, 2, b"data"));
        let (address, _) = outside(&gateway.sent());
        gateway.receives(0, v4(SERVER, &address).udp(2, 1, b"answer"));
        let arrived = gateway.sent();
        for at in 0..WORKERS {
            gateway.receives(at, v6(&router, PEER6).icmp(icmp6(3, 0, [0; 4], &arrived)));
            assert_eq!(gateway.last, Verdict::Forward, "{host} {at}");
            let sent = gateway.sent();
            assert_eq!((sent[9], sent[20], sent[21]), (1, 11, 0));
            assert_eq!(sent[44..48], address.parse::<Ipv4Addr>().unwrap().octets());
        }
    }
}

#[test]
fn a_frame_that_finds_the_ring_full_is_dropped_and_both_workers_account_for_it() {
    let mut gateway = stateful();
    let host = gateway.host(1, 0);
    let mut frame = Frame::holding(&v6(&host, SERVER6).udp(4_001, 53, b"question").octets());
    let engine = &mut gateway.engines[0];
    engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut Outbox::new(4));
    assert_eq!(frame.verdict, Verdict::HandOver(WorkerId(1)));
    engine.refused_handover(&mut frame);
    assert_eq!(frame.verdict, Verdict::Dropped(DropReason::HandoverFull));
    assert_eq!(engine.counters().dropped[DropReason::HandoverFull as usize], 1);
    assert!(engine.counters().frames_are_conserved());
}

#[test]
fn the_hop_limit_counts_one_hop_however_many_workers_a_packet_passes() {
    for at in 0..WORKERS {
        let mut gateway = stateful();
        let (caller, called) = (gateway.host(0, 0), gateway.host(1, 1));
        gateway.receives(at, v6(&called, SERVER6).udp(7_000, 53, b"register"));
        let (called4, port) = outside(&gateway.sent());
        gateway.receives(at, v6(&caller, &format!("64:ff9b::{called4}")).hops(2).udp(1, port, b"hello"));
        assert_eq!(gateway.sent()[7], 1);
    }
}

/// Two hosts that different workers own, and two remote hosts whose sessions without ports different workers own.
fn nat44_hosts() -> [[String; 2]; 2] {
    let address = |network: u8, n: u8| Ipv4Addr::new(network, 0, 0, n);
    let spread = Spread::new(EngineConfig::default().worker_key, 32);
    let of = |network| {
        [0, 1].map(|worker| {
            let place = |n: &u8| u128::from(address(network, *n).to_bits()) << 96;
            let n = (1..=255).find(|n| spread.worker(place(n), WORKERS as u8) == worker).unwrap();
            address(network, n).to_string()
        })
    };
    [of(10), of(198)]
}

#[test]
fn packets_without_ports_cross_wherever_they_arrive() {
    let sit = |from: &str, to: &str| v4(from, to).protocol(41, &[0x60; 60], None);
    for at in arrivals(4) {
        for (one, other) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut gateway = workers(|config| config.nat44.push(support::nat44()));
            let [hosts, remotes] = nat44_hosts();
            let (host, remote) = (&hosts[one], &remotes[other]);
            gateway.receives(at[0], sit(host, remote));
            assert_eq!(gateway.handed_over, usize::from(at[0] != other), "the remote host's worker has it");
            let (address, _) = outside(&gateway.sent());
            gateway.receives(at[1], sit(remote, &address));
            gateway.sends(sit(remote, host).hops(63));

            let seen = sit(&address, remote).octets();
            gateway.receives(at[2], v4("203.0.113.9", &address).icmp(icmp4(3, 1, [0; 4], &seen)));
            let quote = sit(host, remote).octets();
            gateway.sends(v4("203.0.113.9", host).hops(63).icmp(icmp4(3, 1, [0; 4], &quote)));
            let seen = sit(remote, host).octets();
            gateway.receives(at[3], v4(host, remote).icmp(icmp4(3, 1, [0; 4], &seen)));
            let quote = sit(remote, &address).octets();
            gateway.sends(v4(&address, remote).hops(63).icmp(icmp4(3, 1, [0; 4], &quote)));

            for (n, half) in halves(&sit(remote, &address), 9, 32, 60).into_iter().enumerate() {
                gateway.receives(at[n], half);
            }
            assert_eq!(gateway.sent()[16..20], host.parse::<Ipv4Addr>().unwrap().octets());
        }
    }
}

#[test]
fn a_host_has_one_outside_address_without_ports_whichever_worker_has_the_remote_host() {
    let gre = |from: &str, to: &str| v4(from, to).protocol(47, &[0, 0, 8, 0, 0, 0, 0, 0], None);
    let mut gateway = workers(|config| config.nat44.push(support::nat44()));
    let [hosts, remotes] = nat44_hosts();
    for host in &hosts {
        gateway.receives(0, v4(host, &remotes[0]).udp(4_001, 53, b"question"));
        gateway.sent();
        let addresses = remotes.each_ref().map(|remote| {
            gateway.receives(0, gre(host, remote));
            outside(&gateway.sent()).0
        });
        assert_eq!(addresses[0], addresses[1]);
    }
}

#[test]
fn a_static_binding_without_ports_is_every_workers_and_shown_once() {
    let mut gateway = workers(|config| {
        let mut nat44 = support::nat44();
        nat44.portless.bindings = vec![PortlessBinding {
            protocol: PortlessProtocol::Ipv6,
            inside: Inside("10.0.0.1".parse().unwrap()),
            outside: Outside("192.0.2.1".parse().unwrap()),
        }];
        config.nat44.push(nat44);
    });
    let [_, remotes] = nat44_hosts();
    for remote in &remotes {
        for at in 0..WORKERS {
            let packet = |to: &str| v4(remote, to).protocol(41, &[0x60; 60], None);
            gateway.receives(at, packet("192.0.2.1"));
            gateway.sends(packet("10.0.0.1").hops(63));
        }
    }
    let mut rows = Vec::new();
    for engine in &mut gateway.engines {
        let nat44 = engine.stateful().next().unwrap();
        assert_eq!(nat44.without_ports().bindings(0, 9, &mut rows), None);
    }
    assert_eq!(rows.len(), 1);
}

/// The worker of the remote host has the session of a tunnel behind the gateway's own NAT44, and makes its packets.
#[test]
fn a_tunnel_behind_our_own_nat_is_at_the_worker_of_its_remote_end() {
    let [_, remotes] = nat44_hosts();
    for (owner, remote) in remotes.iter().enumerate() {
        for at in 0..WORKERS {
            let mut gateway = workers(|config| {
                let mut nat44 = support::nat44();
                nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
                nat44.translate_own_tunnels = true;
                config.nat44.push(nat44);
                let (local, remote) = ("10.0.0.5".parse().unwrap(), remote.parse().ok());
                let tunnel = ConfiguredConfig { local, remote, ..support::configured() };
                config.tunnels.push(TunnelConfig::Configured(tunnel));
            });
            let out = v6("2001:db8:1::1", "2001:db8:7::1").udp(53, 4_000, b"query");
            gateway.receives(at, out.clone());
            assert_eq!(gateway.handed_over, usize::from(at != owner));
            let sent = gateway.sent();
            assert_eq!((&sent[12..16], &sent[20..]), (&[192, 0, 2, 1][..], &out.octets()[..]));
            let back = v6("2001:db8:7::1", "2001:db8:1::1").udp(4_000, 53, b"answer");
            gateway.receives(at, support::in_ipv4(remote, "192.0.2.1", back.clone()));
            assert_eq!(gateway.handed_over, usize::from(at != owner));
            gateway.sends(back);
            gateway.receives(at, v4("198.51.100.9", "192.0.2.1").icmp(icmp4(3, 1, [0; 4], &sent)));
            let told = gateway.sent();
            assert_eq!((told[40], told[41]), (1, 3), "{}", hex(&told));
            let mut rows = Vec::new();
            let nat44 = gateway.engines[owner].stateful().next().unwrap();
            nat44.without_ports().sessions(0, 9, gateway.now, &mut rows);
            assert_eq!(rows.len(), 1);
        }
    }
}
