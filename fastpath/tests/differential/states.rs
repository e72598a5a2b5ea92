//! An entry's life, and what else decides whether the programs forward: each test at both hooks, for either stateful translator.

use super::proof::judge::NOW;
use super::proof::namespace::{self, ip};
use super::proof::rig::{Hook, Rig, Ruling};
use super::proof::scene::{Port, Scene};
use super::proof::sessions::{self, Session};
use super::proof::world::{NAT44, NAT64};
use super::proof::worlds;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::{Direction, NatProtocol};
use sixway_dataplane::offload::{FastPath, FlowHandle, mark};
use sixway_fastpath::layout::{
    Config, FLOW_ACTIVE, FLOW_ARMED, FLOW_BUSY, FLOW_FREE, FLOW_HALF_OPEN, FLOW_RESTING, Flow, PASSED,
    flow_state, flow_word,
};
use std::time::Duration;

/// Packets that were left to the engine because they begin or end a connection (`PASS_FLAGS` in `layout.h`).
const PASSED_FLAGS: u32 = PASSED as u32 + 3;

/// A program, and sessions for its table, none of them in it.
struct Stage {
    scene: Scene,
    rig: Rig,
    sessions: Vec<Session>,
    is_nat44: bool,
}

/// Both hooks and both translators, each in a namespace of its own.
fn at_both_hooks(edit: fn(&mut Config), body: fn(Stage)) {
    ["nat64", "nat44"].into_iter().for_each(|name| in_world(name, edit, body));
}

/// Both hooks in the world of this name.
fn in_world(name: &'static str, edit: fn(&mut Config), body: fn(Stage)) {
    for hook in Hook::ALL {
        namespace::in_namespace("states", move || {
            let world = worlds::all().into_iter().find(|world| world.name == name).unwrap();
            let scene = Scene::new(world.routes(), &world.local);
            let rig = Rig::new(hook, &scene, &world, edit);
            let sessions = sessions::establish(&world, &mut Engine::new(&world.config).unwrap(), NOW);
            body(Stage { scene, rig, sessions, is_nat44: name == "nat44" });
        });
    }
}

impl Stage {
    /// A packet of a session comes in, as an Ethernet frame, by the usual device.
    fn receives(&self, session: &Session, outward: bool) -> (Ruling, Vec<u8>) {
        self.receives_at(if outward { Port::Inner } else { Port::Outer }, session, outward)
    }

    fn receives_at(&self, port: Port, session: &Session, outward: bool) -> (Ruling, Vec<u8>) {
        let packet = session.packet(outward, 0x10);
        let ran = self.rig.run(&framed(port, &packet), self.scene.index(port));
        (ran.verdict, ran.frame)
    }

    fn is_forwarded(&self, session: &Session, outward: bool) -> bool {
        match self.receives(session, outward).0 {
            Ruling::Pass => false,
            Ruling::Redirect => true,
            Ruling::Strange(code) => panic!("{code}"),
        }
    }

    /// Both halves of an entry.
    fn halves(&self, handle: FlowHandle) -> [Flow; 2] {
        self.rig.table.halves_of(handle).map(|slot| self.rig.table.read(slot))
    }

    /// The counter of packets that go out; the next one is that of packets that come in.
    fn counter(&self) -> u32 {
        2 * if self.is_nat44 { NAT44 } else { NAT64 }
    }

    /// A session of either protocol beyond the usual next hops.
    fn usual(&self) -> [Session; 2] {
        [0, 1].map(|number| self.sessions[number].clone())
    }
}

fn framed(port: Port, packet: &[u8]) -> Vec<u8> {
    let protocol = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    [&port.mac()[..], &port.neighbour(), &protocol, packet].concat()
}

/// What follows the IP header.
fn transport(packet: &[u8]) -> &[u8] {
    &packet[if packet[0] >> 4 == 6 { 40 } else { 20 }..]
}

fn unchanged(_: &mut Config) {}

