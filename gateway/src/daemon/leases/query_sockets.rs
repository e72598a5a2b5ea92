//! The sockets by which a host asks for leases: port 546 of the address from which a server is reached, and only while an answer may come. The
//! system's DHCPv6 client keeps the port: if it has it, answers are read by a raw socket, which does not affect the client.

use crate::host::hop;
use sixway_control::dhcp4o6::{CLIENT_PORT, SERVER_PORT, is_on_link};
use sixway_link::udp::{Arrivals, Departures, Path, UdpServer};
use sixway_link::{SharedPort, interface};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// Maximum number of local addresses from which servers are queried.
const MOST: usize = 8;
/// Batches that are read from a socket in one turn.
const BATCHES: usize = 4;
/// Datagrams that are read from a socket in one turn, one by one.
const DATAGRAMS: usize = 64;

/// The sockets.
#[derive(Default)]
pub(super) struct QuerySockets {
    /// By address and, of a link-local one, the number of its interface.
    open: BTreeMap<(Ipv6Addr, u32), Socket>,
    arrivals: Option<Arrivals>,
    /// What was logged last, so that it is logged only once.
    told: Option<String>,
}

enum Socket {
    /// No other program listens at this address.
    Own(UdpServer),
    /// Another program may.
    Shared(SharedPort),
}

impl Socket {
    /// At an address from which servers anywhere are asked, to which the kernel gives what comes for it, or if another program has the port of all
    /// addresses alone: a raw one. A link-local address is usually that of the system's DHCPv6 client, so nothing that comes there is taken from it.
    fn open(local: SocketAddrV6) -> io::Result<Self> {
        let shared = || SharedPort::open(local, SERVER_PORT).map(Self::Shared);
        if local.scope_id() != 0 {
            return shared();
        }
        match UdpServer::open_at_a_shared_port(local.into()) {
            Ok(socket) => Ok(Self::Own(socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => shared(),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, server: Ipv6Addr, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Own(socket) => {
                let mut departures = Departures::new();
                let room = departures.room();
                room.clear();
                room.extend(message);
                let peer = SocketAddr::from((server, SERVER_PORT));
                departures.push(Path { peer, local: None, interface: 0 });
                socket.send(&mut departures);
                Ok(())
            }
            Self::Shared(socket) => socket.send(message, server),
        }
    }
}

impl QuerySockets {
    /// Asks a server; one on the link, or all of them, by the interface towards the tunnel's other end.
    pub(super) fn send(&mut self, server: Ipv6Addr, other_end: Ipv6Addr, message: &[u8]) {
        let local = if is_on_link(server) { source_towards(other_end) } else { source_to(server) };
        let sent = local.and_then(|local| self.socket(local)).and_then(|socket| socket.send(server, message));
        match sent {
            Ok(()) => self.told = None,
            Err(error) => {
                let said = error.to_string();
                if self.told.as_ref() != Some(&said) {
                    tracing::error!("no lease can be taken from {server}: {said}; it is tried again");
                    self.told = Some(said);
                }
            }
        }
    }

    fn socket(&mut self, local: SocketAddrV6) -> io::Result<&mut Socket> {
        let at = (*local.ip(), local.scope_id());
        if !self.open.contains_key(&at) {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("UDP port {CLIENT_PORT} of {}: {error}", local.ip()))
            };
            let socket = Socket::open(local).map_err(named)?;
            if self.open.len() >= MOST {
                self.open.pop_first();
            }
            self.open.insert(at, socket);
        }
        self.open.get_mut(&at).ok_or_else(|| io::Error::other("no socket"))
    }

    /// Reads what came from servers' ports.
    pub(super) fn hear(&mut self, mut heard: impl FnMut(Ipv6Addr, &[u8])) {
        let arrivals = self.arrivals.get_or_insert_with(Arrivals::new);
        for socket in self.open.values_mut() {
            // A sender that is faster than the reads does not block control.
            match socket {
                Socket::Own(socket) => {
                    for _ in 0..BATCHES {
                        let Ok(1..) = socket.receive(arrivals) else { break };
                        for (path, octets) in arrivals.iter() {
                            if let (IpAddr::V6(source), SERVER_PORT) = (path.peer.ip(), path.peer.port()) {
                                heard(source, octets);
                            }
                        }
                    }
                }
                Socket::Shared(socket) => {
                    for _ in 0..DATAGRAMS {
                        let Ok(Some((source, octets))) = socket.receive() else { break };
                        heard(source, octets);
                    }
                }
            }
        }
    }

    /// Addresses that this host no longer has need no socket.
    pub(super) fn each_second(&mut self) {
        self.open
            .retain(|(source, scope), _| UdpSocket::bind(SocketAddrV6::new(*source, 0, 0, *scope)).is_ok());
    }

    /// No answer may come.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }
}

/// The address from which this host sends to another one: an address of appropriate scope (RFC 7341 §9).
fn source_to(server: Ipv6Addr) -> io::Result<SocketAddrV6> {
    let probe = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    probe.connect((server, SERVER_PORT))?;
    match probe.local_addr()?.ip() {
        IpAddr::V6(source) => Ok(SocketAddrV6::new(source, CLIENT_PORT, 0, 0)),
        IpAddr::V4(_) => Err(io::Error::other("no IPv6 address")),
    }
}

/// The link-local address of the interface towards another one.
fn source_towards(other_end: Ipv6Addr) -> io::Result<SocketAddrV6> {
    let no_route = || io::Error::new(io::ErrorKind::NetworkUnreachable, format!("no route to {other_end}"));
    let link = hop(IpAddr::V6(other_end)).ok_or_else(no_route)?.interface;
    Ok(SocketAddrV6::new(interface::link_local(&link)?, CLIENT_PORT, 0, interface::index(&link)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_from_the_address_by_which_it_is_reached() {
        assert_eq!(*source_to(Ipv6Addr::LOCALHOST).unwrap().ip(), Ipv6Addr::LOCALHOST);
    }
}
