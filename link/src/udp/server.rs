//! A UDP server's socket.

use super::address::{Address, bound_to};
use super::batch::{Arrivals, BATCH, Departures, LONGEST, Path};
use super::control::{self, Control};
use super::dealing;
use crate::syscall::{annotate, datagram_socket, failed, set_number, set_option, set_receive_room};
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;

/// Buffer of the socket in octets, in each direction. The kernel counts its own book-keeping, too: room for some 5,000 queries.
const ROOM: libc::c_int = 4 * 1024 * 1024;
/// IP_PMTUDISC_OMIT and IPV6_PMTUDISC_OMIT: path MTUs reported by ICMP are ignored, because they can be forged, and answers may be fragmented.
const OMIT: libc::c_int = 5;
/// RFC 8200 §5: what every link carries.
const IPV6_MIN_MTU: libc::c_int = 1_280;

/// With whom a socket shares its port.
#[derive(Clone, Copy)]
enum Sharing {
    Nobody,
    OwnSockets,
    OtherPrograms,
}

/// A UDP server's socket.
#[derive(Debug)]
pub struct UdpServer {
    fd: OwnedFd,
    local: SocketAddr,
    /// The last value of SO_RXQ_OVFL, which only grows, and wraps.
    overflow: u32,
    overflowed: u64,
    unsent: u64,
}

impl UdpServer {
    /// Sockets for one address, among which the kernel deals the peers out (SO_REUSEPORT): `count` of them, one at least. The address must not be
    /// another program's: its socket that would share it is not joined. `[::]` is IPv6 only.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `AddrInUse`: another process listens there. `AddrNotAvailable`: not an address of this host, or
    /// one that cannot be used yet. `PermissionDenied`: CAP_NET_BIND_SERVICE is missing.
    pub fn open(address: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let first = Self::bound(address, Sharing::Nobody)?;
        // The port that the kernel chose, if it was to choose.
        let address = first.local;
        if count > 1 {
            // Only after it was bound alone: a socket that is shared from the start would join another program's group.
            set_number(first.fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1, "SO_REUSEPORT")?;
        }
        let mut all = vec![first];
        for _ in 1..count {
            all.push(Self::bound(address, Sharing::OwnSockets)?);
        }
        Ok(all)
    }