#[test]
fn a_packet_leaves_its_mark_on_an_armed_entry_and_the_engine_computes_the_same() {
    at_both_hooks(unchanged, |mut stage| {
        for session in &stage.sessions.clone() {
            let handle = stage.rig.writer.arm(&session.flow()).unwrap();
            for (half, outward) in [(0, true), (1, false)] {
                for length in [0_usize, 1, 2, 3, 4, 5, 7, 8, 9, 40, 1_000] {
                    let packet = session.packet_with(outward, 0x10, &vec![length as u8 | 0x80; length]);
                    let port = if outward { Port::Inner } else { Port::Outer };
                    // Ethernet pads what is short; the engine does not see it.
                    let frame = [&framed(port, &packet)[..], &[0xee; 9]].concat();
                    let ran = stage.rig.run(&frame, stage.scene.index(port));
                    assert_eq!((ran.verdict, &ran.frame), (Ruling::Pass, &frame));
                    let left = mark(session.protocol, transport(&packet));
                    assert_eq!(
                        stage.halves(handle)[half].word,
                        flow_word(FLOW_ARMED, left),
                        "{length}: {session:?}"
                    );
                }
            }
        }
    });
}

#[test]
fn an_entry_is_active_when_the_mark_is_that_of_the_last_packet_and_forwards_from_then_on() {
    at_both_hooks(unchanged, |mut stage| {
        for session in stage.usual() {
            let handle = stage.rig.writer.arm(&session.flow()).unwrap();
            let (first, last) =
                (session.packet_with(true, 0x10, b"one"), session.packet_with(true, 0x10, b"two and more"));
            for packet in [&first, &last] {
                stage.rig.run(&framed(Port::Inner, packet), stage.scene.index(Port::Inner));
            }
            let mark = |packet: &[u8]| mark(session.protocol, transport(packet));
            assert!(
                !stage.rig.writer.activate(handle, Direction::Out, mark(&first)),
                "the last is under way"
            );
            assert!(!stage.is_forwarded(&session, true));
            // The packet that just came is the last one now.
            let third = session.packet(true, 0x10);
            assert!(stage.rig.writer.activate(handle, Direction::Out, mark(&third)));
            assert!(stage.is_forwarded(&session, true));
            assert!(!stage.is_forwarded(&session, false), "the other half is armed still");
            stage.rig.writer.force(handle);
            assert!(stage.is_forwarded(&session, false));
            assert!(stage.halves(handle).iter().all(|half| flow_state(half.word) == FLOW_ACTIVE));
        }
    });
}

#[test]
fn an_entry_that_was_removed_forwards_nothing_and_neither_does_one_that_is_armed_again() {
    at_both_hooks(unchanged, |mut stage| {
        for session in stage.usual() {
            let handle = stage.rig.install(&session.flow());
            assert!(stage.is_forwarded(&session, true) && stage.is_forwarded(&session, false));
            let word = stage.halves(handle)[0].word;
            stage.rig.writer.remove(handle);
            assert!(!stage.is_forwarded(&session, true) && !stage.is_forwarded(&session, false));
            let again = stage.rig.writer.arm(&session.flow()).unwrap();
            assert!(!stage.is_forwarded(&session, true) && !stage.is_forwarded(&session, false));
            stage.rig.writer.force(again);
            assert!(stage.is_forwarded(&session, true) && stage.is_forwarded(&session, false));
            assert_ne!(stage.halves(again)[0].word, word, "it is another incarnation");
        }
    });
}

