//! Realms of NAT44 (RFC 6888 REQ-2): hosts with the same addresses behind different devices.

use crate::support;
use crate::support::fast_path::MemoryFastPath;
use crate::support::{Build, icmp4, v4};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::fragment::FragmentLimits;
use sixway_dataplane::frame::{Ingress, Realm};
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{NatProtocol, PoolConfig, Selection, TCP_EST};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use std::net::Ipv4Addr;
use std::time::Duration;

const OUTSIDE: u16 = 0;
const RED: u16 = 1;
const BLUE: u16 = 2;
const HOST: &str = "10.0.0.2";
const OTHER: &str = "10.0.0.3";
const SERVER: &str = "203.0.113.2";
const MAIN_POOL: &str = "192.0.2.0";
const RED_POOL: &str = "198.51.100.1";
const BLUE_POOL: &str = "198.51.100.2";
const OWN: &str = "192.0.2.254";
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A gateway of one or more workers, and what leaves it by which device.
struct Machine {
    engines: Vec<Engine>,
    now: Instant,
    sent: Vec<(u16, Vec<u8>)>,
    last: Verdict,
}

fn realm(number: u16, name: &str, pool: &str) -> Nat44Config {
    let pool = PoolConfig { addresses: vec![format!("{pool}/32").parse().unwrap()], ports: vec![1..=65_535] };
    let config = support::nat44();
    Nat44Config { realm: Realm(number), identity: Identity::of_realm(name), pool, ..config }
}

/// A main NAT44 and two realms, all with 10.0.0.0/8 inside.
fn machine(workers: u8, edit: impl Fn(&mut EngineConfig)) -> Machine {
    let engine = |worker| {
        let mut config = EngineConfig {
            own4: Some(OWN.parse().unwrap()),
            nat44: vec![support::nat44(), realm(RED, "red", RED_POOL), realm(BLUE, "blue", BLUE_POOL)],
            worker: WorkerId(worker),
            workers,
            seed: [0x5eed, 0x1ab],
            ..EngineConfig::default()
        };
        edit(&mut config);
        Engine::new(&config).unwrap()
    };
    let engines = (0..workers).map(engine).collect();
    Machine { engines, now: Instant::from_secs(1_000), sent: Vec::new(), last: Verdict::Pending }
}

fn gateway() -> Machine {
    machine(1, |_| {})
}

impl Machine {
    /// A packet comes by the device of a realm, at the queue of a worker.
    fn at(&mut self, worker: usize, realm: u16, packet: impl Into<Vec<u8>>) {
        let mut frame = Frame::holding(&packet.into());
        frame.ingress = Ingress::Device(Realm(realm));
        let (mut out, mut steps) = (Outbox::new(64), 0);
        self.engines[worker].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        while let Verdict::HandOver(worker) = frame.verdict {
            steps += 1;
            assert!(steps < 4, "it goes in circles: {frame:?}");
            let worker = usize::from(worker.0);
            self.engines[worker].take_over(std::slice::from_mut(&mut frame), self.now, &mut out);
        }
        self.last = frame.verdict;
        if frame.verdict.leaves() {
            self.sent.push((frame.realm().0, frame.bytes().to_vec()));
        }
        self.collect(out);
    }

    fn collect(&mut self, mut out: Outbox) {
        for frame in out.frames() {
            let mut out = Outbox::new(8);
            if let Verdict::HandOver(worker) = frame.verdict {
                let worker = usize::from(worker.0);
                self.engines[worker].take_over(std::slice::from_mut(frame), self.now, &mut out);
            }
            assert!(frame.verdict.leaves(), "{frame:?}");
            self.sent.push((frame.realm().0, frame.bytes().to_vec()));
        }
    }

    fn receives(&mut self, realm: u16, packet: impl Into<Vec<u8>>) {
        self.at(0, realm, packet);
    }

    /// The only packet that was sent, and the realm by whose device.
    #[track_caller]
    fn sent(&mut self) -> (u16, Vec<u8>) {
        assert_eq!(self.sent.len(), 1, "{:?}: {:02x?}", self.last, self.sent);
        self.sent.remove(0)
    }

