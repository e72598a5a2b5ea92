//! One IPv4 address, whose ports are divided between translators: a NAT44 and a NAT64 behind 192.0.2.1.

use crate::support;
use crate::support::fast_path::MemoryFastPath;
use crate::support::{Build, checksum_is_right, hex, icmp4, icmp6, v4, v6};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::{
    Inside, NatProtocol, NotAdopted, Outside, PoolConfig, SavedSession, Selection, StaticBinding,
};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

const ADDRESS: &str = "192.0.2.1";
/// The same, as hosts behind the NAT64 see it.
const ADDRESS6: &str = "64:ff9b::192.0.2.1";
const HOST4: &str = "10.0.0.2";
const HOST6: &str = "2001:db8:1::2";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const OF_NAT44: RangeInclusive<u16> = 1_024..=32_767;
const OF_NAT64: RangeInclusive<u16> = 32_768..=65_535;

/// A gateway of one or more workers, and what it sent.
struct Machine {
    engines: Vec<Engine>,
    now: Instant,
    sent: Vec<Vec<u8>>,
    last: Verdict,
}

fn pool(ports: RangeInclusive<u16>) -> PoolConfig {
    PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![ports] }
}

fn divided(workers: u8, of_nat44: RangeInclusive<u16>, of_nat64: RangeInclusive<u16>) -> Machine {
    machine(workers, |config| {
        config.nat44[0].pool = pool(of_nat44.clone());
        config.nat64[0].pool = pool(of_nat64.clone());
    })
}

fn machine(workers: u8, edit: impl Fn(&mut EngineConfig)) -> Machine {
    let engine = |worker| {
        let mut config = EngineConfig {
            own4: Some("198.51.100.254".parse().unwrap()),
            own6: Some("2001:db8::fe".parse().unwrap()),
            nat44: vec![support::nat44()],
            nat64: vec![support::nat64()],
            worker: WorkerId(worker),
            workers,
            seed: [0x5eed, 0x1ab],
            ..EngineConfig::default()
        };
        config.nat44[0].pool = pool(OF_NAT44);
        config.nat64[0].pool = pool(OF_NAT64);
        edit(&mut config);
        Engine::new(&config).unwrap()
    };
    let engines = (0..workers).map(engine).collect();
    Machine { engines, now: Instant::from_secs(1_000), sent: Vec::new(), last: Verdict::Pending }
}

impl Machine {
    /// A packet comes in at the queue of a worker.
    #[track_caller]
    fn at(&mut self, worker: usize, packet: impl Into<Vec<u8>>) {
        let (mut frame, mut out) = (Frame::holding(&packet.into()), Outbox::new(64));
        self.engines[worker].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        self.follow(&mut frame);
        self.last = frame.verdict;
        out.frames().iter_mut().for_each(|frame| self.follow(frame));
        for engine in &self.engines {
            assert!(engine.counters().frames_are_conserved(), "{:?}", engine.counters());
        }
    }

    /// A frame goes from worker to worker until it leaves, or has another end.
    fn follow(&mut self, frame: &mut Frame) {
        for _ in 0..4 {
            let Verdict::HandOver(worker) = frame.verdict else { break };
            let mut out = Outbox::new(64);
            let engine = &mut self.engines[usize::from(worker.0)];
            engine.take_over(std::slice::from_mut(frame), self.now, &mut out);
            out.frames().iter_mut().for_each(|frame| self.follow(frame));
        }
        assert!(!matches!(frame.verdict, Verdict::HandOver(_)), "it goes in circles: {frame:?}");
        if frame.verdict.leaves() {
            self.sent.push(frame.bytes().to_vec());
        }
    }

    /// It comes at every worker's queue in turn; each time it is forwarded as this.
    #[track_caller]
    fn forwards(&mut self, packet: Build, expected: Build) {
        for worker in 0..self.engines.len() {
            self.at(worker, packet.clone());
            let sent = [self.sent(), expected.octets()].map(without_identification);
            assert_eq!(hex(&sent[0]), hex(&sent[1]), "at worker {worker}");
        }
    }

    #[track_caller]
    fn sent(&mut self) -> Vec<u8> {
        assert_eq!(self.sent.len(), 1, "{:?}: {:02x?}", self.last, self.sent);
        let sent = self.sent.remove(0);
        assert!(checksum_is_right(&sent), "{}", hex(&sent));
        sent
    }

