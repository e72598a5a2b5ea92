//! Steering with real packets: two network namespaces, a TUN device and the program between them.

use crate::support::peer::{
    FAR, NEAR, Peer, Sender, gather, gather_datagrams, ipv4, packet_socket, send_frame, tcp, udp,
};
use crate::support::{assert_clean, in_namespace, ip, open, snmp, wait};
use sixway_dataplane::nat::Spread;
use sixway_dataplane::{Frame, SegmentKind, Segments};
use sixway_fastpath::{Hook, InsideHosts, OwnAddress, STEERING_PROGRAM, Steering, SteeringError, Taken};
use sixway_link::{Link, RawTunnel, Tun, TunConfig, TunQueue, interface};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(50);

fn tunnels(addresses: &[Ipv4Addr]) -> Vec<OwnAddress> {
    addresses.iter().copied().map(OwnAddress::of_tunnels).collect()
}

/// A TUN device and steering by one hook; where the kernel does not allow it, the test is ignored.
fn steered(hook: Hook, addresses: &[OwnAddress]) -> (Tun, Steering) {
    steered_with(hook, addresses, &InsideHosts::default())
}

fn steered_with(hook: Hook, addresses: &[OwnAddress], inside: &InsideHosts) -> (Tun, Steering) {
    let tun = open(&TunConfig::default());
    let steering = Steering::attach_by(hook, "gw1", &["near"], &tun.name, addresses, inside);
    let steering = steering.unwrap_or_else(|error| sixway_trial::ignore(error));
    (tun, steering)
}

/// All that the device gives within a moment.
fn receive(queue: &mut TunQueue) -> Vec<Frame> {
    let mut all = Vec::new();
    let mut patience = SECOND;
    while wait(queue, patience) {
        let mut batch: Vec<_> = (0..64).map(|_| Frame::with_capacity(65_600)).collect();
        let count = queue.receive(&mut batch).unwrap();
        all.extend(batch.drain(..count));
        patience = MOMENT;
    }
    all
}

fn packets(queue: &mut TunQueue) -> Vec<Vec<u8>> {
    receive(queue).iter().map(|frame| frame.bytes().to_vec()).collect()
}

fn both_hooks(test: &'static str, body: fn(&Peer, Tun, Steering)) {
    for hook in [Hook::Tcx, Hook::Clsact] {
        in_namespace(test, move || {
            let peer = Peer::joined();
            let (tun, steering) = steered(hook, &tunnels(&[NEAR]));
            assert_eq!(steering.hook(), hook);
            body(&peer, tun, steering);
        });
    }
}

#[test]
fn a_tunnel_packet_reaches_the_tun_device_whole_and_the_host_does_not_answer() {
    both_hooks("whole", |peer, mut tun, steering| {
        let mut socket = RawTunnel::open(NEAR).unwrap();
        let packet = ipv4(FAR, NEAR, 41, true, &udp(b"hello"));
        peer.inside(Sender::new).send(&packet);
        assert_eq!(packets(&mut tun.queues[0]), std::slice::from_ref(&packet));
        assert_eq!(steering.counters(), Taken { packets: 1, octets: packet.len() as u64 });
        assert!(!wait(&socket, MOMENT), "the local stack saw it, too");
        drop(steering);
        peer.inside(Sender::new).send(&packet);
        let mut frames = [Frame::with_capacity(2_000)];
        assert!(wait(&socket, SECOND));
        assert_eq!(socket.receive(&mut frames).unwrap(), 1);
        assert_eq!(snmp("Icmp", "OutDestUnreachs"), 0);
        assert!(receive(&mut tun.queues[0]).is_empty(), "it ends with its owner");
    });
}

#[test]
fn everything_else_is_left_to_the_host() {
    both_hooks("else", |peer, mut tun, steering| {
        let sender = peer.inside(Sender::new);
        ip("addr add 192.0.2.9/32 dev near");
        sender.send(&ipv4(FAR, Ipv4Addr::new(192, 0, 2, 9), 41, true, &udp(b"for another address")));
        sender.send(&ipv4(FAR, NEAR, 4, true, b"another protocol"));
        std::thread::sleep(MOMENT);
        assert_eq!(snmp("Icmp", "OutDestUnreachs"), 2, "the host answered both");
        let (here, there) =
            (UdpSocket::bind((NEAR, 0)).unwrap(), peer.inside(|| UdpSocket::bind((FAR, 0)).unwrap()));
        there.send_to(b"a datagram", here.local_addr().unwrap()).unwrap();
        here.set_read_timeout(Some(SECOND)).unwrap();
        assert_eq!(here.recv(&mut [0; 100]).unwrap(), 10);
        assert!(receive(&mut tun.queues[0]).is_empty());
        assert_eq!(steering.counters(), Taken::default());
    });
}