/// They change the state of the session, which the engine has to know; on an armed entry they leave no mark either.
#[test]
fn what_begins_or_ends_a_connection_of_a_session_is_the_engines_in_every_state() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual().into_iter().find(|one| one.protocol == NatProtocol::Tcp).unwrap();
        let is_left = |stage: &Stage| {
            for flags in [0x02, 0x12, 0x01, 0x11, 0x04, 0x14, 0x03, 0x06, 0xff] {
                for (port, outward) in [(Port::Inner, true), (Port::Outer, false)] {
                    let frame = framed(port, &session.packet(outward, flags));
                    let before = stage.rig.counted(PASSED_FLAGS).0;
                    let ran = stage.rig.run(&frame, stage.scene.index(port));
                    assert_eq!((ran.verdict, &ran.frame), (Ruling::Pass, &frame), "{flags:#x}");
                    assert_eq!(stage.rig.counted(PASSED_FLAGS).0, before + 1, "{flags:#x}");
                }
            }
        };
        is_left(&stage);
        let handle = stage.rig.writer.arm(&session.flow()).unwrap();
        let words = |stage: &Stage| stage.halves(handle).map(|half| half.word);
        let armed = words(&stage);
        is_left(&stage);
        assert_eq!(words(&stage), armed);
        stage.rig.writer.force(handle);
        is_left(&stage);
        assert!(stage.is_forwarded(&session, true) && stage.is_forwarded(&session, false));
        stage.rig.writer.remove(handle);
        assert!(words(&stage).iter().all(|word| flow_state(*word) == FLOW_RESTING));
        is_left(&stage);
    });
}

#[test]
fn packets_and_octets_are_counted_as_they_came_and_by_the_mechanism() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual()[1].clone();
        let handle = stage.rig.install(&session.flow());
        let (mut octets, mut before) = ([0_u64; 2], [0; 2]);
        for length in [1, 20, 300, 1_111] {
            for (way, outward) in [(0, true), (1, false)] {
                let packet = session.packet_with(outward, 0, &vec![7; length]);
                let port = if outward { Port::Inner } else { Port::Outer };
                // What pads the frame is not counted.
                let frame = [&framed(port, &packet)[..], &[0; 30]].concat();
                assert_eq!(stage.rig.run(&frame, stage.scene.index(port)).verdict, Ruling::Redirect);
                octets[way] += packet.len() as u64;
                before[way] += 1;
            }
        }
        for (way, half) in stage.halves(handle).iter().enumerate() {
            assert_eq!((half.packets, half.octets), (before[way], octets[way]));
            assert_eq!(stage.rig.counted(stage.counter() + way as u32), (before[way], octets[way]));
            assert!(half.last > 0);
        }
        let usage = stage.rig.writer.remove(handle);
        assert_eq!(usage.map(|half| (half.packets, half.octets)), [(4, octets[0]), (4, octets[1])]);
    });
}

#[test]
fn nothing_is_forwarded_while_it_is_disabled() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual()[0].clone();
        stage.rig.install(&session.flow());
        stage.rig.control.enable(false);
        assert!(!stage.is_forwarded(&session, true));
        stage.rig.control.enable(true);
        assert!(stage.is_forwarded(&session, true));
    });
}

/// Gives the neighbour beyond the IPv4 default route another MAC address.
fn replace_neighbour(mac: &str) {
    ip(&format!("neigh replace 10.202.0.2 lladdr {mac} nud permanent dev outer"));
}

#[test]
fn a_new_generation_finds_the_next_hop_again_and_the_old_one_keeps_it() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual()[0].clone();
        stage.rig.install(&session.flow());
        let to = |stage: &Stage| stage.receives(&session, true).1[..6].to_vec();
        assert_eq!(to(&stage), Port::Outer.neighbour());
        replace_neighbour("02:00:00:00:07:07");
        assert_eq!(to(&stage), Port::Outer.neighbour(), "nobody has said that something has changed");
        stage.rig.control.bump();
        assert_eq!(to(&stage), [2, 0, 0, 0, 7, 7]);
        ip("neigh del 10.202.0.2 dev outer");
        stage.rig.control.bump();
        assert!(!stage.is_forwarded(&session, true), "nobody knows the neighbour's address");
    });
}

