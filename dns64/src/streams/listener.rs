//! The listening sockets. A connection that is not allowed is closed right after `accept`.

use super::admission::{Admission, ConnectionSlot, Displaced, Refusal};
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
                let Some((slot, displaced)) = let_in(peer.ip(), &transport, &shared) else { continue };
                let client = Client { address: peer.ip().to_canonical(), transport: transport.transport() };
                let slot = Arc::new(slot);
                tokio::spawn(hold(stream, client, slot, displaced, transport.clone(), shared.clone()));
            }
            // The client closed the connection before it was accepted.
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

/// A client that is refused by its handshakes keeps its connections.
fn let_in(
    address: IpAddr,
    transport: &ClientTransport,
    shared: &Shared,
) -> Option<(ConnectionSlot, Displaced)> {
    if !shared.gate.admits(address) {
        shared.counters.count(Event::Refused);
        return None;
    }
    let has_tls = !matches!(transport, ClientTransport::Tcp);
    if has_tls && !shared.admission.may_shake_hands(address) {
        shared.counters.count(Event::HandshakeLimit);
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
        Err(Refusal::ClientLimit) => {
            shared.counters.count(Event::ClientLimit);
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

/// The lifetime of a connection, until it ends or is closed for another.
async fn hold(
    stream: TcpStream,
    client: Client,
    slot: Arc<ConnectionSlot>,
    displaced: Displaced,
    transport: ClientTransport,
    shared: Shared,
) {
    // Answers are written whole.
    let _ = stream.set_nodelay(true);
    let end = tokio::select! {
        // Only dropping it is said.
        _ = displaced => Some(CloseReason::MadeWay),
        end = converse(stream, client, &slot, transport, &shared) => end,
    };
    drop(slot);
    let counters = &shared.counters;
    match end {
        Some(CloseReason::Idle) => counters.count(Event::Idle),
        Some(CloseReason::Cut) => counters.count(Event::Aborted),
        Some(CloseReason::MadeWay) => counters.count(Event::MadeWay),
        Some(CloseReason::Finished) => {}
        None => counters.count(Event::TlsFailed),
    }
}

/// Serves a connection. Each stage has memory of its own: an idle connection needs little of what a handshake does.
async fn converse(
    stream: TcpStream,
    client: Client,
    slot: &Arc<ConnectionSlot>,
    transport: ClientTransport,
    shared: &Shared,
) -> Option<CloseReason> {
    let Shared { posts, counters, .. } = shared;
    match transport {
        ClientTransport::Tcp => Some(Box::pin(connection::serve(stream, client, posts, slot)).await),
        ClientTransport::Tls(config) => {
            let stream = Box::pin(handshake(stream, config, slot)).await?;
            Some(Box::pin(connection::serve(stream, client, posts, slot)).await)
        }
        ClientTransport::Https(config) => {
            let stream = Box::pin(handshake(stream, config, slot)).await?;
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
            Some(Box::pin(https::serve(stream, is_http2, client, posts, slot, counters)).await)
        }
    }
}

async fn handshake(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    slot: &ConnectionSlot,
) -> Option<server::TlsStream<TcpStream>> {
    let agreed = timeout(slot.bounds().handshake, TlsAcceptor::from(config).accept(stream)).await;
    match agreed {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            debug!("TLS handshake with a DNS client failed: {error}");
            None
        }
        Err(_) => None,
    }
}