    #[track_caller]
    fn refuses(&mut self, packet: impl Into<Vec<u8>>, reason: DropReason) {
        let packet = packet.into();
        for worker in 0..self.engines.len() {
            self.at(worker, packet.clone());
            assert_eq!(self.last, Verdict::Dropped(reason));
            // Its sender may be told.
            self.sent.clear();
        }
    }

    /// The NAT44 host asks the server by UDP; its outside port.
    #[track_caller]
    fn opens4(&mut self) -> u16 {
        self.at(0, v4(HOST4, SERVER).udp(4_001, 53, b"question"));
        outside(&self.sent(), OF_NAT44)
    }

    /// The NAT64 host does.
    #[track_caller]
    fn opens6(&mut self) -> u16 {
        self.opens6_in(OF_NAT64)
    }

    #[track_caller]
    fn opens6_in(&mut self, ports: RangeInclusive<u16>) -> u16 {
        self.at(0, v6(HOST6, SERVER6).udp(4_001, 53, b"question"));
        outside(&self.sent(), ports)
    }

    /// Sessions of the NAT64 and of the NAT44, of all workers.
    fn sessions(&mut self) -> (usize, usize) {
        let now = self.now;
        let count = |one: &mut dyn sixway_dataplane::stateful::Stateful| {
            let mut rows = Vec::new();
            one.sessions(0, 1 << 20, &Selection::default(), now, &mut rows);
            rows.len()
        };
        let all: Vec<Vec<usize>> =
            self.engines.iter_mut().map(|engine| engine.stateful().map(count).collect()).collect();
        (all.iter().map(|one| one[0]).sum(), all.iter().map(|one| one[1]).sum())
    }
}

/// A packet without what a translation from IPv6 chooses: the IPv4 identification and DF, and so the header's checksum.
fn without_identification(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[0] >> 4 == 4 {
        packet[4..8].fill(0);
        packet[10..12].fill(0);
    }
    packet
}

/// The outside port of an IPv4 packet of TCP or UDP that left, which is one of these.
#[track_caller]
fn outside(sent: &[u8], ports: RangeInclusive<u16>) -> u16 {
    assert_eq!(Ipv4Addr::from(<[u8; 4]>::try_from(&sent[12..16]).unwrap()).to_string(), ADDRESS);
    let port = u16::from_be_bytes([sent[20], sent[21]]);
    assert!(ports.contains(&port), "{port}");
    port
}

#[test]
fn answers_go_to_the_translator_that_has_the_port() {
    for workers in [1, 2] {
        let mut gateway = divided(workers, OF_NAT44, OF_NAT64);
        let (four, six) = (gateway.opens4(), gateway.opens6());
        gateway.forwards(
            v4(SERVER, ADDRESS).udp(53, four, b"answer"),
            v4(SERVER, HOST4).hops(63).udp(53, 4_001, b"answer"),
        );
        gateway.forwards(
            v4(SERVER, ADDRESS).udp(53, six, b"answer"),
            v6(SERVER6, HOST6).hops(63).udp(53, 4_001, b"answer"),
        );
        assert_eq!(gateway.sessions(), (1, 1));
    }
}

#[test]
fn a_batch_with_answers_for_both_is_cut_into_runs() {
    let mut gateway = divided(1, OF_NAT44, OF_NAT64);
    let (four, six) = (gateway.opens4(), gateway.opens6());
    let packets = [four, four, six, four, six, six, 80, four];
    let mut frames =
        packets.map(|port| Frame::holding(&v4(SERVER, ADDRESS).udp(53, port, b"answer").octets()));
    let mut out = Outbox::new(64);
    gateway.engines[0].process(&mut frames, gateway.now, &mut out);
    let to4 = v4(SERVER, HOST4).hops(63).udp(53, 4_001, b"answer").octets();
    let to6 = v6(SERVER6, HOST6).hops(63).udp(53, 4_001, b"answer").octets();
    for (port, frame) in packets.iter().zip(&frames) {
        match *port {
            80 => assert_eq!(frame.verdict, Verdict::Dropped(DropReason::NoBinding)),
            port if port == four => assert_eq!(hex(frame.bytes()), hex(&to4)),
            _ => assert_eq!(hex(frame.bytes()), hex(&to6)),
        }
    }
}