#[test]
fn a_hairpin_goes_to_whoever_has_the_endpoint_now() {
    at_both_hooks(unchanged, |mut stage| {
        let is_called = |session: &&Session| stage.sessions.iter().any(|one| one.outside == session.remote);
        let caller = stage.sessions.iter().find(is_called).unwrap().clone();
        let is_its_other =
            |session: &&Session| session.outside == caller.remote && session.remote == caller.outside;
        let mut called = stage.sessions.iter().find(is_its_other).unwrap().clone();
        stage.rig.install(&caller.flow());
        let first = stage.rig.install(&called.flow());
        assert_eq!(stage.receives(&caller, true).1[..6], Port::Inner.neighbour());
        stage.rig.writer.remove(first);
        let there = if stage.is_nat44 { "::ffff:10.203.0.2" } else { "2001:db8:ff03::2" };
        called.inside.address = there.parse().unwrap();
        stage.rig.install(&called.flow());
        let (ruling, frame) = stage.receives(&caller, true);
        assert_eq!((ruling, &frame[..6]), (Ruling::Redirect, &Port::Narrow.neighbour()[..]));
        match called.inside.address.to_ipv4_mapped() {
            Some(four) => assert_eq!(frame[30..34], four.octets()),
            None => assert_eq!(frame[38..54], called.inside.address.octets()),
        }
    });
}

/// The one that calls counts the packet as it came, the one that is called the IPv4 packet that it was in between.
#[test]
fn both_entries_of_a_hairpin_count_the_packet_as_it_came_to_each() {
    at_both_hooks(unchanged, |mut stage| {
        let is_called = |session: &&Session| stage.sessions.iter().any(|one| one.outside == session.remote);
        let caller = stage.sessions.iter().find(is_called).unwrap().clone();
        let is_its_other =
            |session: &&Session| session.outside == caller.remote && session.remote == caller.outside;
        let called = stage.sessions.iter().find(is_its_other).unwrap().clone();
        let entries = [caller.flow(), called.flow()].map(|flow| stage.rig.install(&flow));
        let mut octets = 0;
        for length in [1, 20, 300] {
            let packet = caller.packet_with(true, 0x10, &vec![7; length]);
            let ran = stage.rig.run(&framed(Port::Inner, &packet), stage.scene.index(Port::Inner));
            assert_eq!(ran.verdict, Ruling::Redirect);
            octets += packet.len() as u64;
        }
        let [out, _] = stage.halves(entries[0]);
        let [_, into] = stage.halves(entries[1]);
        assert_eq!((out.packets, out.octets), (3, octets));
        assert_eq!((into.packets, into.octets), (3, octets - if stage.is_nat44 { 0 } else { 3 * 20 }));
    });
}

/// A neighbour that a quiet flow remembers may have become another meanwhile, whatever the generation says.
#[test]
fn a_next_hop_older_than_ten_minutes_is_looked_up_again() {
    /// Ticks of 2^20 ns.
    const TEN_MINUTES: u32 = 572_205;
    fn an_hour(config: &mut Config) {
        (config.idle_tcp, config.idle_udp, config.idle_icmp) = (3_433_228, 3_433_228, 3_433_228);
    }
    at_both_hooks(an_hour, |mut stage| {
        for session in stage.usual() {
            replace_neighbour("02:00:00:00:07:01");
            stage.rig.control.bump();
            let handle = stage.rig.install(&session.flow());
            let to = |stage: &Stage| stage.receives(&session, true).1[..6].to_vec();
            assert_eq!(to(&stage), [2, 0, 0, 0, 7, 1]);
            replace_neighbour("02:00:00:00:07:02");
            stage.rig.idle_since(handle, TEN_MINUTES - 30_000);
            assert_eq!(to(&stage), [2, 0, 0, 0, 7, 1], "half a minute less");
            stage.rig.idle_since(handle, TEN_MINUTES + 1);
            assert_eq!(to(&stage), [2, 0, 0, 0, 7, 2]);
            stage.rig.writer.remove(handle);
        }
    });
}

#[test]
fn a_route_that_no_longer_leads_to_the_engine_takes_the_packets_along() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual()[0].clone();
        stage.rig.install(&session.flow());
        assert!(stage.is_forwarded(&session, true));
        ip(match stage.is_nat44 {
            true => "rule add from 10.40.0.0/14 lookup main",
            false => "route replace 64:ff9b::/96 via 2001:db8:ff02::2 dev outer",
        });
        stage.rig.control.bump();
        assert!(!stage.is_forwarded(&session, true));
        assert!(stage.is_forwarded(&session, false), "the other direction has a route of its own");
    });
}

