//! Raw sockets for tunnel packets and for the ICMP errors about them, between two network namespaces.

use crate::support::peer::{FAR, NEAR, Peer, Sender, gather, gather_datagrams, ipv4, ipv6, tcp, udp};
use crate::support::{in_namespace, ip, open, snmp, wait};
use sixway_dataplane::{Checksum, Frame, SegmentKind, Segments};
use sixway_link::{Abilities, Link, PathErrors, RawTunnel, TunConfig, sysctl::Sysctl};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(50);

fn frames(count: usize) -> Vec<Frame> {
    (0..count).map(|_| Frame::with_capacity(65_600)).collect()
}

/// All that comes within a moment.
fn receive(link: &mut impl Link) -> Vec<Frame> {
    let mut all = Vec::new();
    let mut patience = SECOND;
    while wait(link, patience) {
        let mut batch = frames(64);
        let count = link.receive(&mut batch).unwrap();
        batch.truncate(count);
        all.append(&mut batch);
        patience = MOMENT;
    }
    all
}

fn packets(link: &mut impl Link) -> Vec<Vec<u8>> {
    receive(link).iter().map(|frame| frame.bytes().to_vec()).collect()
}

#[test]
fn a_tunnel_packet_is_received_whole_and_the_host_does_not_answer() {
    in_namespace("whole", || {
        let peer = Peer::joined();
        let sender = peer.inside(Sender::new);
        let packet = ipv4(FAR, NEAR, 41, true, &udp(b"hello"));
        sender.send(&packet);
        std::thread::sleep(MOMENT);
        assert_eq!(snmp("Icmp", "OutDestUnreachs"), 1, "without the socket the host does answer");

        let mut link = RawTunnel::open(NEAR).unwrap();
        assert_eq!(link.address(), NEAR);
        sender.send(&packet);
        sender.send(&ipv4(FAR, NEAR, 4, true, &packet));
        assert_eq!(packets(&mut link), [packet]);
        assert_eq!(snmp("Icmp", "OutDestUnreachs"), 2, "for protocol 4 alone");
        assert_eq!((link.counters().received, link.counters().overflowed), (1, 0));
    });
}

