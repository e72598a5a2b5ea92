//! The sockets by which a host asks for leases: port 546 of the address from which a server is reached, and only while an answer may come. So the
//! system's DHCPv6 client, whose socket is at a link-local address or at all addresses, keeps the port.

use sixway_control::dhcp4o6::{CLIENT_PORT, SERVER_PORT};
use sixway_link::udp::{Arrivals, Departures, Path, UdpServer};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses of this host from which servers are asked at a time.
const MOST: usize = 8;
/// Batches that are read from a socket in one turn.
const BATCHES: usize = 4;

/// The sockets.
#[derive(Default)]
pub(super) struct QuerySockets {
    open: BTreeMap<Ipv6Addr, UdpServer>,
    arrivals: Option<Arrivals>,
    /// What was logged last, so that it is logged only once.
    told: Option<String>,
}

impl QuerySockets {
    /// Asks a server.
    pub(super) fn send(&mut self, server: Ipv6Addr, message: &[u8]) {
        let peer = SocketAddr::from((server, SERVER_PORT));
        match source_to(peer).and_then(|source| self.socket(source)) {
            Ok(socket) => {
                let mut departures = Departures::new();
                let room = departures.room();
                room.clear();
                room.extend(message);
                departures.push(Path { peer, local: None, interface: 0 });
                socket.send(&mut departures);
                self.told = None;
            }
            Err(error) => {
                let said = error.to_string();
                if self.told.as_ref() != Some(&said) {
                    tracing::error!("no lease can be taken from {server}: {said}; it is tried again");
                    self.told = Some(said);
                }
            }
        }
    }

    fn socket(&mut self, source: Ipv6Addr) -> io::Result<&mut UdpServer> {
        if !self.open.contains_key(&source) {
            let local = SocketAddr::from((source, CLIENT_PORT));
            let named = |error: io::Error| {
                let such = match error.kind() {
                    io::ErrorKind::AddrInUse => ": another DHCPv6 client has the port, and does not share it",
                    _ => "",
                };
                io::Error::new(error.kind(), format!("UDP port {CLIENT_PORT} of {source}: {error}{such}"))
            };
            let socket = UdpServer::open_at_a_shared_port(local).map_err(named)?;
            if self.open.len() >= MOST {
                self.open.pop_first();
            }
            self.open.insert(source, socket);
        }
        self.open.get_mut(&source).ok_or_else(|| io::Error::other("no socket"))
    }

    /// Reads what came from servers' ports.
    pub(super) fn hear(&mut self, mut heard: impl FnMut(Ipv6Addr, &[u8])) {
        let arrivals = self.arrivals.get_or_insert_with(Arrivals::new);
        for socket in self.open.values_mut() {
            // Whoever sends faster than it is read does not keep control here.
            for _ in 0..BATCHES {
                let Ok(1..) = socket.receive(arrivals) else { break };
                for (path, octets) in arrivals.iter() {
                    if let (IpAddr::V6(source), SERVER_PORT) = (path.peer.ip(), path.peer.port()) {
                        heard(source, octets);
                    }
                }
            }
        }
    }

    /// Addresses that this host no longer has need no socket.
    pub(super) fn each_second(&mut self) {
        self.open.retain(|source, _| UdpSocket::bind((*source, 0)).is_ok());
    }

    /// No answer may come.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }
}

/// From which address this host sends to another one: an address of appropriate scope (RFC 7341 §9).
fn source_to(peer: SocketAddr) -> io::Result<Ipv6Addr> {
    let probe = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    probe.connect(peer)?;
    match probe.local_addr()?.ip() {
        IpAddr::V6(source) => Ok(source),
        IpAddr::V4(_) => Err(io::Error::other("no IPv6 address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_from_the_address_by_which_it_is_reached() {
        assert_eq!(source_to(SocketAddr::from((Ipv6Addr::LOCALHOST, 547))).unwrap(), Ipv6Addr::LOCALHOST);
    }
}