#[test]
fn packets_that_come_in_elsewhere_are_asked_about_again_and_by_a_device_without_a_hook_are_left_alone() {
    fn without_narrow(config: &mut Config) {
        let narrow = config.ports.iter().position(|port| port.mac == Port::Narrow.mac()).unwrap();
        config.ports[narrow].ifindex = u32::MAX;
        config.ports[narrow].below = u32::MAX;
    }
    at_both_hooks(without_narrow, |mut stage| {
        let session = stage.usual()[0].clone();
        let handle = stage.rig.install(&session.flow());
        assert!(stage.is_forwarded(&session, true));
        let ingress = stage.halves(handle)[0].ingress;
        assert_eq!(stage.receives_at(Port::Unhooked, &session, true).0, Ruling::Redirect);
        assert_ne!(stage.halves(handle)[0].ingress, ingress);
        assert_eq!(stage.receives_at(Port::Narrow, &session, true).0, Ruling::Pass);
        // A rule of the kernel's that sends what comes by one device elsewhere.
        let (family, neighbour) =
            if stage.is_nat44 { ("-4", "10.202.0.2") } else { ("-6", "2001:db8:ff02::2") };
        ip(&format!("route add default via {neighbour} dev outer table 7"));
        ip(&format!("{family} rule add iif trunk table 7"));
        assert_eq!(stage.receives_at(Port::Trunk, &session, true).0, Ruling::Pass);
        assert_eq!(stage.receives_at(Port::Inner, &session, true).0, Ruling::Redirect);
    });
}

#[test]
fn a_device_with_strict_reverse_path_filtering_takes_only_sources_beyond_it() {
    fn strict(config: &mut Config) {
        config.ports.iter_mut().for_each(|port| port.strict = 1);
    }
    at_both_hooks(strict, |mut stage| {
        let session = stage.usual()[0].clone();
        stage.rig.install(&session.flow());
        assert_eq!(stage.receives_at(Port::Trunk, &session, false).0, Ruling::Pass);
        assert_eq!(stage.receives_at(Port::Outer, &session, false).0, Ruling::Redirect);
        assert_eq!(stage.receives_at(Port::Trunk, &session, false).0, Ruling::Pass);
        // The filter follows no rule that names the interface where a packet came in.
        ip("route add 45.64.0.0/16 dev tun table 7");
        ip("route add default via 10.203.0.2 dev narrow table 7");
        ip("rule add iif outer table 7");
        stage.rig.control.bump();
        assert_eq!(stage.receives_at(Port::Outer, &session, false).0, Ruling::Redirect);
        // IPv6 has no such filter.
        let elsewhere = if stage.is_nat44 { Ruling::Pass } else { Ruling::Redirect };
        assert_eq!(stage.receives_at(Port::Trunk, &session, true).0, elsewhere);
        assert_eq!(stage.receives_at(Port::Inner, &session, true).0, Ruling::Redirect);
    });
}

/// The kernel takes no packet from a wire whose source is an IPv4 address of this host.
#[test]
fn an_inside_host_that_has_the_address_of_this_host_is_left_to_the_kernel() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual()[0].clone();
        stage.rig.install(&session.flow());
        assert!(stage.is_forwarded(&session, true));
        let Some(inside) = session.inside.address.to_ipv4_mapped() else { return };
        ip(&format!("addr add {inside}/32 dev lo"));
        stage.rig.control.bump();
        assert!(!stage.is_forwarded(&session, true) && !stage.is_forwarded(&session, false));
    });
}