#[test]
fn echo_replies_go_by_their_identifier() {
    for workers in [1, 2] {
        let mut gateway = divided(workers, OF_NAT44, OF_NAT64);
        let identifier = |sent: &[u8]| u16::from_be_bytes([sent[24], sent[25]]);
        gateway.at(0, v4(HOST4, SERVER).echo(7, 1, b"ping"));
        let four = identifier(&gateway.sent());
        gateway.at(0, v6(HOST6, SERVER6).echo(7, 1, b"ping"));
        let six = identifier(&gateway.sent());
        assert!(OF_NAT44.contains(&four) && OF_NAT64.contains(&six), "{four} {six}");
        gateway.forwards(
            v4(SERVER, ADDRESS).echo_reply(four, 1, b"ping"),
            v4(SERVER, HOST4).hops(63).echo_reply(7, 1, b"ping"),
        );
        gateway.forwards(
            v4(SERVER, ADDRESS).echo_reply(six, 1, b"ping"),
            v6(SERVER6, HOST6).hops(63).echo_reply(7, 1, b"ping"),
        );
    }
}

#[test]
fn errors_go_to_the_translator_of_what_they_quote() {
    for workers in [1, 2] {
        let mut gateway = divided(workers, OF_NAT44, OF_NAT64);
        let (four, six) = (gateway.opens4(), gateway.opens6());
        // The second one has an address that inside hosts have, too.
        for router in ["198.18.0.1", "10.9.9.9"] {
            gateway.errors_come(router, four, six);
        }
    }
}

impl Machine {
    /// Errors of a router outside about the packets of both.
    #[track_caller]
    fn errors_come(&mut self, router: &str, four: u16, six: u16) {
        let gateway = self;
        let about = |port| v4(ADDRESS, SERVER).hops(60).udp(port, 53, b"question").octets();
        let error = |port| v4(router, ADDRESS).icmp(icmp4(3, 1, [0; 4], &about(port)));
        gateway.forwards(
            error(four),
            v4(router, HOST4).hops(63).icmp(icmp4(
                3,
                1,
                [0; 4],
                &v4(HOST4, SERVER).hops(60).udp(4_001, 53, b"question").octets(),
            )),
        );
        for worker in 0..gateway.engines.len() {
            gateway.at(worker, error(six));
            let sent = gateway.sent();
            assert_eq!((sent[6], sent[40], sent[41]), (58, 1, 0), "no route to destination: {}", hex(&sent));
            assert_eq!(Ipv6Addr::from(<[u8; 16]>::try_from(&sent[24..40]).unwrap()).to_string(), HOST6);
        }
        gateway.refuses(error(80), DropReason::NoSessionForError);
        let quote = &about(four)[..21];
        gateway.refuses(v4(router, ADDRESS).icmp(icmp4(3, 1, [0; 4], quote)), DropReason::QuoteUnusable);
    }
}

#[test]
fn fragments_wait_for_their_packet_and_then_go_by_its_port() {
    for workers in [1, 2] {
        let mut gateway = divided(workers, OF_NAT44, OF_NAT64);
        let (four, six) = (gateway.opens4(), gateway.opens6());
        let data = [7; 2_000];
        let whole = |port| v4(SERVER, ADDRESS).may_fragment().udp(53, port, &data);
        for (port, last_first) in [(four, false), (six, false), (four, true), (six, true)] {
            let first = whole(port).part(0, 1_000).fragment(0x77, 0, true);
            let last = whole(port).part(1_000, 2_008).fragment(0x77, 1_000, false);
            let (one, other) = if last_first { (last, first) } else { (first, last) };
            gateway.at(0, one);
            assert_eq!((gateway.last, gateway.sent.len()), (Verdict::Held, 0));
            gateway.at(usize::from(workers) - 1, other);
            let all = std::mem::take(&mut gateway.sent);
            let octets: usize = all.iter().map(|sent| sent.iter().filter(|octet| **octet == 7).count()).sum();
            assert!(octets >= 2_000, "{octets}");
            let version = if port == four { 4 } else { 6 };
            assert!(all.iter().all(|sent| sent[0] >> 4 == version), "{all:02x?}");
        }
    }
}

#[test]
fn a_fragment_that_nobodys_session_could_need_is_not_held() {
    let mut gateway = divided(1, OF_NAT44, OF_NAT64);
    let fragment = v4(SERVER, ADDRESS).may_fragment().udp(53, 40_000, &[7; 2_000]);
    let fragment = fragment.part(0, 1_000).fragment(0x77, 0, true);
    gateway.refuses(fragment.clone(), DropReason::NoBinding);
    // With a session of the other translator alone it may be for that one.
    gateway.opens6();
    gateway.at(0, fragment);
    assert_eq!(gateway.last, Verdict::Held);
}

