//! Router solicitations and advertisements between two network namespaces.

use crate::support;
use crate::support::in_namespace;
use crate::support::peer::Peer;
use sixway_link::neighbour_discovery::{ALL_NODES, ALL_ROUTERS, NeighbourDiscovery, ReceivedMessage};
use sixway_link::{interface, sysctl::Sysctl};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const SOLICITATION: [u8; 8] = [133, 0, 0, 0, 0, 0, 0, 0];
const ADVERTISEMENT: [u8; 16] = [134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];

/// Opens a socket once the device has its address.
fn open(device: &str) -> NeighbourDiscovery {
    let start = Instant::now();
    while interface::link_local(device).is_err() {
        assert!(start.elapsed() < Duration::from_secs(5), "{device} got no address");
        std::thread::sleep(Duration::from_millis(10));
    }
    NeighbourDiscovery::open(device).unwrap()
}

/// What comes to the socket within a second.
fn receive(socket: &NeighbourDiscovery) -> Option<(ReceivedMessage, Vec<u8>)> {
    let mut poll = libc::pollfd { fd: socket.poll_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, valid for the call.
    unsafe { libc::poll(&mut poll, 1, 1_000) };
    let mut buffer = [0; 1_500];
    let message = socket.receive(&mut buffer).unwrap()?;
    Some((message, buffer[..message.length].to_vec()))
}

fn without_waiting_for_duplicates() {
    for device in ["default", "all"] {
        Sysctl::set(format!("/proc/sys/net/ipv6/conf/{device}/accept_dad"), "0").unwrap().keep();
        Sysctl::set(format!("/proc/sys/net/ipv6/conf/{device}/router_solicitations"), "0").unwrap().keep();
    }
}

#[test]
fn solicitations_and_advertisements_go_both_ways_with_hop_limit_255() {
    in_namespace("discovery", || {
        without_waiting_for_duplicates();
        let peer = Peer::joined();
        let here = open("near");
        let there = peer.inside(|| open("far"));
        let own = interface::link_local("near").unwrap();
        let other = peer.inside(|| interface::link_local("far").unwrap());
        while receive(&here).is_some() {} // the kernel's own solicitations

        peer.inside(|| there.send(&SOLICITATION, ALL_ROUTERS)).unwrap();
        let (message, octets) = receive(&here).unwrap();
        assert_eq!((message.source, message.destination), (other, ALL_ROUTERS));
        assert_eq!((message.hop_limit, message.interface), (255, interface::index("near").unwrap()));
        assert_eq!((octets[0], octets[1], octets.len()), (133, 0, 8));

        for destination in [ALL_NODES, other] {
            here.send(&ADVERTISEMENT, destination).unwrap();
            let (message, octets) = receive(&there).unwrap();
            assert_eq!((message.source, message.destination, message.hop_limit), (own, destination, 255));
            assert_eq!(octets[4..], ADVERTISEMENT[4..]);
            assert_ne!(octets[2..4], [0, 0], "the kernel fills in the checksum");
        }
        assert!(receive(&here).is_none(), "one does not hear oneself");
    });
}

#[test]
fn other_messages_and_other_interfaces_are_not_heard() {
    in_namespace("filter", || {
        without_waiting_for_duplicates();
        let peer = Peer::joined();
        let here = open("near");
        let there = peer.inside(|| open("far"));
        support::ip("link add other type veth peer name another");
        support::ip("link set other up");
        support::ip("link set another up");
        let other = open("other");
        let another = open("another");
        while receive(&here).is_some() {}
        let mut echo = SOLICITATION;
        echo[0] = 128;
        peer.inside(|| there.send(&echo, ALL_NODES)).unwrap();
        other.send(&SOLICITATION, ALL_ROUTERS).unwrap();
        assert!(receive(&here).is_none());
        assert!(receive(&another).is_some());
    });
}

#[test]
fn an_interface_without_a_link_local_address_is_reported() {
    in_namespace("no address", || {
        support::ip("link add near type veth peer name far");
        let socket = NeighbourDiscovery::open("near").unwrap();
        let error = socket.send(&ADVERTISEMENT, ALL_NODES).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable, "{error}");
        let error = NeighbourDiscovery::open("nothing").unwrap_err();
        assert!(error.to_string().contains("nothing"), "{error}");
    });
}