#[test]
fn without_the_gateway_the_kernels_routes_are_followed_by_the_second_and_after_a_while_nothing_is_forwarded()
{
    /// Ticks of 2^20 ns.
    fn four_seconds(config: &mut Config) {
        config.absence = 3_815;
        config.idle_udp = 2_384;
    }
    at_both_hooks(four_seconds, |mut stage| {
        let [tcp, udp] = stage.usual();
        stage.rig.install(&tcp.flow());
        stage.rig.install(&udp.flow());
        assert!(stage.is_forwarded(&tcp, true) && stage.is_forwarded(&udp, true));
        std::thread::sleep(Duration::from_millis(2_600));
        assert!(stage.is_forwarded(&tcp, true));
        assert!(!stage.is_forwarded(&udp, true), "it was idle for longer than 2.5 s");
        replace_neighbour("02:00:00:00:07:08");
        std::thread::sleep(Duration::from_millis(1_100));
        assert_eq!(stage.receives(&tcp, true).1[..6], [2, 0, 0, 0, 7, 8]);
        std::thread::sleep(Duration::from_millis(500));
        assert!(!stage.is_forwarded(&tcp, true), "it was away for longer than 4 s");
        stage.rig.control.beat();
        assert!(stage.is_forwarded(&tcp, true));
    });
}

#[test]
fn who_was_away_until_the_ticks_wrap_is_not_back() {
    fn an_hour(config: &mut Config) {
        config.absence = 3_433_228;
    }
    at_both_hooks(an_hour, |mut stage| {
        let session = stage.usual()[0].clone();
        stage.rig.install(&session.flow());
        for ticks in [1 << 31, 0x9000_0000, 0xe000_0000, 0xf000_0000] {
            stage.rig.away_since(ticks);
            assert!(!stage.is_forwarded(&session, true), "{ticks:#x}");
        }
        stage.rig.away_since(0_u32.wrapping_sub(100));
        assert!(stage.is_forwarded(&session, true), "its clock is a little ahead");
        // Seen when it was nearly over, it does not come back with the next turn.
        let before = stage.rig.away_since(0xfff0_0000);
        assert!(!stage.is_forwarded(&session, true));
        assert!(
            stage.rig.heartbeat().wrapping_sub(before) < 1 << 31 && stage.rig.heartbeat() != before,
            "it is younger now"
        );
    });
}

#[test]
fn from_a_host_of_one_translator_to_the_pool_of_another_packets_are_left_to_the_engine() {
    in_world("nat44 among others", unchanged, |mut stage| {
        let of = |number| stage.sessions.iter().find(|one| one.mechanism == number).unwrap().clone();
        let (mut six, mut four) = (of(0), of(1));
        let usual = [six.clone(), four.clone()];
        usual.iter().for_each(|session| {
            stage.rig.install(&session.flow());
        });
        assert!(usual.iter().all(|session| stage.is_forwarded(session, true)));
        // Each is the other's remote: what one sends the other's entry would take inside.
        (six.remote, four.remote) = (four.outside, six.outside);
        let [high, low] = [six.remote.address.to_bits() >> 16, six.remote.address.to_bits() & 0xffff];
        six.remote6 = std::net::Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high as u16, low as u16);
        for session in [&six, &four] {
            stage.rig.install(&session.flow());
        }
        assert!(!stage.is_forwarded(&six, true) && !stage.is_forwarded(&four, true));
    });
}

/// A session of TCP that has a half-open entry.
fn half_open(stage: &mut Stage) -> (Session, FlowHandle) {
    let session = stage.usual().into_iter().find(|one| one.protocol == NatProtocol::Tcp).unwrap();
    let handle = stage.rig.writer.half_open(&session.flow()).unwrap();
    (session, handle)
}

impl Stage {
    /// Whether a segment from outside is forwarded.
    fn forwards(&self, session: &Session, flags: u8, data: &[u8]) -> bool {
        let frame = framed(Port::Outer, &session.packet_with(false, flags, data));
        self.rig.run(&frame, self.scene.index(Port::Outer)).verdict == Ruling::Redirect
    }
}

