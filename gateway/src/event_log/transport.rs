//! How messages go to a server: by UDP, each in a datagram, by TCP, or by TLS.

use super::record::Record;
use super::tls::{Tls, TlsStream};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// How long connecting and sending may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Octets that are gathered before they are sent over a stream.
const GATHERED: usize = 16 << 10;

/// How records become messages.
pub(super) trait Encode: Send {
    /// Messages that come first on a connection; `now`: seconds since 1970.
    fn connected(&mut self, now: u64) -> Vec<Vec<u8>>;

    /// Adds a record to a message.
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>);

    /// Whether several records may be in one message.
    fn is_joined(&self) -> bool;

    /// Whether a message has no room for more.
    fn is_full(&self, out: &[u8]) -> bool {
        out.len() >= GATHERED
    }

    /// Whether it writes such a record at all.
    fn carries(&self, _record: &Record) -> bool {
        true
    }

    /// The messages to send for these records.
    fn finish(&mut self, records: usize, now: u64, out: Vec<u8>) -> Vec<Vec<u8>>;

    /// The records of the last messages were not sent.
    fn not_sent(&mut self, _records: usize) {}
}

/// The connection to a server.
pub(super) struct Transport {
    server: SocketAddr,
    way: Way,
    open: Option<Socket>,
}

/// By what messages go.
#[derive(Clone)]
pub(super) enum Way {
    Udp,
    Tcp,
    Tls(Tls),
}

enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
}

impl Transport {
    pub(super) const fn new(server: SocketAddr, way: Way) -> Self {
        Self { server, way, open: None }
    }

    /// Whether there is a connection.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Connects.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        self.open = Some(match &self.way {
            Way::Udp => {
                let any: IpAddr = match self.server {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((any, 0))?;
                // Errors of ICMP come to a connected socket alone.
                socket.connect(self.server)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Socket::Udp(socket)
            }
            Way::Tcp => Socket::Tcp(stream_to(self.server)?),
            Way::Tls(tls) => Socket::Tls(Box::new(tls.connect(stream_to(self.server)?)?)),
        });
        Ok(())
    }

    /// What the kernel has heard of the last message: over UDP, that nobody was there for it. Then the connection is closed.
    ///
    /// # Errors
    /// It was not received.
    pub(super) fn fault(&mut self) -> io::Result<()> {
        let fault = match &mut self.open {
            None => Some(io::ErrorKind::NotConnected.into()),
            Some(Socket::Udp(socket)) => socket.take_error()?,
            Some(Socket::Tcp(stream)) => is_there(stream).err(),
            Some(Socket::Tls(stream)) => is_there_with_tls(stream).err(),
        };
        match fault {
            None => Ok(()),
            Some(error) => {
                self.open = None;
                Err(error)
            }
        }
    }

    /// Sends a message. After an error the connection is closed.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let sent = match &mut self.open {
            None => Err(io::ErrorKind::NotConnected.into()),
            Some(Socket::Udp(socket)) => socket.send(message).map(|_| ()),
            Some(Socket::Tcp(stream)) => is_there(stream).and_then(|()| stream.write_all(message)),
            Some(Socket::Tls(stream)) => is_there_with_tls(stream)
                .and_then(|()| stream.write_all(message))
                .and_then(|()| stream.flush()),
        };
        if sent.is_err() {
            self.open = None;
        }
        sent
    }
}

fn stream_to(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A server that has closed the connection would still be sent to once, in vain. What a server says is ignored.
fn is_there(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut octets = [0; 512];
    let seen = ignored(|| stream.read(&mut octets));
    stream.set_nonblocking(false)?;
    seen
}

/// The same over TLS.
fn is_there_with_tls(stream: &mut TlsStream) -> io::Result<()> {
    stream.sock.set_nonblocking(true)?;
    let mut octets = [0; 512];
    let seen = ignored(|| stream.read(&mut octets));
    stream.sock.set_nonblocking(false)?;
    seen
}

/// Reads until nothing more is there.
fn ignored(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    loop {
        match read() {
            Ok(0) => {
                let what = "the server closed the connection";
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, what));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