#[test]
fn ports_of_nobody_have_no_binding() {
    for workers in [1, 2] {
        let mut gateway = divided(workers, 1_024..=2_047, 61_000..=61_999);
        gateway.opens6_in(61_000..=61_999);
        for port in [0, 22, 1_023, 2_048, 60_999, 62_000, 65_535] {
            gateway.refuses(v4(SERVER, ADDRESS).udp(53, port, b"hello"), DropReason::NoBinding);
            gateway.refuses(v4(SERVER, ADDRESS).tcp(53, port, 0x10, b""), DropReason::NoSession);
        }
        gateway.refuses(v4(SERVER, ADDRESS).udp(53, 1_500, b"hello"), DropReason::NoBinding);
    }
}

#[test]
fn a_syn_to_a_port_of_nobody_waits_as_one_to_a_port_without_a_binding() {
    for port in [22, 1_500, 62_000] {
        let mut gateway = divided(1, 1_024..=2_047, 61_000..=61_999);
        gateway.at(0, v4(SERVER, ADDRESS).tcp(53, port, 2, b""));
        // RFC 5382 REQ-4: no answer for 6 s.
        assert_eq!((gateway.last, gateway.sent.len()), (Verdict::Held, 0), "port {port}");
        gateway.refuses(v4(SERVER, ADDRESS).tcp(53, port, 2, b""), DropReason::SynAwaitsInside);
    }
}

#[test]
fn protocols_without_ports_go_to_the_one_that_has_them() {
    let gre = |source: &str, destination: &str| {
        v4(source, destination).protocol(47, &[0, 0, 8, 0, 1, 2, 3, 4], None)
    };
    let mut gateway = divided(1, OF_NAT44, OF_NAT64);
    gateway.at(0, gre(HOST4, SERVER));
    assert_eq!(gateway.sent()[12..20], [192, 0, 2, 1, 203, 0, 113, 2]);
    gateway.forwards(gre(SERVER, ADDRESS), gre(SERVER, HOST4).hops(63));
    // What none of them passes, none passes.
    gateway.refuses(v4(SERVER, ADDRESS).protocol(132, &[0; 12], None), DropReason::ProtocolUnsupported);
}

#[test]
fn an_error_about_a_packet_without_ports_goes_there_too() {
    let gre = |source: &str, destination: &str| {
        v4(source, destination).hops(60).protocol(47, &[0, 0, 8, 0, 1, 2, 3, 4], None)
    };
    let mut gateway = divided(1, OF_NAT44, OF_NAT64);
    gateway.at(0, gre(HOST4, SERVER));
    gateway.sent();
    let error = |to: &str, quoted: Build| v4("198.18.0.1", to).icmp(icmp4(3, 1, [0; 4], &quoted.octets()));
    gateway.forwards(error(ADDRESS, gre(ADDRESS, SERVER)), error(HOST4, gre(HOST4, SERVER)).hops(63));
}

/// A static binding for each host: others inside reach them by the address.
fn with_doors(workers: u8) -> Machine {
    machine(workers, |config| {
        let outside = |port| Outside(Endpoint4::new(ADDRESS.parse().unwrap(), port));
        config.nat44[0].static_bindings.push(StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint4::new(HOST4.parse().unwrap(), 80)),
            outside: outside(8_080),
        });
        config.nat64[0].static_bindings.push(StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new(HOST6.parse().unwrap(), 80)),
            outside: outside(48_080),
        });
    })
}

