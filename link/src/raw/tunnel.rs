//! The raw socket of one local address: receives packets with protocol 41 (RFC 4213), and sends control messages.

use super::gso::{Reading, reading};
use super::receive::Inbox;
use crate::syscall::{annotate, attach_filter, failed, raw_socket, set_number, socket_address4};
use crate::{BATCH_OCTETS, Link, LinkCounters};
use sixway_dataplane::Frame;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Tunnel packets for one of the host's own IPv4 addresses: whole IPv4 packets of protocol 41, fragments put together by the
/// kernel.
///
/// While it is open the kernel does not answer such packets with "protocol unreachable". (A host with the kernel's own `sit`
/// loaded answers those of unknown peers with "port unreachable" all the same, unless they are steered past it.)
///
/// As a link it only receives: outer packets leave through the TUN device. What is given to [`Link::send`] is counted as
/// refused.
#[derive(Debug)]
pub struct RawTunnel {
    inbox: Inbox,
    /// Takes each packet too, and keeps none. For the kernel a packet that finds no room in a socket was not taken, and it
    /// would answer a flood with "protocol unreachable".
    _witness: OwnedFd,
    address: Ipv4Addr,
    counters: LinkCounters,
}

impl RawTunnel {
    /// Opens the socket and binds it to one of the host's addresses.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_RAW is missing. `AddrNotAvailable`: the
    /// host does not have the address.
    pub fn open(address: Ipv4Addr) -> io::Result<Self> {
        let witness = raw_socket(libc::AF_INET, libc::IPPROTO_IPV6)?;
        keep_nothing(witness.as_fd())?;
        bind(witness.as_fd(), address)?;
        let fd = raw_socket(libc::AF_INET, libc::IPPROTO_IPV6)?;
        bind(fd.as_fd(), address)?;
        let mut inbox = Inbox::new(fd)?;
        inbox.discard_early()?;
        Ok(Self { inbox, _witness: witness, address, counters: LinkCounters::default() })
    }

    /// The local address.
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Sends an IPv6 packet to another tunnel end, in an IPv4 header that the kernel makes: from this address, with the
    /// host's usual TTL and DF clear.
    ///
    /// # Errors
    /// The kernel's error, with the destination: no route, no room, longer than IPv4 can carry.
    pub fn send_to(&self, inner: &[u8], destination: Ipv4Addr) -> io::Result<()> {
        send_to(self.inbox.descriptor(), inner, destination)
    }

    /// The sending half alone, for another thread.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn sender(&self) -> io::Result<TunnelSender> {
        let fd = self.inbox.descriptor().try_clone_to_owned();
        Ok(TunnelSender { fd: fd.map_err(|error| annotate(error, "dup"))? })
    }
}

/// The sending half of a [`RawTunnel`].
#[derive(Debug)]
pub struct TunnelSender {
    fd: OwnedFd,
}

impl TunnelSender {
    /// As [`RawTunnel::send_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_to(&self, inner: &[u8], destination: Ipv4Addr) -> io::Result<()> {
        send_to(self.fd.as_fd(), inner, destination)
    }
}

/// Lets a socket take every packet and keep none.
fn keep_nothing(fd: BorrowedFd<'_>) -> io::Result<()> {
    attach_filter(
        fd,
        &mut [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 }],
    )
}

fn bind(fd: BorrowedFd<'_>, address: Ipv4Addr) -> io::Result<()> {
    // The engine decides whether to accept errors about tunnel packets: without this, a forged one with a tiny MTU
    // would make the kernel cut what it forwards to that peer, for ten minutes. DF stays clear (RFC 4213 §3.2.1).
    let discover = libc::IP_PMTUDISC_OMIT;
    set_number(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, discover, "IP_MTU_DISCOVER")?;
    let name = socket_address4(address);
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address is a sockaddr_in that outlives the call, with its length.
    match unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) } {
        -1 => Err(failed(&format!("bind to {address}"))),
        _ => Ok(()),
    }
}

pub(super) fn send_to(fd: BorrowedFd<'_>, inner: &[u8], destination: Ipv4Addr) -> io::Result<()> {
    let to = socket_address4(destination);
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the packet and the sockaddr_in outlive the call, with their lengths.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            inner.as_ptr().cast(),
            inner.len(),
            libc::MSG_DONTWAIT,
            std::ptr::from_ref(&to).cast(),
            length,
        )
    };
    if sent < 0 { Err(failed(&format!("send to {destination}"))) } else { Ok(()) }
}

impl Link for RawTunnel {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let Self { inbox, counters, .. } = self;
        let (mut kept, mut octets) = (0, 0);
        while kept < frames.len() && octets < BATCH_OCTETS {
            let received = match inbox.receive(&mut frames[kept..], counters) {
                Ok(0) => break,
                Ok(received) => received,
                Err(_) if kept > 0 => break, // the next call reports it again
                Err(error) => return Err(annotate(error, "receive tunnel packets")),
            };
            for at in (kept..).take(received) {
                let Reading::Packet(offload) = reading(frames[at].bytes()) else {
                    counters.boundaries_lost += 1;
                    continue;
                };
                counters.received_gso += u64::from(offload.segments.is_some());
                frames[at].offload = offload;
                octets += frames[at].len();
                frames.swap(kept, at);
                kept += 1;
            }
        }
        Ok(kept)
    }

    fn send(&mut self, _: &mut Frame) -> io::Result<()> {
        self.counters.refused += 1;
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbox.descriptor())
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}