#[test]
fn fragments_come_one_by_one_and_each_of_them() {
    both_hooks("fragments", |peer, mut tun, _steering| {
        let far = peer.inside(|| RawTunnel::open(FAR).unwrap());
        far.send_to(&udp(&[7; 4_000]), NEAR).unwrap();
        let packets = packets(&mut tun.queues[0]);
        let offsets: Vec<_> =
            packets.iter().map(|packet| u16::from_be_bytes([packet[6], packet[7]])).collect();
        assert_eq!(offsets, [0x2000, 0x2000 | 185, 370]);
    });
}

#[test]
fn an_interface_that_comes_back_is_steered_again() {
    both_hooks("back", |peer, mut tun, mut steering| {
        ip("link del near");
        peer.join();
        let packet = ipv4(FAR, NEAR, 41, true, &udp(b"again"));
        let sender = peer.inside(Sender::new);
        sender.send(&packet);
        assert!(receive(&mut tun.queues[0]).is_empty());
        steering.add_interface("near").unwrap();
        sender.send(&packet);
        assert_eq!(packets(&mut tun.queues[0]), [packet]);
        assert!(steering.add_interface("nothing").is_err());
    });
}

#[test]
fn each_packet_comes_to_the_queue_of_its_addresses() {
    in_namespace("queues", || {
        let peer = Peer::joined();
        let spread = Spread::new([3, 5], 64);
        let queues = sixway_link::Steering::by_ports(64, 2, spread);
        let mut tun = open(&TunConfig { queues: 2, steering: Some(queues.clone()), ..TunConfig::default() });
        let none = InsideHosts::default();
        let Ok(_steering) = Steering::attach("gw1", &["near"], &tun.name, &tunnels(&[NEAR]), &none) else {
            sixway_trial::ignore("the kernel takes no program");
        };
        let sender = peer.inside(Sender::new);
        for host in 0..200 {
            sender.send(&ipv4(Ipv4Addr::new(198, 51, 100, host), NEAR, 41, true, &udp(b"to whom?")));
        }
        let counts: Vec<_> = (0..2)
            .map(|number| {
                let packets = packets(&mut tun.queues[number]);
                assert!(packets.iter().all(|packet| usize::from(queues.worker(packet)) == number));
                packets.len()
            })
            .collect();
        assert!(counts[0] + counts[1] == 200 && counts.iter().all(|count| *count > 60), "{counts:?}");
    });
}

#[test]
fn addresses_are_replaced_while_it_runs() {
    both_hooks("addresses", |peer, mut tun, mut steering| {
        let other = Ipv4Addr::new(192, 0, 2, 9);
        ip(&format!("addr add {other}/32 dev near"));
        let sender = peer.inside(Sender::new);
        let (first, second) = (ipv4(FAR, NEAR, 41, true, &udp(b"1")), ipv4(FAR, other, 41, true, &udp(b"2")));
        for (addresses, expected) in [
            (vec![NEAR, other], vec![first.clone(), second.clone()]),
            (vec![other], vec![second.clone()]),
            (vec![], vec![]),
        ] {
            steering.set_addresses(&tunnels(&addresses)).unwrap();
            sender.send(&first);
            sender.send(&second);
            assert_eq!(packets(&mut tun.queues[0]), expected);
        }
        let many: Vec<_> = (0..2_000).map(Ipv4Addr::from).collect();
        let error = steering.set_addresses(&tunnels(&many)).unwrap_err();
        assert!(matches!(error, SteeringError::TooManyAddresses(2_000)), "{error}");
    });
}