    /// The same, first of all by these sockets of a previous process, in which datagrams may wait. Those that are too many are closed.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn open_with(address: SocketAddr, count: usize, inherited: Vec<OwnedFd>) -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = inherited.into_iter().take(count.max(1)).map(Self::adopt).collect();
        let Some(first) = all.first() else { return Self::open(address, count) };
        if all.len() < count {
            set_number(first.fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1, "SO_REUSEPORT")?;
        }
        while all.len() < count {
            all.push(Self::bound(address, Sharing::OwnSockets)?);
        }
        Ok(all)
    }

    fn adopt(fd: OwnedFd) -> Self {
        let local = bound_to(fd.as_fd()).ok().flatten();
        let local = local.unwrap_or(SocketAddr::from(([0; 4], 0)));
        Self { fd, local, overflow: 0, overflowed: 0, unsent: 0 }
    }

    /// A socket for one address, though another program may be bound to the same port of all addresses, if that allows it, too (SO_REUSEADDR). The
    /// kernel gives what comes for this address to the socket that is bound to it.
    ///
    /// # Errors
    /// As of [`Self::open`]; `AddrInUse`: the other program does not allow it, or is bound to this address.
    pub fn open_at_a_shared_port(address: SocketAddr) -> io::Result<Self> {
        Self::bound(address, Sharing::OtherPrograms)
    }

    /// From now on all datagrams of a client come to one of these sockets, all that are [open](Self::open) for an address in their order: that at
    /// [`place_of`](super::place_of) the client. Before that the kernel deals flows out.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn deal_by_client(servers: &[Self], prefix_length: u8) -> io::Result<()> {
        match servers {
            [first, _, ..] => {
                dealing::attach(first.fd.as_fd(), first.local.is_ipv4(), prefix_length, servers.len())
            }
            [_] | [] => Ok(()),
        }
    }

    /// From now on the kernel deals flows out, though sockets of a previous process may have [dealt clients out](Self::deal_by_client).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn deal_by_flow(servers: &[Self]) -> io::Result<()> {
        servers.first().map_or(Ok(()), |first| dealing::detach(first.fd.as_fd()))
    }

    /// A socket for an address, or for all, that has only what comes by one interface. It must be opened again when the interface is another one of
    /// this name.
    ///
    /// # Errors
    /// As of [`Self::open`]; `NoDevice` or another: there is no such interface.
    pub fn open_on(interface: &str, address: SocketAddr) -> io::Result<Self> {
        Self::bound_on(Some(interface), address, Sharing::Nobody)
    }

    fn bound(address: SocketAddr, shared: Sharing) -> io::Result<Self> {
        Self::bound_on(None, address, shared)
    }

    fn bound_on(interface: Option<&str>, address: SocketAddr, shared: Sharing) -> io::Result<Self> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let fd = datagram_socket(family).map_err(|error| annotate(error, "socket"))?;
        prepare(fd.as_fd(), address, shared)?;
        if let Some(interface) = interface {
            let mut name = [0_u8; libc::IFNAMSIZ];
            name.iter_mut().zip(interface.bytes()).for_each(|(to, from)| *to = from);
            // SAFETY: the option takes a device's name, of as many octets.
            unsafe {
                set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name, "SO_BINDTODEVICE")?
            };
        }
        let (name, length) = Address::of(address);
        // SAFETY: the address is valid for the call, which reads it alone, and of this length.
        if unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) } < 0 {
            return Err(failed("bind"));
        }
        let local = bound_to(fd.as_fd())?.unwrap_or(address);
        Ok(Self { fd, local, overflow: 0, overflowed: 0, unsent: 0 })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Datagrams that there was no room for when they came.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Datagrams that the kernel would not send.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// What becomes readable when datagrams wait.
    #[must_use]
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Receives what waits, at most a batch, and returns how many datagrams there are: none when nothing waits.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<usize> {
        arrivals.count = 0;
        let mut names = [Address::NONE; BATCH];
        let mut controls = [Control::EMPTY; BATCH];
        let mut pieces = [libc::iovec { iov_base: null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
        let rooms = arrivals.octets.chunks_exact_mut(LONGEST);
        let all = rooms.zip(&mut names).zip(&mut controls).zip(&mut pieces).zip(&mut headers);
        for ((((room, name), control), piece), header) in all {
            *piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut header.msg_hdr;
            header.msg_name = std::ptr::from_mut(name).cast();
            header.msg_namelen = Address::SIZE;
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            header.msg_control = std::ptr::from_mut(control).cast();
            header.msg_controllen = Control::SIZE as _;
        }
        // SAFETY: the headers point to names, pieces, controls and rooms that outlive the call and are not used otherwise meanwhile, with
        // their true lengths.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        let Ok(received) = usize::try_from(received) else { return nothing("recvmmsg") };
        self.note(arrivals, &headers[..received], &names);
        Ok(arrivals.count)
    }

    /// Takes note of what was received.
    fn note(&mut self, arrivals: &mut Arrivals, headers: &[libc::mmsghdr], names: &[Address; BATCH]) {
        let any = self.local.ip().is_unspecified();
        for (place, (header, name)) in headers.iter().zip(names).enumerate() {
            let said = control::read(&header.msg_hdr);
            if let Some(overflow) = said.overflow {
                self.overflowed += u64::from(overflow.wrapping_sub(self.overflow));
                self.overflow = overflow;
            }
            arrivals.lengths[place] = (header.msg_len as usize).min(LONGEST);
            let local = said.local.filter(|_| any);
            // The kernel gives no datagram of another family.
            let peer = name.read().unwrap_or(Path::NONE.peer);
            arrivals.paths[place] = Path { peer, local, interface: said.interface };
        }
        arrivals.count = headers.len();
    }

    /// Sends all of them. Datagrams that the kernel refuses are dropped and counted: the client retries, as after any loss.
    pub fn send(&mut self, departures: &mut Departures) {
        let count = std::mem::take(&mut departures.count);
        let mut names = [(Address::NONE, 0); BATCH];
        let mut controls = [Control::EMPTY; BATCH];
        let mut pieces = [libc::iovec { iov_base: null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
        for place in 0..count {
            let (message, path) = (&mut departures.messages[place], &departures.paths[place]);
            names[place] = Address::of(path.peer);
            pieces[place] = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
            let header = &mut headers[place].msg_hdr;
            header.msg_name = std::ptr::from_mut(&mut names[place].0).cast();
            header.msg_namelen = names[place].1;
            header.msg_iov = &mut pieces[place];
            header.msg_iovlen = 1;
            if let Some(local) = path.local {
                control::write(header, &mut controls[place], local, path.interface);
            }
        }
        let mut rest = &mut headers[..count];
        while !rest.is_empty() {
            // SAFETY: the headers point to names, pieces, controls and messages that outlive the call, with their true lengths.
            let sent = unsafe {
                libc::sendmmsg(self.fd.as_raw_fd(), rest.as_mut_ptr(), rest.len() as _, libc::MSG_DONTWAIT)
            };
            let done = match usize::try_from(sent) {
                Ok(sent) => sent.max(1),
                Err(_) => self.refused(io::Error::last_os_error().kind(), rest.len()),
            };
            rest = &mut rest[done..];
        }
    }

    /// How many of `left` are not to be tried again, since the first was refused.
    fn refused(&mut self, kind: io::ErrorKind, left: usize) -> usize {
        let given_up = match kind {
            io::ErrorKind::Interrupted => 0,
            io::ErrorKind::WouldBlock => left,
            // That one alone: its peer or its path is at fault.
            _ => 1,
        };
        self.unsent += given_up as u64;
        given_up
    }
}

/// Options that a server's socket has before it is bound.
fn prepare(fd: BorrowedFd<'_>, address: SocketAddr, shared: Sharing) -> io::Result<()> {
    let ip = |option, value, call| set_number(fd, libc::IPPROTO_IP, option, value, call);
    let ipv6 = |option, value, call| set_number(fd, libc::IPPROTO_IPV6, option, value, call);
    let socket = |option, value, call| set_number(fd, libc::SOL_SOCKET, option, value, call);
    // The address that a datagram came to is that of the socket, unless it has all.
    let wants_address = libc::c_int::from(address.ip().is_unspecified());
    if address.is_ipv4() {
        ip(libc::IP_PKTINFO, wants_address, "IP_PKTINFO")?;
        ip(libc::IP_MTU_DISCOVER, OMIT, "IP_MTU_DISCOVER")?;
    } else {
        ipv6(libc::IPV6_V6ONLY, 1, "IPV6_V6ONLY")?;
        ipv6(libc::IPV6_RECVPKTINFO, wants_address, "IPV6_RECVPKTINFO")?;
        ipv6(libc::IPV6_MTU_DISCOVER, OMIT, "IPV6_MTU_DISCOVER")?;
        ipv6(libc::IPV6_MTU, IPV6_MIN_MTU, "IPV6_MTU")?;
    }
    match shared {
        Sharing::Nobody => {}
        Sharing::OwnSockets => socket(libc::SO_REUSEPORT, 1, "SO_REUSEPORT")?,
        Sharing::OtherPrograms => socket(libc::SO_REUSEADDR, 1, "SO_REUSEADDR")?,
    }
    socket(libc::SO_RXQ_OVFL, 1, "SO_RXQ_OVFL")?;
    set_receive_room(fd, ROOM)?;
    let forced = socket(libc::SO_SNDBUFFORCE, ROOM, "SO_SNDBUFFORCE");
    forced.or_else(|_| socket(libc::SO_SNDBUF, ROOM, "SO_SNDBUF"))
}

/// The kernel's last word, when it may be that there is nothing.
fn nothing(call: &str) -> io::Result<usize> {
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(annotate(error, call)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv6Addr, UdpSocket};

    #[test]
    fn who_is_bound_to_an_address_hears_what_comes_for_it_though_another_has_the_port_of_all_addresses() {
        let fd = datagram_socket(libc::AF_INET6).unwrap();
        set_number(fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1, "SO_REUSEADDR").unwrap();
        let (name, length) = Address::of(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
        // SAFETY: the address is valid for the call, which reads it alone, and of this length.
        assert_eq!(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) }, 0);
        let port = bound_to(fd.as_fd()).unwrap().unwrap().port();
        let own = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        assert_eq!(UdpServer::open(own, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let mut server = UdpServer::open_at_a_shared_port(own).unwrap();
        let peer = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        peer.send_to(b"answer", own).unwrap();
        let mut arrivals = Arrivals::new();
        assert_eq!(server.receive(&mut arrivals).unwrap(), 1);
        // One that does not allow it is in the way.
        let strict = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        let taken = SocketAddr::from((Ipv6Addr::LOCALHOST, strict.local_addr().unwrap().port()));
        let refused = UdpServer::open_at_a_shared_port(taken).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
