//! The UDP socket of a tunnel that goes through NATs (RFC 4380): its datagrams are frames with the IPv4 and UDP headers that they had.
//!
//! The kernel joins datagrams of one sender inbound (UDP_GRO), and cuts what is joined outbound (UDP_SEGMENT): both save most of what
//! a datagram costs. A frame is always one datagram.

use super::address::{Address, bound_to};
use super::departing::Departing;
use super::joined::Joined;
use crate::syscall::{annotate, datagram_socket, failed, set_number, set_receive_room};
use crate::{BATCH_OCTETS, Link, LinkCounters};
use sixway_dataplane::{Frame, Offload};
use sixway_wire::{IPV4_HEADER, Ipv4Header, UDP_HEADER, UdpHeader, protocol};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Buffer of the socket in octets, in each direction. The kernel counts its own book-keeping, too.
const ROOM: libc::c_int = 8 * 1024 * 1024;

/// A UDP socket at an address and a port of this host.
///
/// Received frames have a UDP checksum of zero: the kernel checked it. What is sent must be IPv4 without options, and UDP; the kernel writes
/// both headers itself, from the destination, the TOS field and the payload.
#[derive(Debug)]
pub struct UdpTunnel {
    fd: OwnedFd,
    local: SocketAddrV4,
    joined: Joined,
    departing: Departing,
    counters: LinkCounters,
}

impl UdpTunnel {
    /// Opens the socket and binds it. No other socket may have the same address and port. Port 0: the kernel chooses.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `AddrInUse`: another process listens there. `AddrNotAvailable`: not an address of this host.
    pub fn open(local: SocketAddrV4) -> io::Result<Self> {
        let fd = datagram_socket(libc::AF_INET).map_err(|error| annotate(error, "socket"))?;
        prepare(fd.as_fd())?;
        let (name, length) = Address::of(local.into());
        // SAFETY: the address is valid for the call, which reads it alone, and of this length.
        if unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) } < 0 {
            return Err(failed(&format!("bind to {local}")));
        }
        let local = match bound_to(fd.as_fd())? {
            Some(SocketAddr::V4(bound)) => bound,
            Some(SocketAddr::V6(_)) | None => local,
        };
        Ok(Self {
            fd,
            local,
            joined: Joined::new(),
            departing: Departing::new(),
            counters: LinkCounters::default(),
        })
    }

    /// Where it is bound.
    pub const fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// A sending half, for another thread.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn sender(&self) -> io::Result<UdpTunnelSender> {
        let fd = self.fd.try_clone().map_err(|error| annotate(error, "dup"))?;
        Ok(UdpTunnelSender { fd, local: self.local })
    }
}

/// Sends single datagrams from the port of a [`UdpTunnel`].
#[derive(Debug)]
pub struct UdpTunnelSender {
    fd: OwnedFd,
    local: SocketAddrV4,
}

impl UdpTunnelSender {
    /// Where its datagrams come from.
    pub const fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// Sends one.
    ///
    /// # Errors
    /// The kernel's error, with the destination.
    pub fn send_to(&self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        let (name, length) = Address::of(to.into());
        // SAFETY: the payload and the address outlive the call, with their lengths.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_ref(&name).cast(),
                length,
            )
        };
        if sent < 0 { Err(failed(&format!("send to {to}"))) } else { Ok(()) }
    }
}

fn prepare(fd: BorrowedFd<'_>) -> io::Result<()> {
    let socket = |option, value, call| set_number(fd, libc::SOL_SOCKET, option, value, call);
    let ip = |option, value, call| set_number(fd, libc::IPPROTO_IP, option, value, call);
    // ICMP errors can be forged: DF stays clear, and they do not change the path MTU.
    ip(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT, "IP_MTU_DISCOVER")?;
    ip(libc::IP_RECVTOS, 1, "IP_RECVTOS")?;
    socket(libc::SO_RXQ_OVFL, 1, "SO_RXQ_OVFL")?;
    set_number(fd, libc::SOL_UDP, libc::UDP_GRO, 1, "UDP_GRO")?;
    set_receive_room(fd, ROOM)?;
    let forced = socket(libc::SO_SNDBUFFORCE, ROOM, "SO_SNDBUFFORCE");
    forced.or_else(|_| socket(libc::SO_SNDBUF, ROOM, "SO_SNDBUF"))
}

/// Makes the frame of a datagram; `None`: the frame has no room for it.
fn frame_of(
    frame: &mut Frame,
    (from, to): (SocketAddrV4, SocketAddrV4),
    tos: u8,
    payload: &[u8],
) -> Option<()> {
    let datagram = UDP_HEADER + payload.len();
    let mut header = Ipv4Header::new(*from.ip(), *to.ip(), protocol::UDP, datagram);
    header.tos = tos;
    let length = IPV4_HEADER + datagram;
    let (front, behind) = frame.space().get_mut(..length)?.split_first_chunk_mut::<IPV4_HEADER>()?;
    header.write(front);
    let (front, behind) = behind.split_first_chunk_mut::<UDP_HEADER>()?;
    UdpHeader::new(from.port(), to.port(), payload.len()).write(front);
    behind.copy_from_slice(payload);
    frame.received(length, Offload::default());
    Some(())
}

/// Where a frame is to go: destination, TOS and payload. `None`: it is not a whole UDP datagram in IPv4.
fn datagram_of(packet: &[u8]) -> Option<(SocketAddrV4, u8, &[u8])> {
    let (header, behind) = Ipv4Header::split(packet).ok()?;
    if header.protocol != protocol::UDP || header.is_fragment() {
        return None;
    }
    let (udp, payload) = UdpHeader::split(behind).ok()?;
    Some((SocketAddrV4::new(header.destination, udp.destination), header.tos, payload))
}

impl Link for UdpTunnel {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let Self { fd, local, joined, counters, .. } = self;
        let (mut kept, mut octets) = (0, 0);
        while kept < frames.len() && octets < BATCH_OCTETS {
            let Some(datagram) = joined.next() else {
                match joined.receive(fd.as_fd(), counters) {
                    Ok(0) => break,
                    Ok(_) => continue,
                    Err(_) if kept > 0 => break, // the next call reports it again
                    Err(error) => return Err(annotate(error, "receive UDP datagrams")),
                }
            };
            if frame_of(&mut frames[kept], (datagram.from, *local), datagram.tos, datagram.payload).is_none()
            {
                counters.truncated += 1;
                continue;
            }
            let length = frames[kept].len();
            counters.received += 1;
            counters.received_octets += length as u64;
            octets += length;
            kept += 1;
        }
        Ok(kept)
    }

    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        let Some((to, tos, payload)) = datagram_of(frame.bytes()) else {
            self.counters.refused += 1;
            return Ok(());
        };
        if !self.departing.has_room(payload.len()) {
            self.departing.send_all(self.fd.as_fd(), &mut self.counters);
        }
        self.departing.add(to, tos, payload);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.departing.send_all(self.fd.as_fd(), &mut self.counters);
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