#[test]
fn frames_of_a_vlan_or_for_another_ethernet_address_are_left_alone() {
    both_hooks("frames", |peer, mut tun, steering| {
        let socket = peer.inside(|| packet_socket("far"));
        let own = interface::ethernet_address("near").unwrap().unwrap();
        let packet = ipv4(FAR, NEAR, 41, true, &udp(b"in a frame"));
        send_frame(&socket, own, &[0x81, 0, 0, 5], &packet);
        send_frame(&socket, [2, 0, 0, 0, 0, 3], &[], &packet);
        send_frame(&socket, [0xff; 6], &[], &packet);
        assert!(receive(&mut tun.queues[0]).is_empty());
        send_frame(&socket, own, &[], &packet);
        assert_eq!(packets(&mut tun.queues[0]).len(), 1);
        assert_eq!(steering.counters().packets, 1);
    });
}

#[test]
fn what_a_killed_process_left_behind_is_found_and_removed() {
    in_namespace("leftovers", || {
        let _peer = Peer::joined();
        let (tun, steering) = steered(Hook::Clsact, &tunnels(&[NEAR]));
        std::mem::forget(steering); // as a process that is killed
        let filters =
            || Command::new("tc").args(["filter", "show", "dev", "near", "ingress"]).output().unwrap();
        let count = || String::from_utf8_lossy(&filters().stdout).matches(STEERING_PROGRAM).count();
        let before = count();
        assert!(before > 0, "{:?}", filters());
        let (own, none) = (tunnels(&[NEAR]), InsideHosts::default());
        let again = Steering::attach_by(Hook::Clsact, "gw1", &["near"], &tun.name, &own, &none).unwrap();
        assert_eq!(count(), before, "the old one was replaced");
        drop(again);
        assert_eq!(count(), 0);
        assert!(!Steering::remove_leftovers("gw1", "near"));
    });
}

#[test]
fn gateways_keep_their_filters_when_others_of_the_interface_come_and_go() {
    in_namespace("two-gateways", || {
        let peer = Peer::joined();
        let range = |first: u16| vec![OwnAddress::of_ports(NEAR, vec![first..=first + 999])];
        let attach = |gateway: &str, tun: &str, first: u16| {
            Steering::attach_by(Hook::Clsact, gateway, &["near"], tun, &range(first), &InsideHosts::default())
                .unwrap_or_else(|error| sixway_trial::ignore(error))
        };
        let (mut one, mut two) = (open(&TunConfig::default()), open(&TunConfig::default()));
        let first = attach("gw1", &one.name, 61_000);
        let second = attach("gw2", &two.name, 62_000);
        let sender = peer.inside(Sender::new);
        let name = two.name.clone();
        let mut arrives = |one_of_two: [usize; 2], case: &str| {
            sender.send(&ipv4(FAR, NEAR, 17, true, &to_port(80, 61_500)));
            sender.send(&ipv4(FAR, NEAR, 17, true, &to_port(80, 62_500)));
            assert_eq!(
                [packets(&mut one.queues[0]).len(), packets(&mut two.queues[0]).len()],
                one_of_two,
                "{case}"
            );
        };
        arrives([1, 1], "both are there");
        // The next process of the second replaces the filter of the previous one.
        std::mem::forget(second);
        let second = attach("gw2", &name, 62_000);
        arrives([1, 1], "after a takeover");
        assert!(!Steering::remove_leftovers("gw3", "near"));
        drop(first);
        arrives([0, 1], "the first ended");
        drop(second);
        arrives([0, 0], "both ended");
    });
}

#[test]
fn an_interface_or_a_device_that_is_missing_is_named_and_nothing_is_left_behind() {
    in_namespace("missing", || {
        let _peer = Peer::joined();
        let (tun, steering) = steered(Hook::Tcx, &tunnels(&[NEAR]));
        drop(steering);
        for (interfaces, device, missing) in
            [(&["near", "nothing"][..], tun.name.as_str(), "nothing"), (&["near"], "no-tun", "no-tun")]
        {
            let none = InsideHosts::default();
            let error = Steering::attach("gw1", interfaces, device, &tunnels(&[NEAR]), &none).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
        }
    });
}

