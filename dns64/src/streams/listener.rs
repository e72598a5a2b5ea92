//! The listening sockets. A connection that is not allowed is closed right after `accept`.

use super::admission::{Admission, ConnectionSlot, Refusal};
use super::connection::{self, Client, CloseReason};
use super::counters::{Event, StreamCounters};
use super::gate::Gate;
use super::https;
use crate::Posts;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Ipv6V6Only;
use sixway_control::dns64::Transport;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::{TlsAcceptor, server};
use tracing::{debug, warn};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: u32 = 512;
/// After a failed `accept` (no file descriptor is left, say), before the next.
const BREATH: Duration = Duration::from_millis(100);
/// RFC 9113 §3.2.
pub(super) const HTTP2: &[u8] = b"h2";
/// RFC 7301 §6.
pub(super) const HTTP1: &[u8] = b"http/1.1";
/// RFC 7858's, as IANA's registry of ALPN identifiers has it.
pub(super) const DOT: &[u8] = b"dot";

/// What is transport on a socket.
#[derive(Clone)]
pub enum ClientTransport {
    /// DNS over TCP.
    Tcp,
    /// DNS over TLS.
    Tls(Arc<ServerConfig>),
    /// DNS over HTTPS.
    Https(Arc<ServerConfig>),
}

/// What all connections share.
#[derive(Clone)]
pub struct Shared {
    /// The channels to the resolvers.
    pub posts: Posts,
    /// Places.
    pub admission: Admission,
    /// Who may connect.
    pub gate: Gate,
    /// What is counted.
    pub counters: StreamCounters,
}

/// A listening socket, of IPv6 or of IPv4 only. It is within a runtime of tokio's.
///
/// # Errors
/// The kernel's: the address is taken, or not this host's.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.is_ipv6() {
        setsockopt(&socket, Ipv6V6Only, &true)?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections for ever.
pub async fn listen(listener: TcpListener, transport: ClientTransport, shared: Shared) {
    let mut is_failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                is_failing = false;
                let Some(place) = let_in(peer.ip(), &shared) else { continue };
                let client = Client { address: peer.ip().to_canonical(), transport: transport.transport() };
                tokio::spawn(converse(stream, client, place, transport.clone(), shared.clone()));
            }
            // The client was gone before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !is_failing {
                    warn!("DNS connections cannot be accepted; retrying: {error}");
                }
                is_failing = true;
                sleep(BREATH).await;
            }
        }
    }
}

fn let_in(address: IpAddr, shared: &Shared) -> Option<ConnectionSlot> {
    if !shared.gate.admits(address) {
        shared.counters.count(Event::Refused);
        return None;
    }
    match shared.admission.admit(address) {
        Ok(place) => {
            shared.counters.count(Event::Accepted);
            Some(place)
        }
        Err(Refusal::ConnectionLimit) => {
            shared.counters.count(Event::ConnectionLimit);
            None
        }
        Err(Refusal::AddressLimit) => {
            shared.counters.count(Event::AddressLimit);
            None
        }
    }
}

impl ClientTransport {
    fn transport(&self) -> Transport {
        match self {
            Self::Tcp => Transport::Tcp,
            Self::Tls(_) => Transport::Tls,
            Self::Https(_) => Transport::Https,
        }
    }
}

/// The lifetime of a connection.
async fn converse(
    stream: TcpStream,
    client: Client,
    place: ConnectionSlot,
    transport: ClientTransport,
    shared: Shared,
) {
    // Answers are written whole.
    let _ = stream.set_nodelay(true);
    let Shared { posts, admission, counters, .. } = &shared;
    let end = match transport {
        ClientTransport::Tcp => Some(connection::serve(stream, client, posts, admission).await),
        ClientTransport::Tls(config) => match handshake(stream, config, &shared).await {
            Some(stream) => Some(connection::serve(stream, client, posts, admission).await),
            None => None,
        },
        ClientTransport::Https(config) => match handshake(stream, config, &shared).await {
            Some(stream) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
                Some(https::serve(stream, is_http2, client, posts, admission, counters).await)
            }
            None => None,
        },
    };
    drop(place);
    match end {
        Some(CloseReason::Idle) => counters.count(Event::Idle),
        Some(CloseReason::Cut) => counters.count(Event::Aborted),
        Some(CloseReason::Finished) => {}
        None => counters.count(Event::TlsFailed),
    }
}

async fn handshake(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    shared: &Shared,
) -> Option<server::TlsStream<TcpStream>> {
    let agreed = timeout(shared.admission.bounds().handshake, TlsAcceptor::from(config).accept(stream)).await;
    match agreed {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            debug!("TLS handshake with a DNS client failed: {error}");
            None
        }
        Err(_) => None,
    }
}