    #[track_caller]
    fn sends(&mut self, realm: u16, packet: Build) {
        assert_eq!(self.sent(), (realm, packet.octets()));
    }

    #[track_caller]
    fn drops(&mut self, reason: DropReason) {
        assert_eq!((self.last, self.sent.len()), (Verdict::Dropped(reason), 0));
    }

    /// A host sends a datagram to the server; its outside endpoint.
    #[track_caller]
    fn opened(&mut self, realm: u16) -> (String, u16) {
        self.receives(realm, v4(HOST, SERVER).udp(4_001, 53, b"question"));
        let (device, sent) = self.sent();
        assert_eq!(device, OUTSIDE);
        (source(&sent), port(&sent))
    }

    fn tick(&mut self) {
        for worker in 0..self.engines.len() {
            let mut out = Outbox::new(64);
            self.engines[worker].tick(self.now, &mut out);
            self.collect(out);
        }
    }
}

fn source(packet: &[u8]) -> String {
    Ipv4Addr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap()).to_string()
}

fn destination(packet: &[u8]) -> String {
    Ipv4Addr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap()).to_string()
}

fn port(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[20], packet[21]])
}

#[test]
fn hosts_with_the_same_address_have_outside_addresses_of_their_realms() {
    for workers in [1, 2, 3] {
        let mut gateway = machine(workers, |_| {});
        let mut outside = Vec::new();
        for worker in 0..usize::from(workers) {
            for realm in [OUTSIDE, RED, BLUE] {
                gateway.at(worker, realm, v4(HOST, SERVER).udp(4_001, 53, b"question"));
                let (device, sent) = gateway.sent();
                assert_eq!((device, destination(&sent)), (OUTSIDE, SERVER.into()));
                outside.push((realm, source(&sent), port(&sent)));
            }
        }
        outside.sort();
        outside.dedup();
        assert_eq!(outside.len(), 3, "{workers}: {outside:?}");
        assert_eq!((&*outside[1].1, &*outside[2].1), (RED_POOL, BLUE_POOL));
        for worker in 0..usize::from(workers) {
            for (realm, address, port) in &outside {
                gateway.at(worker, OUTSIDE, v4(SERVER, address).udp(53, *port, b"answer"));
                gateway.sends(*realm, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer"));
            }
        }
    }
}

#[test]
fn a_batch_for_several_realms_is_sorted_by_device() {
    let mut gateway = gateway();
    let outside = [OUTSIDE, RED, BLUE].map(|realm| gateway.opened(realm));
    let packets =
        outside.iter().chain(&outside).map(|(address, port)| v4(SERVER, address).udp(53, *port, b"x"));
    let mut frames: Vec<Frame> = packets.map(|packet| Frame::holding(&packet.octets())).collect();
    gateway.engines[0].process(&mut frames, gateway.now, &mut Outbox::new(8));
    let left: Vec<_> =
        frames.iter().map(|frame| (frame.verdict, frame.realm().0, destination(frame.bytes()))).collect();
    let expected = [OUTSIDE, RED, BLUE].map(|realm| (Verdict::Forward, realm, HOST.to_owned()));
    assert_eq!(left, [expected.clone(), expected].concat());
}

#[test]
fn only_the_device_of_a_realm_brings_packets_of_its_hosts() {
    let mut gateway = gateway();
    let (red, red_port) = gateway.opened(RED);
    // From outside and from other realms, to the pool of the realm.
    gateway.receives(OUTSIDE, v4("10.0.0.9", &red).udp(53, red_port, b""));
    assert_eq!(
        (gateway.last, gateway.sent().0),
        (Verdict::Forward, OUTSIDE),
        "the main NAT44 has such hosts"
    );
    let mut gateway = machine(1, |config| {
        config.nat44.remove(0);
    });
    let (red, red_port) = gateway.opened(RED);
    gateway.receives(OUTSIDE, v4(HOST, &red).udp(4_001, red_port, b""));
    gateway.drops(DropReason::MartianSource);
    gateway.receives(OUTSIDE, v4(HOST, SERVER).udp(4_001, 53, b""));
    assert!(matches!(gateway.last, Verdict::Dropped(_)));
    gateway.sent.clear();
    // From a realm with another source.
    gateway.receives(BLUE, v4(SERVER, &red).udp(53, red_port, b""));
    gateway.drops(DropReason::SourceNotInside);
    gateway.receives(BLUE, v4(&red, SERVER).udp(red_port, 53, b""));
    gateway.drops(DropReason::SourceNotInside);
    // The session is as it was.
    gateway.receives(OUTSIDE, v4(SERVER, &red).udp(53, red_port, b"answer"));
    gateway.sends(RED, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer"));
}

#[test]
fn the_same_five_tuple_is_a_session_in_each_realm_and_ends_in_one() {
    let mut gateway = gateway();
    for realm in [RED, BLUE] {
        gateway.opened(realm);
    }
    let counts = |gateway: &mut Machine| -> Vec<(Identity, usize)> {
        let now = gateway.now;
        let engine = &mut gateway.engines[0];
        let count = |one: &mut dyn sixway_dataplane::stateful::Stateful| {
            let mut rows = Vec::new();
            one.sessions(0, 1 << 20, &Selection::default(), now, &mut rows);
            (one.identity(), rows.len())
        };
        engine.stateful().map(count).collect()
    };
    let [main, red, blue] = [Identity::of_nat44(), Identity::of_realm("red"), Identity::of_realm("blue")];
    assert_eq!(counts(&mut gateway), [(main, 0), (red, 1), (blue, 1)]);
    let (translator, counters) = gateway.engines[0].stateful_at(1).unwrap();
    let inside = sixway_wire::Endpoint6::new(HOST.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped(), 4_001);
    let remote = sixway_wire::Endpoint4::new(SERVER.parse().unwrap(), 53);
    let inside = sixway_dataplane::nat::Inside(inside);
    assert!(translator.end_session(NatProtocol::Udp, inside.into(), remote, counters));
    assert_eq!(counts(&mut gateway), [(main, 0), (red, 0), (blue, 1)]);
    let (index, _) = [main, red, blue].iter().enumerate().find(|(_, it)| **it == blue).unwrap();
    let outside = sixway_wire::Endpoint4::new(BLUE_POOL.parse().unwrap(), 4_001);
    let of = gateway.engines[0].stateful_of(blue, outside).unwrap().0.identity();
    assert_eq!((index, of), (2, blue));
    // The address went to another realm: a session of the old one is not the new one's.
    assert!(gateway.engines[0].stateful_of(Identity::of_realm("green"), outside).is_none());
}

#[test]
fn hosts_of_two_realms_reach_each_other_by_outside_addresses_only() {
    let mut gateway = gateway();
    let (blue, blue_port) = gateway.opened(BLUE);
    gateway.receives(RED, v4(HOST, &blue).udp(5_000, blue_port, b"hello"));
    let (device, sent) = gateway.sent();
    assert_eq!((device, source(&sent), destination(&sent)), (OUTSIDE, RED_POOL.into(), blue.clone()));
    // The kernel routes the pool into the device.
    gateway.receives(OUTSIDE, sent.clone());
    gateway.sends(BLUE, v4(RED_POOL, HOST).hops(62).udp(port(&sent), 4_001, b"hello"));
}

#[test]
fn a_hairpin_of_a_realm_comes_back_by_its_device_and_so_do_errors_about_it() {
    for (workers, first) in [(1, 0), (2, 0), (2, 1)] {
        let mut gateway = machine(workers, |_| {});
        gateway.at(first, RED, v4(OTHER, SERVER).udp(80, 53, b""));
        let (_, sent) = gateway.sent();
        let (outside, door) = (source(&sent), port(&sent));
        gateway.at(first, RED, v4(HOST, &outside).udp(5_000, door, b"hello"));
        let (device, sent) = gateway.sent();
        assert_eq!((device, source(&sent), destination(&sent)), (RED, RED_POOL.into(), OTHER.into()));
        // To a port that nobody has: the error goes to the host.
        gateway.at(first, RED, v4(HOST, &outside).udp(5_000, door ^ 1, b"hello"));
        let (device, error) = gateway.sent();
        assert_eq!((device, destination(&error), error[20]), (RED, HOST.into(), 3), "{workers}");
    }
}

#[test]
fn errors_and_echo_replies_go_by_the_device_of_the_sender() {
    let mut gateway = gateway();
    gateway.receives(BLUE, v4(HOST, SERVER).hops(1).udp(4_001, 53, b""));
    let (device, error) = gateway.sent();
    assert_eq!((device, destination(&error), error[20]), (BLUE, HOST.into(), 11));
    gateway.receives(RED, v4(HOST, OWN).echo(1, 1, b"ping"));
    let (device, reply) = gateway.sent();
    assert_eq!((device, destination(&reply), reply[20]), (RED, HOST.into(), 0));
    // A reply in fragments.
    gateway.receives(RED, v4(HOST, OWN).may_fragment().echo(1, 1, &[7; 3_000]));
    let devices: Vec<u16> = std::mem::take(&mut gateway.sent).into_iter().map(|(device, _)| device).collect();
    assert_eq!(devices, [RED; 3]);
    // A path that is too narrow outside, reported to the host.
    let (blue, blue_port) = gateway.opened(BLUE);
    let quote = v4(&blue, SERVER).hops(60).udp(blue_port, 53, b"question").octets();
    let message = icmp4(3, 4, [0, 0, 5, 0], &quote);
    gateway.receives(OUTSIDE, v4("203.0.113.99", &blue).icmp(message));
    let (device, error) = gateway.sent();
    assert_eq!((device, source(&error), destination(&error)), (BLUE, "203.0.113.99".into(), HOST.into()));
    assert_eq!(destination(&error[28..]), SERVER);
    assert_eq!(source(&error[28..]), HOST);
}

#[test]
fn errors_are_about_packets_that_the_device_could_have_brought() {
    let mut gateway = machine(1, |config| {
        config.nat44.remove(0);
    });
    let (red, red_port) = gateway.opened(RED);
    let answer = v4(SERVER, HOST).udp(53, 4_001, b"answer").octets();
    let about_inside = icmp4(3, 3, [0; 4], &answer);
    let question = v4(&red, SERVER).udp(red_port, 53, b"question").octets();
    let about_outside = icmp4(3, 3, [0; 4], &question);
    // From outside, about a packet to a host inside.
    gateway.receives(OUTSIDE, v4(SERVER, &red).icmp(about_inside.clone()));
    gateway.drops(DropReason::NoSessionForError);
    // From another realm, whose host of that address has no such session.
    gateway.receives(BLUE, v4(HOST, SERVER).icmp(about_inside.clone()));
    gateway.drops(DropReason::NoSessionForError);
    // From inside, about a packet that went out.
    for realm in [RED, BLUE] {
        gateway.receives(realm, v4(OTHER, &red).icmp(about_outside.clone()));
        gateway.drops(DropReason::NoSessionForError);
    }
    // From a router inside with an address of its own.
    gateway.receives(RED, v4("172.16.0.1", SERVER).icmp(about_inside.clone()));
    let (device, error) = gateway.sent();
    assert_eq!((device, source(&error), destination(&error)), (OUTSIDE, red, SERVER.into()));
}

#[test]
fn fragments_of_two_realms_are_not_joined() {
    let parts = |data: &[u8]| {
        let whole = v4(HOST, SERVER).may_fragment().udp(4_001, 53, data).octets();
        let piece = |range: std::ops::Range<usize>, more| {
            let offset = range.start as u16;
            v4(HOST, SERVER)
                .may_fragment()
                .protocol(17, &whole[20..][range], None)
                .fragment(77, offset, more)
                .octets()
        };
        [piece(0..800, true), piece(800..whole.len() - 20, false)]
    };
    for workers in [1, 2] {
        let mut gateway = machine(workers, |_| {});
        let [red_first, _] = parts(&[1; 1_000]);
        let [blue_first, blue_last] = parts(&[2; 1_000]);
        gateway.receives(RED, red_first);
        gateway.receives(BLUE, blue_last);
        assert_eq!((gateway.last, gateway.sent.len()), (Verdict::Held, 0));
        gateway.receives(BLUE, blue_first);
        let sent = std::mem::take(&mut gateway.sent);
        assert!(sent.iter().all(|(device, packet)| (*device, source(packet)) == (OUTSIDE, BLUE_POOL.into())));
        let octets: usize = sent.iter().map(|(_, packet)| packet.len() - 20).sum();
        assert_eq!(octets, 1_008);
        assert!(sent.iter().all(|(_, packet)| packet[40..].iter().all(|octet| *octet == 2)));
        // The others have expired: their host gets an error.
        gateway.now = gateway.now + Duration::from_secs(60);
        gateway.tick();
        let (device, error) = gateway.sent();
        assert_eq!((device, destination(&error), error[20]), (RED, HOST.into(), 11));
        assert_eq!(error[21], 1);
    }
}

#[test]
fn a_flood_of_fragments_in_one_realm_leaves_another_its_part() {
    let mut gateway = machine(1, |config| {
        config.fragments = FragmentLimits { packets: 40, packets_per_source: 20, ..config.fragments };
    });
    let fragment = |host: &str, identification| {
        let data = [0; 800];
        v4(host, SERVER).may_fragment().protocol(17, &data, None).fragment(identification, 0, true)
    };
    for host in 0..40_u32 {
        gateway.receives(RED, fragment(&format!("10.0.1.{host}"), 1));
    }
    gateway.drops(DropReason::FragmentMemory);
    for identification in 0..20 {
        gateway.receives(BLUE, fragment(HOST, identification));
        assert_eq!(gateway.last, Verdict::Held);
    }
}

#[test]
fn probes_of_silent_connections_go_to_the_host_of_the_realm() {
    let mut gateway = gateway();
    gateway.receives(BLUE, v4(HOST, SERVER).tcp(4_001, 443, SYN, b""));
    let (_, sent) = gateway.sent();
    gateway.receives(OUTSIDE, v4(SERVER, BLUE_POOL).tcp(443, port(&sent), SYN | ACK, b""));
    gateway.receives(BLUE, v4(HOST, SERVER).tcp(4_001, 443, ACK, b""));
    gateway.sent.clear();
    gateway.now = gateway.now + TCP_EST + Duration::from_secs(2);
    while gateway.sent.is_empty() {
        gateway.tick();
    }
    let (device, probe) = gateway.sent();
    assert_eq!((device, source(&probe), destination(&probe)), (BLUE, SERVER.into(), HOST.into()));
}

#[test]
fn sessions_of_realms_are_not_offered_to_the_fast_path() {
    let mut gateway = gateway();
    let path = MemoryFastPath::new(64);
    gateway.engines[0].set_fast_path(Box::new(path.clone()), 1);
    for realm in [RED, BLUE, OUTSIDE] {
        for packet in 0..16_u8 {
            gateway.receives(realm, v4(HOST, SERVER).udp(4_001, 53, &[packet]));
            gateway.engines[0].emptied(gateway.now);
            gateway.engines[0].settle(gateway.now);
        }
        gateway.sent.clear();
        assert_eq!(path.len(), usize::from(realm == OUTSIDE), "{realm}");
    }
}

#[test]
fn pools_of_realms_are_not_the_main_ones_and_nothing_is_lost_by_one_that_is_full() {
    let mut gateway = machine(1, |config| {
        for nat44 in &mut config.nat44 {
            nat44.limits.sessions = 10;
        }
    });
    for port in 0..11 {
        gateway.receives(RED, v4(HOST, SERVER).udp(4_000 + port, 53, b""));
    }
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SessionTableFull));
    gateway.sent.clear();
    for realm in [BLUE, OUTSIDE] {
        let (address, _) = gateway.opened(realm);
        assert!(address == BLUE_POOL || address.starts_with(&MAIN_POOL[..8]), "{address}");
    }
}
