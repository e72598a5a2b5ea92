//! How a host sends echo requests and receives the replies: natively over IPv4 or IPv6, or as a 6to4 host without help of its kernel.

use crate::failure::{Asking as _, Result};
use crate::load::ends::with_room;
use crate::load::raw_socket::{icmpv4_socket, icmpv6_socket, tunnel_socket};
use crate::load::stamp::{FILL, STAMP, Stamp};
use crate::packet::{ipv6, six_to_four};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use sixway_wire::{
    ICMP_HEADER, IPV4_HEADER, IPV6_HEADER, IcmpHeader, Ipv4Header, Ipv6Header, icmpv4, icmpv6, protocol,
};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
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
    /// A host with IPv4; its kernel chooses the source.
    Ipv4,
}

impl From {
    /// Octets of the IP header of a request, without that of a tunnel.
    const fn header(self) -> usize {
        match self {
            Self::SixToFour { .. } | Self::Native => IPV6_HEADER,
            Self::Ipv4 => IPV4_HEADER,
        }
    }
}

/// An open socket for one of them. It never waits but in [`Link::wait`].
pub(super) struct Link {
    from: From,
    socket: UdpSocket,
    /// Octets behind the ICMP header.
    data: usize,
}

/// Identifier and sequence number.
pub(super) type Numbers = [u16; 2];

impl Link {
    /// Opens it in the namespace of this thread; `octets` is the length of a request's IP packet.
    pub(super) fn open(from: From, octets: usize) -> Result<Self> {
        let socket = match from {
            From::SixToFour { relay, .. } => tunnel_socket(relay)?,
            From::Native => icmpv6_socket()?,
            From::Ipv4 => icmpv4_socket()?,
        };
        with_room(&socket)?;
        Ok(Self { from, socket, data: octets.saturating_sub(from.header() + ICMP_HEADER) })
    }

    /// Whether a request has room for a stamp.
    pub(super) const fn has_room(&self) -> bool {
        self.data >= STAMP
    }

    /// Sends a request; its data begin with the stamp, if there is one.
    pub(super) fn send(&self, target: IpAddr, numbers: Numbers, stamp: Option<Stamp>) -> Result<()> {
        self.try_send(target, numbers, stamp).asking(|| format!("sending an echo request to {target}"))
    }

    /// The same, with the kernel's own error.
    pub(super) fn try_send(&self, target: IpAddr, numbers: Numbers, stamp: Option<Stamp>) -> io::Result<()> {
        let mut data = vec![FILL; self.data];
        stamp.into_iter().for_each(|stamp| stamp.write(&mut data));
        let [identifier, sequence] = numbers;
        let message = |header: IcmpHeader| [&header.octets()[..], &data].concat();
        let sent = match (self.from, target) {
            (From::SixToFour { host, .. }, IpAddr::V6(target)) => {
                let source = six_to_four(host, 1);
                let header = IcmpHeader::echo(icmpv6::ECHO_REQUEST, identifier, sequence);
                let message = message(header.with_checksum6(source, target, &data));
                self.socket.send(&ipv6(source, target, protocol::ICMPV6, &message))?
            }
            (From::Native, IpAddr::V6(_)) => {
                // The kernel writes the header of IPv6 and the checksum.
                let header = IcmpHeader::echo(icmpv6::ECHO_REQUEST, identifier, sequence);
                self.socket.send_to(&message(header), SocketAddr::new(target, 0))?
            }
            (From::Ipv4, IpAddr::V4(_)) => {
                let header = IcmpHeader::echo(icmpv4::ECHO_REQUEST, identifier, sequence);
                self.socket.send_to(&message(header.with_checksum4(&data)), SocketAddr::new(target, 0))?
            }
            (From::SixToFour { .. } | From::Native, IpAddr::V4(_)) | (From::Ipv4, IpAddr::V6(_)) => {
                return Err(ErrorKind::InvalidInput.into());
            }
        };
        match sent {
            0 => Err(ErrorKind::WriteZero.into()),
            _ => Ok(()),
        }
    }

    /// The next reply that has come, if there is one: its numbers, and its data are given to `look`. Other packets are skipped.
    pub(super) fn reply(&self, mut look: impl FnMut(&[u8])) -> Result<Option<Numbers>> {
        let mut octets = [0; 2_048];
        loop {
            let length = match self.socket.recv(&mut octets) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).asking(|| "receiving echo replies".to_owned()),
            };
            if let Some((header, data)) = self.read(&octets[..length]) {
                look(data);
                return Ok(Some([header.identifier(), header.sequence()]));
            }
        }
    }

    /// A reply's ICMP header and data.
    fn read<'a>(&self, octets: &'a [u8]) -> Option<(IcmpHeader, &'a [u8])> {
        let (message, kind) = match self.from {
            From::SixToFour { .. } => {
                let (header, message) =
                    Ipv6Header::split_quoted(Ipv4Header::split_quoted(octets).ok()?.1).ok()?;
                ((header.next_header == protocol::ICMPV6).then_some(message)?, icmpv6::ECHO_REPLY)
            }
            From::Native => (octets, icmpv6::ECHO_REPLY),
            From::Ipv4 => (Ipv4Header::split_quoted(octets).ok()?.1, icmpv4::ECHO_REPLY),
        };
        let (header, data) = IcmpHeader::split(message).ok()?;
        ((header.kind, header.code) == (kind, 0)).then_some((header, data))
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
