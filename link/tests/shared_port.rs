//! A UDP port that another program has, too, in a network namespace.

use crate::support::{in_namespace, ip};
use sixway_link::{SharedPort, interface};
use std::net::{Ipv6Addr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(2);

/// What comes in time.
fn heard(port: &mut SharedPort) -> Option<(Ipv6Addr, Vec<u8>)> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some((source, message)) = port.receive().unwrap() {
            return Some((source, message.to_vec()));
        }
        std::thread::yield_now();
    }
    None
}

fn socket(address: Ipv6Addr, scope: u32) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddrV6::new(address, 0, 0, scope)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().unwrap().port()
}

#[test]
fn who_has_a_port_alone_and_who_shares_it_both_get_what_comes() {
    in_namespace("shared port", || {
        let own = socket(Ipv6Addr::LOCALHOST, 0);
        let peer = socket(Ipv6Addr::LOCALHOST, 0);
        let stranger = socket(Ipv6Addr::LOCALHOST, 0);
        let local = SocketAddrV6::new(Ipv6Addr::LOCALHOST, port(&own), 0, 0);
        let mut shared = SharedPort::open(local, port(&peer)).unwrap();
        shared.send(b"question", Ipv6Addr::LOCALHOST).unwrap();
        let mut room = [0; 16];
        assert_eq!(peer.recv_from(&mut room).unwrap(), (8, local.into()), "from the port that both have");
        stranger.send_to(b"stranger", local).unwrap();
        peer.send_to(b"answer", local).unwrap();
        assert_eq!(heard(&mut shared), Some((Ipv6Addr::LOCALHOST, b"answer".to_vec())));
        for expected in [8, 6] {
            assert_eq!(own.recv(&mut room).unwrap(), expected);
        }
        assert!(shared.receive().unwrap().is_none());
        assert!(shared.send(&[0; 70_000], Ipv6Addr::LOCALHOST).is_err());
    });
}

#[test]
fn a_multicast_question_leaves_by_the_link_of_its_source() {
    in_namespace("shared port, multicast", || {
        let group: Ipv6Addr = "ff02::1:2".parse().unwrap();
        ip("link add near type veth peer name far");
        ip("link add other type veth peer name beyond");
        for (device, address) in
            [("near", "fe80::1"), ("far", "fe80::2"), ("other", "fe80::3"), ("beyond", "fe80::4")]
        {
            ip(&format!("link set {device} addrgenmode none up"));
            ip(&format!("addr add {address}/64 dev {device} nodad"));
        }
        let index = |name: &str| interface::index(name).unwrap();
        let server = socket(Ipv6Addr::UNSPECIFIED, 0);
        server.join_multicast_v6(&group, index("far")).unwrap();
        let local = SocketAddrV6::new("fe80::1".parse().unwrap(), 546, 0, index("near"));
        let mut shared = SharedPort::open(local, port(&server)).unwrap();
        // The link may need a moment.
        std::thread::sleep(Duration::from_millis(100));
        shared.send(b"question", group).unwrap();
        let mut room = [0; 16];
        let (length, from) = server.recv_from(&mut room).unwrap();
        let from = match from {
            std::net::SocketAddr::V6(from) => from,
            std::net::SocketAddr::V4(from) => panic!("{from}"),
        };
        assert_eq!((length, from.ip(), from.port(), from.scope_id()), (8, local.ip(), 546, index("far")));
        server.send_to(b"answer", from).unwrap();
        assert_eq!(heard(&mut shared), Some(("fe80::2".parse().unwrap(), b"answer".to_vec())));
    });
}
