//! UDP servers and exchanges, on the loopback interface and in network namespaces.

use crate::support::{in_namespace, ip};
use sixway_link::udp::{Arrivals, BATCH, Departures};
use sixway_link::{UdpExchange, UdpServer, sysctl::Sysctl};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

fn wait(fd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, valid for the call.
    unsafe { libc::poll(&mut poll, 1, 1_000) > 0 }
}

fn one(address: &str) -> UdpServer {
    UdpServer::open(address.parse().unwrap(), 1).unwrap().pop().unwrap()
}

fn client(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket
}

/// Sends back what came, with an exclamation mark; how many there were.
fn echo(server: &mut UdpServer) -> usize {
    let (mut arrivals, mut departures) = (Arrivals::new(), Departures::new());
    let count = server.receive(&mut arrivals).unwrap();
    for (path, octets) in arrivals.iter() {
        let room = departures.room();
        room.clear();
        room.extend_from_slice(octets);
        room.push(b'!');
        departures.push(*path);
    }
    server.send(&mut departures);
    count
}

/// Who answered `client` when it asked `to`, and what.
fn ask(client: &UdpSocket, server: &mut UdpServer, to: SocketAddr) -> (SocketAddr, Vec<u8>) {
    client.send_to(b"why", to).unwrap();
    assert!(wait(server.poll_fd()));
    assert_eq!(echo(server), 1);
    let mut room = [0; 64];
    let (length, from) = client.recv_from(&mut room).unwrap();
    (from, room[..length].to_vec())
}

#[test]
fn an_answer_leaves_from_the_address_that_was_asked() {
    let mut server = one("0.0.0.0:0");
    let port = server.local().port();
    for host in [1, 2, 77] {
        let to = SocketAddr::from(([127, 0, 0, host], port));
        assert_eq!(ask(&client("127.0.0.1"), &mut server, to), (to, b"why!".to_vec()));
    }
    let mut server = one("127.0.0.3:0");
    let to = server.local();
    assert_eq!(ask(&client("127.0.0.1"), &mut server, to).0, to);
}

