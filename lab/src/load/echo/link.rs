//! How a host sends echo requests over IPv6 and receives the replies: natively, or as a 6to4 host without help of its kernel.

use crate::failure::{Asking as _, Result};
use crate::load::raw_socket::{icmpv6_socket, tunnel_socket};
use crate::packet::{echo_request, six_to_four, tunnelled_echo_reply};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use sixway_wire::{ICMP_HEADER, IPV6_HEADER, IcmpHeader, icmpv6};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// As which host requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A 6to4 host with this IPv4 address, through this relay.
    SixToFour {
        /// The host's address, which its IPv6 address embeds.
        host: Ipv4Addr,
        /// The relay's.
        relay: Ipv4Addr,
    },
    /// A host with native IPv6; its kernel chooses the source.
    Native,
}

/// An open socket for one of them. It never waits but in [`Link::wait`].
pub(super) struct Link {
    from: From,
    socket: UdpSocket,
    octets: usize,
}

/// Identifier and sequence number.
pub(super) type Numbers = [u16; 2];

impl Link {
    /// Opens it in the namespace of this thread; `octets` is the length of a request's IPv6 packet.
    pub(super) fn open(from: From, octets: usize) -> Result<Self> {
        let socket = match from {
            From::SixToFour { relay, .. } => tunnel_socket(relay)?,
            From::Native => icmpv6_socket()?,
        };
        socket.set_nonblocking(true).asking(|| "setting a socket to not wait".to_owned())?;
        Ok(Self { from, socket, octets: octets.saturating_sub(IPV6_HEADER) })
    }

    /// Sends a request.
    pub(super) fn send(&self, target: Ipv6Addr, numbers: Numbers) -> Result<()> {
        let sent = match self.from {
            From::SixToFour { host, .. } => {
                self.socket.send(&echo_request(six_to_four(host, 1), target, numbers, self.octets))
            }
            From::Native => {
                // The kernel writes the header of IPv6 and the checksum.
                let request = echo_request(Ipv6Addr::UNSPECIFIED, target, numbers, self.octets);
                self.socket.send_to(&request[IPV6_HEADER..], SocketAddr::new(IpAddr::V6(target), 0))
            }
        };
        sent.asking(|| format!("sending an echo request to {target}")).map(drop)
    }

    /// The next reply that has come, if there is one; other packets are skipped.
    pub(super) fn reply(&self) -> Result<Option<Numbers>> {
        let mut octets = [0; 2_048];
        loop {
            let length = match self.socket.recv(&mut octets) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).asking(|| "receiving echo replies".to_owned()),
            };
            let reply = match self.from {
                From::SixToFour { .. } => tunnelled_echo_reply(&octets[..length]),
                From::Native => native_reply(&octets[..length]),
            };
            if reply.is_some() {
                return Ok(reply);
            }
        }
    }

    /// Waits until something has come, `limit` at most.
    pub(super) fn wait(&self, limit: Duration) -> Result<()> {
        let mut one = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut one, Some(TimeSpec::from_duration(limit)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).asking(|| "waiting for echo replies".to_owned()),
        }
    }
}

/// A message that begins with its ICMPv6 header.
fn native_reply(message: &[u8]) -> Option<Numbers> {
    let header = message.get(..ICMP_HEADER).and_then(|header| IcmpHeader::read(header).ok())?;
    let is_reply = (header.kind, header.code) == (icmpv6::ECHO_REPLY, 0);
    is_reply.then(|| [header.identifier(), header.sequence()])
}
