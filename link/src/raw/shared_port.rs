//! A UDP port of one address that another program also uses: that of a DHCPv6 client. Both receive the datagrams to it.
//!
//! The kernel gives a datagram to one UDP socket only, but a copy of it to each raw socket that a filter does not keep it from.

use crate::syscall::{annotate, attach_filter, failed, raw_socket, set_number};
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// RFC 768: source port, destination port, length, checksum.
const HEADER: usize = 8;
/// Where the checksum is.
const CHECKSUM: libc::c_int = 6;
/// Longest datagram that is received: what is longer is cut, and its length tells.
const LONGEST: usize = 4_096;

/// A raw socket for one UDP port of one address, and one port of peers.
#[derive(Debug)]
pub struct SharedPort {
    fd: OwnedFd,
    own: u16,
    peers: u16,
    octets: Vec<u8>,
}

impl SharedPort {
    /// Opens the socket. A link-local address has the number of its interface as its scope, and multicast leaves by this interface.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_RAW is missing. `AddrNotAvailable`: not an address of this host.
    pub fn open(local: SocketAddrV6, peers: u16) -> io::Result<Self> {
        let fd = raw_socket(libc::AF_INET6, libc::IPPROTO_UDP)?;
        // Before it is bound nothing passes.
        attach_filter(fd.as_fd(), &mut filter(peers, local.port()))?;
        // The kernel computes checksums, and drops what has a wrong one.
        set_number(fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_CHECKSUM, CHECKSUM, "IPV6_CHECKSUM")?;
        let name = name(*local.ip(), local.scope_id());
        // SAFETY: the sockaddr_in6 outlives the call, with its length.
        match unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&name).cast(), LENGTH) } {
            -1 => Err(failed(&format!("bind to {}", local.ip()))),
            _ => Ok(Self { fd, own: local.port(), peers, octets: vec![0; LONGEST] }),
        }
    }

    /// Sends a datagram to the port of a peer, or of all members of a multicast group.
    ///
    /// # Errors
    /// The kernel's error, with the destination: no route, no room. `InvalidInput`: it is longer than UDP can carry.
    pub fn send(&self, message: &[u8], destination: Ipv6Addr) -> io::Result<()> {
        let length = u16::try_from(HEADER + message.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too long for UDP"))?;
        let words = [self.own, self.peers, length, 0];
        let mut octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        octets.extend(message);
        let to = name(destination, 0);
        // SAFETY: the octets and the sockaddr_in6 outlive the call, with their lengths.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                octets.as_ptr().cast(),
                octets.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_ref(&to).cast(),
                LENGTH,
            )
        };
        if sent < 0 { Err(failed(&format!("send to {destination}"))) } else { Ok(()) }
    }

    /// Receives a datagram that came from peers' port, with its source. `None`: nothing waits.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&mut self) -> io::Result<Option<(Ipv6Addr, &[u8])>> {
        let (mut from, mut room) = (name(Ipv6Addr::UNSPECIFIED, 0), LENGTH);
        // SAFETY: the octets, the sockaddr_in6 and its length outlive the call, and are not used otherwise meanwhile.
        let received = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                self.octets.as_mut_ptr().cast(),
                self.octets.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_mut(&mut from).cast(),
                &mut room,
            )
        };
        let Ok(received) = usize::try_from(received) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(annotate(error, "receive")),
            };
        };
        let message = self.octets.get(HEADER..received).unwrap_or_default();
        Ok(Some((Ipv6Addr::from(from.sin6_addr.s6_addr), message)))
    }
}

const LENGTH: libc::socklen_t = size_of::<libc::sockaddr_in6>() as libc::socklen_t;

/// An address for the calls on raw sockets, whose port says nothing.
const fn name(address: Ipv6Addr, scope: u32) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: address.octets() },
        sin6_scope_id: scope,
    }
}

/// The classic BPF program: datagrams of these ports whole, and nothing else. It reads from the UDP header on.
fn filter(source: u16, destination: u16) -> [libc::sock_filter; 6] {
    let step = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let half = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    [
        step(half, 0, 0),
        step(equal, 3, source.into()),
        step(half, 0, 2),
        step(equal, 1, destination.into()),
        step(end, 0, u32::MAX),
        step(end, 0, 0),
    ]
}