#[test]
fn an_answer_leaves_from_the_ipv6_address_that_was_asked() {
    in_namespace("udp-addresses", || {
        Sysctl::set("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap().keep();
        for address in ["2001:db8::1", "2001:db8::2", "fe80::53"] {
            ip(&format!("addr add {address}/64 dev lo nodad"));
        }
        std::thread::sleep(Duration::from_millis(100));
        let mut server = one("[::]:53");
        for address in ["2001:db8::1", "2001:db8::2", "::1"] {
            let to: SocketAddr = format!("[{address}]:53").parse().unwrap();
            assert_eq!(ask(&client("2001:db8::2"), &mut server, to), (to, b"why!".to_vec()));
        }
        let index = sixway_link::interface::index("lo").unwrap();
        let link_local = |address: &str, port| {
            SocketAddr::V6(std::net::SocketAddrV6::new(address.parse().unwrap(), port, 0, index))
        };
        let asking = UdpSocket::bind(link_local("fe80::53", 0)).unwrap();
        asking.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let to = link_local("fe80::53", 53);
        assert_eq!(ask(&asking, &mut server, to).0, to);
        assert_eq!(server.unsent(), 0);
        // The IPv4 port is another.
        drop(one("0.0.0.0:53"));
    });
}

#[test]
fn more_than_a_batch_comes_in_several() {
    let mut server = one("[::1]:0");
    let client = client("::1");
    for number in 0..BATCH + 6 {
        client.send_to(format!("{number}").as_bytes(), server.local()).unwrap();
    }
    let mut arrivals = Arrivals::new();
    assert_eq!(server.receive(&mut arrivals).unwrap(), BATCH);
    let texts: Vec<Vec<u8>> = arrivals.iter().map(|(_, octets)| octets.to_vec()).collect();
    assert_eq!((texts[0].as_slice(), texts[63].as_slice()), (b"0".as_slice(), b"63".as_slice()));
    assert!(arrivals.iter().all(|(path, _)| path.peer == client.local_addr().unwrap()));
    assert_eq!(server.receive(&mut arrivals).unwrap(), 6);
    assert_eq!(arrivals.iter().len(), 6);
    assert_eq!(server.receive(&mut arrivals).unwrap(), 0);
    assert_eq!((arrivals.iter().len(), server.overflowed()), (0, 0));
}

#[test]
fn a_datagram_that_cannot_be_sent_does_not_keep_the_others_back() {
    let mut server = one("127.0.0.1:0");
    let clients: Vec<UdpSocket> = (0..2).map(|_| client("127.0.0.1")).collect();
    for client in &clients {
        client.send_to(b"x", server.local()).unwrap();
    }
    let (mut arrivals, mut departures) = (Arrivals::new(), Departures::new());
    assert_eq!(server.receive(&mut arrivals).unwrap(), 2);
    let paths: Vec<_> = arrivals.iter().map(|(path, _)| *path).collect();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let bad = sixway_link::udp::Path { peer: nowhere, ..paths[0] };
    for path in [bad, paths[0], bad, paths[1]] {
        departures.room().clear();
        departures.room().push(7);
        departures.push(path);
    }
    server.send(&mut departures);
    assert!(departures.is_empty());
    for client in &clients {
        assert_eq!(client.recv(&mut [0; 8]).unwrap(), 1);
    }
    assert_eq!(server.unsent(), 2);
}

#[test]
fn several_sockets_share_an_address_but_nobody_else_does() {
    let mut servers = UdpServer::open("127.0.0.1:0".parse().unwrap(), 4).unwrap();
    let address = servers[0].local();
    assert!(servers.iter().all(|server| server.local() == address));
    let clients: Vec<UdpSocket> = (0..64).map(|_| client("127.0.0.1")).collect();
    for client in &clients {
        client.send_to(b"x", address).unwrap();
    }
    let counts: Vec<usize> = servers.iter_mut().map(echo).collect();
    assert_eq!(counts.iter().sum::<usize>(), 64);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    for count in [1, 4] {
        assert_eq!(UdpServer::open(address, count).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}

#[test]
fn an_address_that_is_not_ours_is_reported_with_the_call_that_failed() {
    let error = UdpServer::open("192.0.2.1:53".parse().unwrap(), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    assert!(error.to_string().starts_with("bind: "), "{error}");
}

#[test]
fn a_question_goes_from_a_port_of_its_own_and_hears_its_peer_alone() {
    let server = client("127.0.0.1");
    let mut ports = HashSet::new();
    for _ in 0..32 {
        let exchange = UdpExchange::open(server.local_addr().unwrap()).unwrap();
        exchange.send(b"why").unwrap();
        let mut room = [0; 16];
        assert_eq!(exchange.receive(&mut room).unwrap(), None);
        let (length, from) = server.recv_from(&mut room).unwrap();
        assert_eq!(&room[..length], b"why");
        client("127.0.0.1").send_to(b"forged", from).unwrap();
        server.send_to(b"because", from).unwrap();
        assert!(wait(exchange.poll_fd()));
        assert_eq!(exchange.receive(&mut room).unwrap(), Some(7));
        assert_eq!(&room[..7], b"because");
        assert_eq!(exchange.receive(&mut room).unwrap(), None);
        ports.insert(from.port());
    }
    assert!(ports.len() > 24, "{ports:?}");
}

#[test]
fn where_nobody_listens_the_exchange_says_so() {
    for address in ["127.0.0.1", "::1"] {
        let gone = client(address).local_addr().unwrap();
        let exchange = UdpExchange::open(gone).unwrap();
        // A process that another test has just forked has the closed socket open until it becomes another program.
        let is_refused = (0..3).any(|_| {
            exchange.send(b"why").unwrap();
            wait(exchange.poll_fd())
        });
        assert!(is_refused);
        let error = exchange.receive(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn where_no_route_leads_the_exchange_cannot_be_opened() {
    in_namespace("udp-unreachable", || {
        for peer in ["192.0.2.1:53", "[2001:db8::1]:53"] {
            let error = UdpExchange::open(peer.parse().unwrap()).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable),
                "{error}"
            );
        }
    });
}