#[test]
fn a_gso_packet_that_the_kernel_joined_arrives_with_true_contents() {
    in_namespace("joined", || {
        let peer = Peer::joined();
        let (mut tun, steering) = steered(Hook::Tcx, &tunnels(&[NEAR]));
        if !gather(&peer) {
            sixway_trial::ignore("needs ethtool and a veth device that joins segments");
        }
        let sender = peer.inside(Sender::new);
        for number in 0..20 {
            sender.send(&ipv4(FAR, NEAR, 41, true, &tcp(number * 1_400, &[number as u8; 1_400])));
        }
        let frames = receive(&mut tun.queues[0]);
        let mut stream = Vec::new();
        for frame in &frames {
            // Whole or cut again by the kernel: the sender's own segments, and a checksum that can be finished.
            let whole = frame.offload.segments == Some(Segments { size: 1_400, kind: SegmentKind::Tcp });
            assert!(whole || frame.len() == 80 + 1_400, "{} {:?}", frame.len(), frame.offload);
            assert_eq!(frame.bytes()[12..20], [192, 0, 2, 2, 192, 0, 2, 1], "the outer header is there");
            stream.extend_from_slice(&frame.bytes()[80..]);
        }
        assert_eq!(stream.len(), 20 * 1_400);
        assert!(
            stream
                .chunks(1_400)
                .zip(0..)
                .all(|(segment, number)| segment.iter().all(|octet| *octet == number))
        );
        assert_eq!(
            steering.counters(),
            Taken { packets: 1, octets: 80 + 20 * 1_400 },
            "joined when it was taken"
        );
        assert_clean(tun.queues[0].counters());
    });
}

#[test]
fn udp_datagrams_that_the_kernel_joined_arrive_as_they_were() {
    in_namespace("datagrams", || {
        let peer = Peer::joined();
        let (mut tun, steering) = steered(Hook::Tcx, &tunnels(&[NEAR]));
        if !gather(&peer) || !gather_datagrams() {
            sixway_trial::ignore("needs ethtool and a veth device that joins datagrams");
        }
        let sender = peer.inside(Sender::new);
        (0..10).for_each(|number| sender.send(&ipv4(FAR, NEAR, 41, true, &udp(&[number; 1_000]))));
        let frames = receive(&mut tun.queues[0]);
        assert_eq!(steering.counters().packets, 1, "joined when it was taken");
        assert!(frames.iter().all(|frame| frame.len() == 1_068 || frame.offload.segments.is_some()));
        let payload: usize = frames.iter().map(|frame| frame.len() - 68).sum();
        assert_eq!(payload, 10_000);
        assert_clean(tun.queues[0].counters());
    });
}

/// Steering of NEAR's ports from 61,000 on.
fn ports() -> Vec<OwnAddress> {
    vec![OwnAddress::of_ports(NEAR, vec![443..=443, 61_000..=65_535])]
}

/// The checksum of octets, as it is in a header.
fn checksum(octets: &[u8]) -> [u8; 2] {
    let words =
        octets.chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])));
    let sum: u64 = words.sum();
    (!(sum % 65_535) as u16).to_be_bytes()
}

