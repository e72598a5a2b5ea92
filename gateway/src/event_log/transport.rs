//! Sends messages to a server: over UDP, each in a datagram, over TCP, or over TLS. Nothing here waits but [`Transport::wait`]: a server
//! that is slow, or does not answer, does not keep its thread from taking records.

use super::tls::{Tls, TlsStream};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, socket};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// How long connecting may take, with TLS.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of reads in one turn: the server's data are ignored, and a server that never stops does not keep the thread busy.
const READS: usize = 16;

/// The connection to a server.
pub(super) struct Transport {
    server: SocketAddr,
    way: Way,
    stage: Stage,
    /// When connecting began.
    began: Instant,
}

/// By what messages go.
pub(super) enum Way {
    Udp,
    Tcp,
    Tls(Tls),
}

/// How far a connection is.
enum Stage {
    Closed,
    Connecting(TcpStream),
    Shaking(Box<TlsStream>),
    Open(Socket),
}

enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
}

impl Transport {
    pub(super) fn new(server: SocketAddr, way: Way) -> Self {
        Self { server, way, stage: Stage::Closed, began: Instant::now() }
    }

    /// Whether there is a connection.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Whether it is closed, and not being opened.
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    pub(super) fn close(&mut self) {
        self.stage = Stage::Closed;
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.began = Instant::now();
        if let Way::Tls(tls) = &mut self.way {
            tls.prepare()?;
        }
        self.stage = match &self.way {
            Way::Udp => {
                let any: IpAddr = match self.server {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((any, 0))?;
                // Errors of ICMP come to a connected socket alone.
                socket.connect(self.server)?;
                socket.set_nonblocking(true)?;
                Stage::Open(Socket::Udp(socket))
            }
            Way::Tcp | Way::Tls(_) => Stage::Connecting(stream_to(self.server)?),
        };
        Ok(())
    }

    /// Continues to connect; returns whether there is a connection. After an error it is closed.
    ///
    /// # Errors
    /// The kernel's, or the server does not prove who it is, or takes too long.
    pub(super) fn drive(&mut self) -> io::Result<bool> {
        let stage = std::mem::replace(&mut self.stage, Stage::Closed);
        self.stage = match stage {
            Stage::Connecting(stream) => self.connected(stream)?,
            Stage::Shaking(stream) => shaken(stream)?,
            Stage::Closed | Stage::Open(_) => stage,
        };
        let is_late = !self.is_open() && !self.is_closed() && self.began.elapsed() >= PATIENCE;
        if is_late {
            self.close();
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the server does not answer"));
        }
        Ok(self.is_open())
    }

    fn connected(&mut self, stream: TcpStream) -> io::Result<Stage> {
        if !is_ready(stream.as_fd(), PollFlags::POLLOUT, Duration::ZERO) {
            return Ok(Stage::Connecting(stream));
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nodelay(true)?;
        match &mut self.way {
            Way::Tls(tls) => shaken(Box::new(tls.begin(stream)?)),
            Way::Udp | Way::Tcp => Ok(Stage::Open(Socket::Tcp(stream))),
        }
    }

    /// The known data about the last messages: over UDP, that no server received them, over a stream, that the server has closed it. Then
    /// the connection is closed.
    ///
    /// # Errors
    /// They were not received.
    pub(super) fn fault(&mut self) -> io::Result<()> {
        let outcome = match &mut self.stage {
            Stage::Closed | Stage::Connecting(_) | Stage::Shaking(_) => {
                Err(io::ErrorKind::NotConnected.into())
            }
            Stage::Open(Socket::Udp(socket)) => {
                socket.take_error().and_then(|error| error.map_or(Ok(()), Err))
            }
            Stage::Open(Socket::Tcp(stream)) => ignored(|octets| stream.read(octets)),
            Stage::Open(Socket::Tls(stream)) => ignored(|octets| stream.read(octets)),
        };
        self.closed_by(outcome)
    }

    /// Sends octets, as many as there is room for; a datagram as a whole. After an error the connection is closed.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn send(&mut self, octets: &[u8]) -> io::Result<usize> {
        let sent = match &mut self.stage {
            Stage::Closed | Stage::Connecting(_) | Stage::Shaking(_) => {
                Err(io::ErrorKind::NotConnected.into())
            }
            Stage::Open(Socket::Udp(socket)) => socket.send(octets),
            Stage::Open(Socket::Tcp(stream)) => stream.write(octets),
            // Data that TLS has encrypted are sent first: it keeps one message at most.
            Stage::Open(Socket::Tls(stream)) => flushed(stream).and_then(|is_flushed| {
                let taken = if is_flushed { stream.conn.writer().write(octets)? } else { 0 };
                flushed(stream).map(|_| taken)
            }),
        };
        self.closed_by(none_if_it_would_block(sent, 0))
    }

    /// Sends encrypted data; returns whether all were sent.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let flushed = match &mut self.stage {
            Stage::Open(Socket::Tls(stream)) => flushed(stream),
            Stage::Closed | Stage::Connecting(_) | Stage::Shaking(_) | Stage::Open(_) => Ok(true),
        };
        self.closed_by(flushed)
    }

    fn closed_by<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.is_err() {
            self.close();
        }
        outcome
    }

    /// Waits until the connection is ready, at most for this time.
    pub(super) fn wait(&self, at_most: Duration) {
        let (fd, events) = match &self.stage {
            Stage::Closed => return std::thread::sleep(at_most),
            Stage::Connecting(stream) | Stage::Open(Socket::Tcp(stream)) => {
                (stream.as_fd(), PollFlags::POLLOUT)
            }
            Stage::Open(Socket::Udp(socket)) => (socket.as_fd(), PollFlags::POLLOUT),
            Stage::Shaking(stream) | Stage::Open(Socket::Tls(stream)) => {
                let events = if stream.conn.wants_write() { PollFlags::POLLOUT } else { PollFlags::POLLIN };
                (stream.sock.as_fd(), events)
            }
        };
        is_ready(fd, events, at_most);
    }
}

