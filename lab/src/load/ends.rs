//! The two ends of a load, and the threads that work for them.

use crate::affinity::pin_thread;
use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Octets that a socket has room for.
const ROOM: usize = 16 << 20;

/// The two ends of a load.
#[derive(Clone, Copy)]
pub struct Ends<'a> {
    /// Where requests or packets begin.
    pub client: &'a Namespace,
    /// Where they end.
    pub server: &'a Namespace,
    /// The CPU of all threads, if they have one: the tester's.
    pub core: Option<usize>,
}

/// A UDP socket in a namespace that does not wait, with much room.
pub(super) fn udp_socket(host: &Namespace, address: SocketAddr) -> Result<UdpSocket> {
    let socket = host.enter(|| UdpSocket::bind(address))?.asking(|| format!("binding {address}"))?;
    with_room(&socket)?;
    Ok(socket)
}

/// The unspecified address of the same family, and no port.
pub(super) fn any(like: SocketAddr) -> SocketAddr {
    let address = match like {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(address, 0)
}

/// Lets a socket not wait, and gives it much room; less if the kernel does not admit it.
pub(super) fn with_room(socket: &UdpSocket) -> Result<()> {
    socket.set_nonblocking(true).asking(|| "O_NONBLOCK".to_owned())?;
    setsockopt(socket, sockopt::RcvBufForce, &ROOM)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &ROOM))
        .asking(|| "SO_RCVBUF".to_owned())?;
    setsockopt(socket, sockopt::SndBufForce, &ROOM)
        .or_else(|_| setsockopt(socket, sockopt::SndBuf, &ROOM))
        .asking(|| "SO_SNDBUF".to_owned())
}

/// Work of a thread on this CPU.
pub(super) fn on<T>(core: Option<usize>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    core.map_or(Ok(()), pin_thread)?;
    work()
}

/// What a thread brought back.
pub(super) fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Failure::Unexpected("a thread of a load panicked".to_owned())))
}