#[test]
fn packets_for_another_address_of_the_host_are_left_alone() {
    in_namespace("other address", || {
        let peer = Peer::joined();
        ip("addr add 192.0.2.9/32 dev near");
        let mut link = RawTunnel::open(NEAR).unwrap();
        peer.inside(Sender::new).send(&ipv4(FAR, Ipv4Addr::new(192, 0, 2, 9), 41, true, &udp(b"hello")));
        assert!(packets(&mut link).is_empty());
        let missing = RawTunnel::open(Ipv4Addr::new(192, 0, 2, 77)).unwrap_err();
        assert_eq!(missing.kind(), std::io::ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn what_one_end_sends_comes_to_the_other_and_fragments_are_put_together() {
    in_namespace("fragments", || {
        let peer = Peer::joined();
        let mut link = RawTunnel::open(NEAR).unwrap();
        let sender = peer.inside(|| RawTunnel::open(FAR).unwrap().sender().unwrap());
        let (small, large) = (udp(&[1; 10]), udp(&[2; 4_000]));
        sender.send_to(&small, NEAR).unwrap();
        sender.send_to(&large, NEAR).unwrap();
        let packets = packets(&mut link);
        assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [78, 4_068]);
        assert!(packets[0][20..] == small && packets[1][20..] == large);
        assert_eq!(packets[1][6..8], [0, 0], "no fragment any more");
    });
}

#[test]
fn tcp_segments_that_the_kernel_joined_come_as_a_gso_packet() {
    in_namespace("joined", || {
        let peer = Peer::joined();
        if !gather(&peer) {
            sixway_trial::ignore("needs ethtool and a veth device that joins segments");
        }
        let mut link = RawTunnel::open(NEAR).unwrap();
        let sender = peer.inside(Sender::new);
        for number in 0..20 {
            let payload = vec![number as u8; 1_400];
            sender.send(&ipv4(FAR, NEAR, 41, true, &tcp(number * 1_400, &payload)));
        }
        let received = receive(&mut link);
        let gso_packet = &received[0];
        assert_eq!((received.len(), gso_packet.len()), (1, 80 + 20 * 1_400));
        assert_eq!(gso_packet.offload.checksum, Checksum::Partial);
        assert_eq!(gso_packet.offload.segments, Some(Segments { size: 1_220, kind: SegmentKind::Tcp }));
        assert!((0..20).all(|number| gso_packet.bytes()[80 + number * 1_400] == number as u8));
        assert_eq!(link.counters().received_gso, 1);
    });
}

#[test]
fn what_the_socket_had_no_room_for_is_counted() {
    in_namespace("overflow", || {
        let peer = Peer::joined();
        let mut link = RawTunnel::open(NEAR).unwrap();
        let sender = peer.inside(Sender::new);
        let packet = ipv4(FAR, NEAR, 41, true, &udp(&[0; 1_300]));
        let sent = 12_000;
        (0..sent).for_each(|_| sender.send(&packet));
        let received = receive(&mut link).len() as u64;
        sender.send(&packet);
        assert_eq!(receive(&mut link).len(), 1);
        let counters = link.counters();
        assert!(counters.overflowed > 0, "{counters:?}");
        assert_eq!(counters.overflowed + received, sent);
    });
}

/// ICMP type and code, the reporter, and the quoted IPv4 packet.
fn error(packet: &[u8]) -> (u8, u8, Ipv4Addr, &[u8]) {
    let reporter: [u8; 4] = packet[12..16].try_into().unwrap();
    (packet[20], packet[21], reporter.into(), &packet[28..])
}

#[test]
fn an_error_about_our_tunnel_packet_comes_whole_and_others_do_not() {
    in_namespace("errors", || {
        let peer = Peer::joined();
        let mut errors = PathErrors::open(&[NEAR]).unwrap();
        let tunnel = RawTunnel::open(NEAR).unwrap();
        let inner = ipv6(59, &[7; 200]);
        tunnel.send_to(&inner, FAR).unwrap(); // protocol 41 has no receiver
        UdpSocket::bind((NEAR, 0)).unwrap().send_to(b"nor here", (FAR, 9)).unwrap();
        Sender::new().send(&ipv4(NEAR, FAR, 4, false, b"and not for protocol 4"));
        let heard = packets(&mut errors);
        assert_eq!(heard.len(), 1);
        let (kind, code, reporter, quoted) = error(&heard[0]);
        assert_eq!((kind, code, reporter), (3, 2, FAR), "protocol unreachable");
        assert_eq!((quoted[9], &quoted[20..]), (41, &inner[..]));

        ip("addr add 192.0.2.9/32 dev near");
        errors.set_addresses(&[Ipv4Addr::new(192, 0, 2, 9)]).unwrap();
        tunnel.send_to(&inner, FAR).unwrap();
        RawTunnel::open(Ipv4Addr::new(192, 0, 2, 9)).unwrap().send_to(&inner, FAR).unwrap();
        let heard = packets(&mut errors);
        assert_eq!(heard.len(), 1);
        assert_eq!(error(&heard[0]).3[12..16], [192, 0, 2, 9]);
        drop(peer);
    });
}

#[test]
fn an_error_with_a_wrong_checksum_is_counted_and_not_handed_on() {
    in_namespace("damaged", || {
        let peer = Peer::joined();
        let mut errors = PathErrors::open(&[NEAR]).unwrap();
        let mut message = vec![11, 0, 0x12, 0x34, 0, 0, 0, 0];
        message.extend(ipv4(NEAR, FAR, 41, false, &ipv6(59, &[])));
        peer.inside(Sender::new).send(&ipv4(FAR, NEAR, 1, false, &message));
        assert!(packets(&mut errors).is_empty());
        assert_eq!((errors.counters().received, errors.counters().damaged), (1, 1));
    });
}

#[test]
fn errors_that_this_hosts_own_forwarding_makes_are_heard_too() {
    in_namespace("own errors", || {
        let peer = Peer::joined();
        let mut tun = open(&TunConfig { abilities: Abilities::ALL, ..TunConfig::default() });
        Sysctl::set("/proc/sys/net/ipv4/ip_forward", "1").unwrap().keep();
        Sysctl::set(format!("/proc/sys/net/ipv4/conf/{}/accept_local", tun.name), "1").unwrap().keep();
        ip("link set near mtu 1280");
        let mut errors = PathErrors::open(&[NEAR]).unwrap();
        let mut write = |packet: &[u8]| tun.queues[0].send(&mut Frame::holding(packet)).unwrap();

        let large = ipv4(NEAR, FAR, 41, true, &udp(&[0; 1_300]));
        write(&large);
        let heard = packets(&mut errors);
        assert_eq!(heard.len(), 1, "{heard:?}");
        let (kind, code, reporter, quoted) = error(&heard[0]);
        assert_eq!((kind, code, heard[0][26..28].to_vec()), (3, 4, 1_280_u16.to_be_bytes().to_vec()));
        assert_eq!((reporter, &quoted[12..20]), (NEAR, &large[12..20]));

        write(&ipv4(NEAR, Ipv4Addr::new(198, 51, 100, 1), 41, true, &udp(b"no route")));
        let heard = packets(&mut errors);
        assert_eq!(heard.iter().map(|packet| error(packet).0).collect::<Vec<_>>(), [3]);
        drop(peer);
    });
}

#[test]
fn a_forged_error_does_not_teach_the_kernel_a_path_mtu() {
    in_namespace("forged", || {
        let peer = Peer::joined();
        let mut tun = open(&TunConfig::default());
        Sysctl::set("/proc/sys/net/ipv4/ip_forward", "1").unwrap().keep();
        Sysctl::set(format!("/proc/sys/net/ipv4/conf/{}/accept_local", tun.name), "1").unwrap().keep();
        let _open = RawTunnel::open(NEAR).unwrap();
        let mut far = peer.inside(|| RawTunnel::open(FAR).unwrap());
        let packet = ipv4(NEAR, FAR, 41, true, &udp(&[0; 1_300]));

        let mut message = vec![3, 4, 0, 0, 0, 0, 0, 68];
        message.extend(&packet[..28]);
        let checksum = sixway_wire::checksum::Sum::ZERO.bytes(&message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut errors = PathErrors::open(&[NEAR]).unwrap();
        peer.inside(Sender::new).send(&ipv4(FAR, NEAR, 1, false, &message));
        assert_eq!(packets(&mut errors).len(), 1, "we hear it and judge it");

        tun.queues[0].send(&mut Frame::holding(&packet)).unwrap();
        assert_eq!(packets(&mut far).len(), 1, "the kernel sends as large packets as before");
        assert!(packets(&mut errors).is_empty());
    });
}

#[test]
fn udp_datagrams_that_the_kernel_joined_are_counted_and_not_handed_on_as_one() {
    in_namespace("datagrams", || {
        let peer = Peer::joined();
        if !gather(&peer) || !gather_datagrams() {
            sixway_trial::ignore("needs ethtool and a veth device that joins datagrams");
        }
        let mut link = RawTunnel::open(NEAR).unwrap();
        let sender = peer.inside(Sender::new);
        (0..10).for_each(|number| sender.send(&ipv4(FAR, NEAR, 41, true, &udp(&[number; 1_000]))));
        assert!(receive(&mut link).is_empty());
        assert_eq!((link.counters().received, link.counters().boundaries_lost), (1, 1));
    });
}
