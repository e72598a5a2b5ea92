use super::*;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

fn tunnel() -> UdpTunnel {
    UdpTunnel::open(ANY_PORT).unwrap()
}

fn frame(from: SocketAddrV4, to: SocketAddrV4, tos: u8, payload: &[u8]) -> Frame {
    let mut frame = Frame::with_capacity(payload.len() + 28);
    frame_of(&mut frame, (from, to), tos, payload).unwrap();
    frame
}

/// What came, in order, once `count` datagrams did: source port, TOS, payload.
fn received(tunnel: &mut UdpTunnel, count: usize) -> Vec<(u16, u8, Vec<u8>)> {
    let mut all = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    let mut frames: Vec<Frame> = (0..10).map(|_| Frame::with_capacity(65_535)).collect();
    while all.len() < count && Instant::now() < until {
        let filled = tunnel.receive(&mut frames).unwrap();
        for frame in &frames[..filled] {
            let (header, behind) = Ipv4Header::split(frame.bytes()).unwrap();
            assert_eq!(header.destination, *tunnel.local().ip());
            assert_eq!((header.ttl, header.protocol), (64, protocol::UDP));
            let (udp, payload) = UdpHeader::split(behind).unwrap();
            assert_eq!((udp.destination, udp.checksum), (tunnel.local().port(), 0));
            all.push((udp.source, header.tos, payload.to_vec()));
        }
    }
    all
}

#[test]
fn datagrams_pass_both_ways_in_order_with_their_tos_and_length() {
    let (mut one, mut other) = (tunnel(), tunnel());
    let (from, to) = (one.local(), other.local());
    let sent: Vec<(u16, u8, Vec<u8>)> =
        [(0, 40), (0, 40), (0, 40), (0x2e << 2, 40), (1, 40), (3, 9), (0, 1_280), (0, 0), (0, 65_507)]
            .into_iter()
            .enumerate()
            .map(|(number, (tos, length))| (from.port(), tos, vec![number as u8; length]))
            .collect();
    for (_, tos, payload) in &sent {
        one.send(&mut frame(from, to, *tos, payload)).unwrap();
    }
    one.flush().unwrap();
    assert_eq!(received(&mut other, sent.len()), sent);
    assert_eq!((one.counters().sent, one.counters().refused, one.counters().no_room), (9, 0, 0));
    assert_eq!(one.counters().sent_octets, other.counters().received_octets);
    other.send(&mut frame(to, from, 2, b"back")).unwrap();
    other.flush().unwrap();
    assert_eq!(received(&mut one, 1), [(to.port(), 2, b"back".to_vec())]);
}

#[test]
fn equal_datagrams_leave_joined_and_come_out_single_with_a_shorter_one_at_the_end() {
    let (mut one, mut other) = (tunnel(), tunnel());
    let (from, to) = (one.local(), other.local());
    let mut sent: Vec<(u16, u8, Vec<u8>)> =
        (0..150_u8).map(|number| (from.port(), 0, vec![number; 400])).collect();
    sent.push((from.port(), 0, vec![200; 399]));
    sent.push((from.port(), 0, vec![201; 400]));
    for (_, tos, payload) in &sent {
        one.send(&mut frame(from, to, *tos, payload)).unwrap();
    }
    one.flush().unwrap();
    assert_eq!(received(&mut other, sent.len()), sent);
    assert_eq!((one.counters().sent, one.counters().sent_gso), (152, 3), "64, 64 and 23, and one alone");
    assert_eq!((other.counters().received, other.counters().received_gso), (152, 3));
}

#[test]
fn datagrams_to_several_destinations_keep_the_order_of_each() {
    let (mut one, mut ends) = (tunnel(), [tunnel(), tunnel(), tunnel()]);
    let from = one.local();
    for number in 0..90_u8 {
        let to = ends[usize::from(number) % 3].local();
        one.send(&mut frame(from, to, 0, &[number; 100])).unwrap();
    }
    one.flush().unwrap();
    for (place, end) in ends.iter_mut().enumerate() {
        let numbers: Vec<u8> = received(end, 30).iter().map(|(_, _, payload)| payload[0]).collect();
        let expected: Vec<u8> = (0..90).filter(|number| usize::from(*number) % 3 == place).collect();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn what_the_kernel_refuses_is_counted_and_the_rest_is_sent() {
    let (mut one, mut other) = (tunnel(), tunnel());
    let (from, to) = (one.local(), other.local());
    // From 127.0.0.1 nothing leaves the host, and a broadcast needs an option.
    let nowhere = SocketAddrV4::new(Ipv4Addr::BROADCAST, 9);
    for (to, octet) in [(to, 1), (nowhere, 2), (nowhere, 3), (to, 4)] {
        one.send(&mut frame(from, to, 0, &[octet; 50])).unwrap();
    }
    one.send(&mut Frame::holding(&[0x45, 0, 0, 20])).unwrap();
    one.flush().unwrap();
    let octets: Vec<u8> = received(&mut other, 2).iter().map(|(_, _, payload)| payload[0]).collect();
    assert_eq!(octets, [1, 4]);
    assert_eq!((one.counters().sent, one.counters().refused), (2, 3));
}

#[test]
fn a_port_has_one_tunnel_and_a_sender_uses_it_from_elsewhere() {
    let one = tunnel();
    let error = UdpTunnel::open(one.local()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let end = UdpSocket::bind(ANY_PORT).unwrap();
    let SocketAddr::V4(to) = end.local_addr().unwrap() else { panic!("IPv4") };
    one.sender().unwrap().send_to(b"hello", to).unwrap();
    let mut octets = [0; 10];
    let (length, from) = end.recv_from(&mut octets).unwrap();
    assert_eq!((&octets[..length], from), (b"hello".as_slice(), one.local().into()));
}