/// A datagram without a checksum, which is a segment (an acknowledgment) from FAR to NEAR, too.
fn to_port(source: u16, destination: u16) -> Vec<u8> {
    let mut octets = [source.to_be_bytes(), destination.to_be_bytes(), [0, 20], [0, 0]].concat();
    octets.extend([0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    let pseudo = [&FAR.octets()[..], &NEAR.octets(), &[0, 6, 0, 20], &octets].concat();
    octets[16..18].copy_from_slice(&checksum(&pseudo));
    octets
}

fn icmp(kind: u8, identifier: u16, rest: &[u8]) -> Vec<u8> {
    let mut octets = [&[kind, 0, 0, 0][..], &identifier.to_be_bytes(), &[0, 1], rest].concat();
    let sum = checksum(&octets);
    octets[2..4].copy_from_slice(&sum);
    octets
}

#[test]
fn packets_for_our_ports_are_taken_and_others_are_the_hosts() {
    in_namespace("ports", || {
        let peer = Peer::joined();
        let (mut tun, steering) = steered(Hook::Tcx, &ports());
        let sender = peer.inside(Sender::new);
        let ours = |protocol: u8, payload: &[u8]| ipv4(FAR, NEAR, protocol, true, payload);
        let quoted = |protocol: u8, payload: &[u8]| ipv4(NEAR, FAR, protocol, true, payload);
        let taken = [
            ours(6, &to_port(80, 61_000)),
            ours(6, &to_port(80, 443)),
            ours(17, &to_port(53, 65_535)),
            ours(1, &icmp(3, 0, &quoted(17, &to_port(65_000, 53)))),
            ours(1, &icmp(11, 0, &quoted(6, &to_port(61_000, 80)))),
        ];
        let left = [
            ours(6, &to_port(61_000, 60_999)),
            ours(17, &to_port(61_000, 442)),
            ours(41, &udp(b"a tunnel's")),
            ours(1, &icmp(8, 62_000, b"who is there?")),
            ours(1, &icmp(0, 60_999, b"another's")),
            ours(1, &icmp(3, 0, &quoted(17, &to_port(60_999, 53)))),
            // What it quotes was never sent from here.
            ours(1, &icmp(3, 0, &ipv4(FAR, FAR, 17, true, &to_port(65_000, 53)))),
            ours(17, &[0, 1]),
        ];
        let copied = [
            ours(1, &icmp(0, 61_000, b"here")),
            ours(1, &icmp(11, 0, &quoted(1, &icmp(8, 61_000, b"gone")))),
        ];
        for packet in taken.iter().chain(&left).chain(&copied) {
            sender.send(packet);
        }
        assert_eq!(packets(&mut tun.queues[0]), [&taken[..], &copied].concat());
        assert_eq!(steering.counters().packets, 7);
        assert_eq!(snmp("Icmp", "InEchos"), 1, "echo requests are the host's to answer");
        assert_eq!(snmp("Icmp", "InEchoReps"), 2, "one was copied");
        assert_eq!(snmp("Tcp", "OutRsts"), 1, "for the one that was left alone");
    });
}

/// Steering from an interface that leads to these inside hosts or does not.
fn beside_inside(interface: &str) -> (Tun, Steering) {
    let own = OwnAddress { tunnels: true, ..ports()[0].clone() };
    let prefixes = vec!["10.9.0.0/16".parse().unwrap(), "198.51.100.0/24".parse().unwrap()];
    steered_with(Hook::Tcx, &[own], &InsideHosts { prefixes, interfaces: vec![interface.into()] })
}

#[test]
fn a_source_of_an_inside_host_is_taken_only_where_inside_hosts_are() {
    in_namespace("forged", || {
        let peer = Peer::joined();
        let (mut tun, mut steering) = beside_inside("nothing");
        let sender = peer.inside(Sender::new);
        let inside = [Ipv4Addr::new(10, 9, 0, 77), Ipv4Addr::new(198, 51, 100, 255)];
        let from =
            |source: Ipv4Addr, protocol: u8, payload: &[u8]| ipv4(source, NEAR, protocol, true, payload);
        let quoting = |remote: Ipv4Addr, payload: &[u8]| icmp(11, 0, &ipv4(NEAR, remote, 17, true, payload));
        let as_fragment = |source: Ipv4Addr, protocol: u8, offset: u16, payload: &[u8]| {
            addressed(fragment(9, offset, true, payload), source, protocol)
        };
        let forged: Vec<Vec<u8>> = inside
            .iter()
            .flat_map(|host| {
                [
                    from(*host, 17, &to_port(53, 61_000)),
                    from(*host, 6, &to_port(80, 443)),
                    from(*host, 1, &icmp(0, 61_000, b"here")),
                    as_fragment(*host, 17, 0, &to_port(53, 61_000)),
                    as_fragment(*host, 17, 2, &[2; 8]),
                    as_fragment(*host, 1, 2, &[2; 8]),
                    // About what came from an inside host by the same address.
                    from(FAR, 1, &quoting(*host, &to_port(61_000, 53))),
                ]
            })
            .collect();
        let taken = [
            from(Ipv4Addr::new(10, 10, 0, 1), 17, &to_port(53, 61_000)),
            from(Ipv4Addr::new(198, 51, 101, 0), 6, &to_port(80, 61_000)),
            // Of a router outside that has such an address, too.
            from(inside[0], 1, &quoting(FAR, &to_port(61_000, 53))),
            // A tunnel has a check of its own.
            from(inside[0], 41, &udp(b"in a tunnel")),
        ];
        let mut arrive = |sent: &[Vec<u8>]| {
            sent.iter().for_each(|packet| sender.send(packet));
            packets(&mut tun.queues[0])
        };
        assert_eq!(arrive(&forged), [[0_u8; 0]; 0]);
        assert_eq!(arrive(&taken), taken);
        for inner in [vec!["lo".into(), "near".into()], vec![]] {
            steering.set_inner_interfaces(&inner).unwrap();
            assert_eq!(arrive(&forged), forged, "hosts there reach each other by the address");
        }
        steering.set_inner_interfaces(&["nothing".into()]).unwrap();
        assert_eq!(arrive(&forged), [[0_u8; 0]; 0]);
    });
}

/// With this source and protocol.
fn addressed(mut packet: Vec<u8>, source: Ipv4Addr, protocol: u8) -> Vec<u8> {
    packet[12..16].copy_from_slice(&source.octets());
    packet[9] = protocol;
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum);
    packet
}

/// A fragment of a packet, `offset` in units of 8 octets.
fn fragment(identification: u16, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut packet = ipv4(FAR, NEAR, 17, false, payload);
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum);
    packet
}