/// SYN/ACKs from outside go by it, whatever they say of congestion, and nothing else does: not even what an active entry would forward.
#[test]
fn a_half_open_entry_forwards_syn_acks_from_outside_alone() {
    at_both_hooks(unchanged, |mut stage| {
        let (session, handle) = half_open(&mut stage);
        assert!(stage.rig.writer.is_half_open(handle));
        let words = |stage: &Stage| stage.halves(handle).map(|half| half.word);
        let before = words(&stage);
        assert_eq!(before.map(flow_state), [FLOW_BUSY, FLOW_HALF_OPEN]);
        let mut answered = 0;
        for flags in 0..=255_u8 {
            stage.rig.renew(handle);
            for (port, outward) in [(Port::Inner, true), (Port::Outer, false)] {
                let frame = framed(port, &session.packet(outward, flags));
                let causes =
                    |stage: &Stage| [1, 2, 3].map(|cause| stage.rig.counted(PASSED as u32 + cause).0);
                let [no_flow, moving, by_flags] = causes(&stage);
                let ran = stage.rig.run(&frame, stage.scene.index(port));
                let is_answer = !outward && flags & 0x17 == 0x12;
                assert_eq!(ran.verdict == Ruling::Redirect, is_answer, "{outward} {flags:#x}");
                let is_data = flags & 7 == 0;
                let left = [u64::from(is_data), 0, u64::from(!is_data && !is_answer)];
                assert_eq!(causes(&stage), [no_flow + left[0], moving, by_flags + left[2]], "{flags:#x}");
                answered += u64::from(is_answer);
            }
            assert_eq!(words(&stage), before);
            let usage = stage.rig.writer.usage(handle);
            assert_eq!(usage.map(|half| half.packets), [0, u64::from(flags & 0x17 == 0x12)]);
        }
        // ECE, CWR, PSH and URG may be set or not.
        assert_eq!((answered, stage.rig.counted(stage.counter() + 1).0), (16, 16));
    });
}

/// Data find no way past the packet filter by it.
#[test]
fn a_half_open_entry_forwards_no_data_and_few_syn_acks() {
    at_both_hooks(unchanged, |mut stage| {
        let (session, _) = half_open(&mut stage);
        assert!(!stage.forwards(&session, 0x12, &[1]) && !stage.forwards(&session, 0x12, &[1; 1_000]));
        let forwarded = (0..100).filter(|_| stage.forwards(&session, 0x12, &[])).count();
        assert_eq!(forwarded, 4);
    });
}

#[test]
fn a_half_open_entry_forwards_nothing_late_without_a_gateway_or_if_it_is_not_allowed() {
    at_both_hooks(unchanged, |mut stage| {
        let (session, handle) = half_open(&mut stage);
        stage.rig.idle_since(handle, 4_700);
        assert!(stage.forwards(&session, 0x12, &[]));
        stage.rig.idle_since(handle, 4_770);
        assert!(!stage.forwards(&session, 0x12, &[]), "five seconds later");
        stage.rig.renew(handle);
        stage.rig.away_since(1_950);
        assert!(!stage.forwards(&session, 0x12, &[]), "nobody would learn of it");
        stage.rig.renew(handle);
        assert!(stage.forwards(&session, 0x12, &[]));
        stage.rig.control.allow_half_open(false);
        assert!(!stage.forwards(&session, 0x12, &[]));
        stage.rig.control.allow_half_open(true);
        assert!(stage.forwards(&session, 0x12, &[]));
    });
}

#[test]
fn a_half_open_entry_that_was_removed_forwards_nothing() {
    at_both_hooks(unchanged, |mut stage| {
        let session = stage.usual().into_iter().find(|one| one.protocol == NatProtocol::Tcp).unwrap();
        let answer = framed(Port::Outer, &session.packet(false, 0x12));
        let is_answered = |stage: &Stage| {
            stage.rig.run(&answer, stage.scene.index(Port::Outer)).verdict == Ruling::Redirect
        };
        let handle = stage.rig.writer.half_open(&session.flow()).unwrap();
        assert!(is_answered(&stage));
        let usage = stage.rig.writer.remove(handle);
        assert_eq!(usage.map(|half| half.packets), [0, 1]);
        assert!(!stage.forwards(&session, 0x12, &[]));
        assert_eq!(stage.halves(handle).map(|half| flow_state(half.word)), [FLOW_FREE, FLOW_RESTING]);
    });
}