/// A connection that is being made.
fn stream_to(server: SocketAddr) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let stream = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
    match connect(stream.as_raw_fd(), &SockaddrStorage::from(server)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(stream.into()),
        Err(error) => Err(error.into()),
    }
}

/// Waits for one of these events; whether one came.
fn is_ready(fd: BorrowedFd<'_>, events: PollFlags, at_most: Duration) -> bool {
    let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::ZERO);
    poll(&mut [PollFd::new(fd, events)], timeout).is_ok_and(|ready| ready > 0)
}

/// Goes on with the handshake.
fn shaken(mut stream: Box<TlsStream>) -> io::Result<Stage> {
    while stream.conn.is_handshaking() {
        flushed(&mut stream)?;
        let TlsStream { conn, sock } = &mut *stream;
        let read = none_if_it_would_block(conn.read_tls(sock).map(Some), None)?;
        match read {
            Some(0) => return Err(closed()),
            Some(_) => {
                let processed = conn.process_new_packets().map_err(io::Error::other);
                if processed.is_err() {
                    // The server learns why.
                    let _ = conn.write_tls(sock);
                }
                processed?;
            }
            None => return Ok(Stage::Shaking(stream)),
        }
    }
    Ok(Stage::Open(Socket::Tls(stream)))
}

/// Sends what is encrypted; whether that is all.
fn flushed(stream: &mut TlsStream) -> io::Result<bool> {
    while stream.conn.wants_write() {
        if none_if_it_would_block(stream.conn.write_tls(&mut stream.sock), 0)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads available data, to detect that the server has closed the connection: otherwise one more message would be sent and lost.
fn ignored(mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
    let mut octets = [0; 4_096];
    for _ in 0..READS {
        match none_if_it_would_block(read(&mut octets).map(Some), None)? {
            Some(0) => return Err(closed()),
            Some(_) => {}
            None => break,
        }
    }
    Ok(())
}

fn none_if_it_would_block<T>(outcome: io::Result<T>, none: T) -> io::Result<T> {
    match outcome {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(none)
        }
        outcome => outcome,
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the server closed the connection")
}