#[test]
fn later_fragments_go_where_the_first_went_and_both_ways_if_they_overtook_it() {
    in_namespace("later", || {
        let peer = Peer::joined();
        let (mut tun, _steering) = steered(Hook::Tcx, &ports());
        let here = UdpSocket::bind((NEAR, 4_000)).unwrap();
        here.set_read_timeout(Some(SECOND)).unwrap();
        let sender = peer.inside(Sender::new);
        // As a UDP datagram of 16 + 8 octets without a checksum, in two.
        let first =
            |port: u16| [&53_u16.to_be_bytes()[..], &port.to_be_bytes(), &[0, 24, 0, 0], &[1; 8]].concat();
        let last = [2; 8];
        let ours = [fragment(1, 0, true, &first(61_000)), fragment(1, 2, false, &last)];
        let hosts = [fragment(2, 0, true, &first(4_000)), fragment(2, 2, false, &last)];
        let overtaken_ours = [fragment(3, 2, false, &last), fragment(3, 0, true, &first(61_000))];
        let overtaken_hosts = [fragment(4, 2, false, &last), fragment(4, 0, true, &first(4_000))];
        let mut datagram = [0; 100];
        let mut arrives = |packets: &[Vec<u8>; 2]| {
            packets.iter().for_each(|packet| sender.send(packet));
            here.recv(&mut datagram).unwrap_or(0)
        };
        assert_eq!(arrives(&hosts), 16);
        assert!(receive(&mut tun.queues[0]).is_empty());
        assert_eq!(arrives(&overtaken_hosts), 16);
        assert_eq!(packets(&mut tun.queues[0]), overtaken_hosts[..1], "a copy, which is never whole there");
        here.set_read_timeout(Some(MOMENT)).unwrap();
        for packets_ in [&ours, &overtaken_ours] {
            packets_.iter().for_each(|packet| sender.send(packet));
            assert_eq!(packets(&mut tun.queues[0]), packets_);
        }
        assert_eq!(snmp("Ip", "ReasmOKs"), 2);
        assert_eq!(snmp("Icmp", "OutDestUnreachs"), 0);
    });
}

#[test]
fn while_nobody_reads_our_ports_are_dropped_and_the_host_answers_nothing() {
    for persists in [true, false] {
        in_namespace("nobody", move || {
            let peer = Peer::joined();
            let tun = open(&TunConfig { persist: persists, ..TunConfig::default() });
            let none = InsideHosts::default();
            let Ok(steering) =
                Steering::attach_by(Hook::Clsact, "gw1", &["near"], &tun.name, &ports(), &none)
            else {
                sixway_trial::ignore("the kernel takes no program");
            };
            let name = tun.name.clone();
            steering.leave();
            drop(tun); // as a process that is killed: the device stays, or is gone
            let sender = peer.inside(Sender::new);
            for _ in 0..10 {
                sender.send(&ipv4(FAR, NEAR, 6, true, &to_port(80, 61_000)));
                sender.send(&ipv4(FAR, NEAR, 17, true, &to_port(80, 61_000)));
            }
            std::thread::sleep(MOMENT);
            assert_eq!((snmp("Tcp", "OutRsts"), snmp("Icmp", "OutDestUnreachs")), (0, 0), "{persists}");
            sender.send(&ipv4(FAR, NEAR, 6, true, &to_port(80, 60_999)));
            std::thread::sleep(MOMENT);
            assert_eq!(snmp("Tcp", "OutRsts"), 1, "the host is there");
            assert!(Steering::remove_leftovers("gw1", "near"));
            if persists {
                ip(&format!("link del {name}"));
            }
            sender.send(&ipv4(FAR, NEAR, 6, true, &to_port(80, 61_000)));
            std::thread::sleep(MOMENT);
            assert_eq!(snmp("Tcp", "OutRsts"), 2, "nothing is left");
        });
    }
}