#[test]
fn hosts_of_both_reach_one_another_by_the_address() {
    for workers in [1, 2] {
        let mut gateway = with_doors(workers);
        // From the NAT44 host to the NAT64 host, and back.
        gateway.at(0, v4(HOST4, ADDRESS).udp(4_001, 48_080, b"hello"));
        let sent = gateway.sent();
        let port = u16::from_be_bytes([sent[40], sent[41]]);
        assert!(OF_NAT44.contains(&port), "{port}");
        assert_eq!(hex(&sent), hex(&v6(ADDRESS6, HOST6).hops(63).udp(port, 80, b"hello").octets()));
        gateway.forwards(
            v6(HOST6, ADDRESS6).udp(80, port, b"yes"),
            v4(ADDRESS, HOST4).hops(63).udp(48_080, 4_001, b"yes"),
        );
        // From the NAT64 host to the NAT44 host, and back.
        gateway.at(0, v6(HOST6, ADDRESS6).udp(4_002, 8_080, b"hello"));
        let sent = gateway.sent();
        let port = u16::from_be_bytes([sent[20], sent[21]]);
        assert!(OF_NAT64.contains(&port), "{port}");
        let expected = v4(ADDRESS, HOST4).hops(63).udp(port, 80, b"hello").octets();
        let both = [sent, expected].map(without_identification);
        assert_eq!(hex(&both[0]), hex(&both[1]));
        gateway.forwards(
            v4(HOST4, ADDRESS).udp(80, port, b"yes"),
            v6(ADDRESS6, HOST6).hops(63).udp(8_080, 4_002, b"yes"),
        );
        // An error of either about what came from the other.
        let quoted = v4(ADDRESS, HOST4).hops(60).udp(port, 80, b"hello").octets();
        for worker in 0..usize::from(workers) {
            gateway.at(worker, v4(HOST4, ADDRESS).icmp(icmp4(3, 3, [0; 4], &quoted)));
            let sent = gateway.sent();
            assert_eq!((sent[0] >> 4, sent[40], sent[41]), (6, 1, 4), "port unreachable: {}", hex(&sent));
            assert_eq!(Ipv6Addr::from(<[u8; 16]>::try_from(&sent[24..40]).unwrap()).to_string(), HOST6);
        }
        let quoted = v6(ADDRESS6, HOST6).hops(60).udp(8_080, 4_002, b"yes").octets();
        for worker in 0..usize::from(workers) {
            gateway.at(worker, v6(HOST6, ADDRESS6).icmp(icmp6(1, 4, [0; 4], &quoted)));
            let sent = gateway.sent();
            assert_eq!((sent[0] >> 4, sent[20], sent[21]), (4, 3, 3), "port unreachable: {}", hex(&sent));
            assert_eq!(Ipv4Addr::from(<[u8; 4]>::try_from(&sent[16..20]).unwrap()).to_string(), HOST4);
        }
    }
}

#[test]
fn nobody_outside_sends_with_the_address_as_source() {
    let mut gateway = with_doors(1);
    for port in [8_080, 48_080] {
        gateway.refuses(v4(ADDRESS, ADDRESS).udp(4_001, port, b"hello"), DropReason::SourceInPool);
    }
}

#[test]
fn an_address_of_one_of_them_alone_has_all_its_ports_there() {
    let mut gateway = machine(1, |config| {
        config.nat44[0].pool.addresses.push("192.0.2.2/32".parse().unwrap());
        config.nat44[0].static_bindings.push(StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint4::new(HOST4.parse().unwrap(), 80)),
            outside: Outside(Endpoint4::new("192.0.2.2".parse().unwrap(), 40_000)),
        });
    });
    gateway.forwards(
        v4(SERVER, "192.0.2.2").udp(53, 40_000, b"hello"),
        v4(SERVER, HOST4).hops(63).udp(53, 80, b"hello"),
    );
}

fn export(machine: &mut Machine) -> Vec<(Identity, SavedSession)> {
    let mut all = Vec::new();
    for engine in &mut machine.engines {
        for translator in engine.stateful() {
            let mut saved = Vec::new();
            assert_eq!(translator.export(0, u32::MAX, machine.now, &mut saved), None);
            all.extend(saved.into_iter().map(|one| (translator.identity(), one)));
        }
    }
    all
}

/// Restores sessions; how many, and why others were not.
fn restore(machine: &mut Machine, sessions: &[(Identity, SavedSession)]) -> (usize, Vec<NotAdopted>) {
    for identity in [Identity::of_nat44(), Identity::of_nat64("64:ff9b::/96".parse().unwrap())] {
        let its = sessions.iter().filter(|(of, _)| *of == identity);
        let ends = its.map(|(_, one)| (one.inside, one.protocol, one.outside));
        Engine::unite(&mut machine.engines, identity, ends);
    }
    let (mut restored, mut refused) = (0, Vec::new());
    for (identity, session) in sessions {
        let outcomes = machine.engines.iter_mut().map(|engine| {
            let (translator, counters) = engine.stateful_of(*identity, session.outside.0).unwrap();
            translator.restore(session, machine.now, counters)
        });
        match outcomes.into_iter().find(|outcome| *outcome != Err(NotAdopted::OtherWorker)) {
            Some(Ok(())) => restored += 1,
            other => refused.push(other.map_or(NotAdopted::OtherWorker, |why| why.unwrap_err())),
        }
    }
    (restored, refused)
}

#[test]
fn a_range_that_moves_to_the_other_pool_ends_its_sessions_alone() {
    for workers in [1, 2] {
        let mut old = divided(workers, OF_NAT44, OF_NAT64);
        for host in 1..=64 {
            old.at(0, v4(&format!("10.0.{host}.1"), SERVER).udp(4_001, 53, b"question"));
            outside(&old.sent(), OF_NAT44);
            old.at(0, v6(&format!("2001:db8:{host}::1"), SERVER6).udp(4_001, 53, b"question"));
            outside(&old.sent(), OF_NAT64);
        }
        let saved = export(&mut old);
        assert_eq!(saved.len(), 128);
        let (mut new, mut same) =
            (divided(workers, 1_024..=16_383, 16_384..=65_535), divided(workers, OF_NAT44, OF_NAT64));
        assert_eq!(restore(&mut same, &saved), (128, Vec::new()));
        let moved = saved.iter().filter(|(_, one)| (16_384..32_768).contains(&one.outside.0.port)).count();
        assert!(moved > 8, "{moved}");
        let (kept, ended) = restore(&mut new, &saved);
        assert_eq!((kept, ended.len()), (128 - moved, moved), "{ended:?}");
        assert!(workers == 2 || ended.iter().all(|why| *why == NotAdopted::PortNotGiven), "{ended:?}");
        for (identity, one) in &saved {
            let answer = v4(SERVER, ADDRESS).udp(53, one.outside.0.port, b"answer");
            if (16_384..32_768).contains(&one.outside.0.port) {
                new.refuses(answer, DropReason::NoBinding);
            } else {
                new.at(0, answer);
                let version = if *identity == Identity::of_nat44() { 4 } else { 6 };
                assert_eq!(new.sent()[0] >> 4, version);
            }
        }
    }
}

#[test]
fn a_port_that_was_given_before_waits_at_whoever_has_it_now() {
    let mut gateway = divided(1, OF_NAT44, OF_NAT64);
    let until = gateway.now + Duration::from_secs(120);
    for port in [2_000, 40_000] {
        let outside = Outside(Endpoint4::new(ADDRESS.parse().unwrap(), port));
        assert!(gateway.engines[0].quarantine(NatProtocol::Udp, outside, until));
    }
    let quarantined: Vec<_> = gateway.engines[0].stateful().map(|one| one.quarantined()).collect();
    assert_eq!(quarantined, [1, 1]);
}

#[test]
fn sessions_of_both_are_in_the_fast_path() {
    let mut gateway = divided(1, OF_NAT44, OF_NAT64);
    let fast_path = MemoryFastPath::new(8);
    gateway.engines[0].set_fast_path(Box::new(fast_path.clone()), 2);
    let (four, six) = (gateway.opens4(), gateway.opens6());
    for _ in 0..8 {
        for packet in [
            v4(HOST4, SERVER).udp(4_001, 53, b"more"),
            v6(HOST6, SERVER6).udp(4_001, 53, b"more"),
            v4(SERVER, ADDRESS).udp(53, four, b"more"),
            v4(SERVER, ADDRESS).udp(53, six, b"more"),
        ] {
            gateway.at(0, packet);
            gateway.sent();
        }
        gateway.engines[0].emptied(gateway.now);
        gateway.engines[0].settle(gateway.now);
    }
    assert_eq!(fast_path.len(), 2);
}

#[test]
fn two_realms_may_divide_an_address() {
    // The second NAT44 takes no protocols without ports: the first has them.
    let mut gateway = machine(1, |config| {
        let mut other = support::nat44();
        other.inside = vec!["172.16.0.0/12".parse().unwrap()];
        other.pool = pool(40_000..=50_000);
        other.portless.sessions = 0;
        config.nat44.push(other);
        config.nat64[0].pool = pool(50_001..=65_535);
    });
    gateway.at(0, v4("172.16.0.1", SERVER).udp(4_001, 53, b"question"));
    let port = outside(&gateway.sent(), 40_000..=50_000);
    gateway.forwards(
        v4(SERVER, ADDRESS).udp(53, port, b"answer"),
        v4(SERVER, "172.16.0.1").hops(63).udp(53, 4_001, b"answer"),
    );
    // Translators of one identity are distinguished by the port.
    for (port, index) in [(2_000, 1), (45_000, 2)] {
        let outside = Endpoint4::new(ADDRESS.parse().unwrap(), port);
        let engine = &mut gateway.engines[0];
        let found: *const () =
            std::ptr::from_ref(engine.stateful_of(Identity::of_nat44(), outside).unwrap().0).cast();
        let expected: *const () = std::ptr::from_ref(engine.stateful_at(index).unwrap().0).cast();
        assert_eq!(found, expected, "{port}");
    }
}
