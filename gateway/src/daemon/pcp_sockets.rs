//! The sockets of the PCP server: for each inside interface one of each family.

use nix::net::if_::if_nametoindex;
use sixway_control::pcp::{Announced, AskedAt, CLIENT_PORT, SERVER_PORT};
use sixway_link::udp::{Departures, Path, UdpServer};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;

/// 224.0.0.1 (RFC 6887 §14.1.3).
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// ff02::1.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Addresses of an interface from which announcements leave, at most.
const MOST_SOURCES: usize = 8;

/// A family's socket on an interface.
pub(super) struct Listener {
    pub(super) interface: Arc<str>,
    pub(super) is_ipv4: bool,
    /// The interface's number while the socket is open.
    index: u32,
    pub(super) socket: Option<UdpServer>,
    departures: Departures,
    /// Why it is not open.
    pub(super) trouble: Option<String>,
}

impl Listener {
    pub(super) fn new(interface: &str, is_ipv4: bool) -> Self {
        let (interface, departures) = (interface.into(), Departures::new());
        Self { interface, is_ipv4, index: 0, socket: None, departures, trouble: None }
    }

    fn address(&self) -> SocketAddr {
        let any = if self.is_ipv4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        SocketAddr::new(any, SERVER_PORT)
    }

    /// Opens the socket when the interface appears, and again when it is another one of its name. An error that another program causes is returned.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let index = if_nametoindex(&*self.interface).unwrap_or(0);
        if self.socket.is_some() && index == self.index {
            return Ok(());
        }
        (self.socket, self.index) = (None, index);
        if index == 0 {
            self.trouble = Some("the interface does not exist".into());
            return Ok(());
        }
        match UdpServer::open_on(&self.interface, self.address()) {
            Ok(socket) => {
                (self.socket, self.trouble) = (Some(socket), None);
                Ok(())
            }
            Err(error) => {
                self.trouble = Some(format!("UDP port {SERVER_PORT}: {error}"));
                Err(error)
            }
        }
    }

    /// Sends an answer from the address that received the request.
    pub(super) fn answer(&mut self, octets: &[u8], path: Path) {
        if self.departures.is_full() {
            self.send();
        }
        let room = self.departures.room();
        room.clear();
        room.extend_from_slice(octets);
        self.departures.push(path);
    }

    /// The address that received a request.
    pub(super) fn asked_at(&self, path: Path) -> AskedAt {
        AskedAt { interface: Arc::clone(&self.interface), address: path.local }
    }

    /// Sends an unsolicited message, if it is of this family, and of this interface if it is for one client.
    pub(super) fn announce(&mut self, octets: &[u8], to: &Announced) {
        let (peer, sources) = match to {
            Announced::Everyone4 => (SocketAddr::new(IpAddr::V4(ALL_HOSTS), CLIENT_PORT), self.sources()),
            Announced::Everyone6 => {
                (SocketAddrV6::new(ALL_NODES, CLIENT_PORT, 0, self.index).into(), self.sources())
            }
            Announced::Client(client, None) => (*client, vec![None]),
            Announced::Client(client, Some(at)) if at.interface == self.interface => {
                (*client, vec![at.address])
            }
            Announced::Client(_, Some(_)) => return,
        };
        if peer.is_ipv4() != self.is_ipv4 || self.socket.is_none() {
            return;
        }
        for local in sources {
            self.answer(octets, Path { peer, local, interface: self.index });
        }
    }

    /// The addresses of the interface, at each of which requests are received (RFC 6887 §14.1.3): a client identifies the server by the address of its request.
    fn sources(&self) -> Vec<Option<IpAddr>> {
        let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
        let own = all.filter(|it| *it.interface_name == *self.interface).filter_map(|it| {
            let address = it.address?;
            let four = address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
            four.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip())))
        });
        let own = own.filter(|address| address.is_ipv4() == self.is_ipv4).take(MOST_SOURCES).map(Some);
        let own: Vec<_> = own.collect();
        // Without this address, the kernel selects one.
        if own.is_empty() { vec![None] } else { own }
    }

    pub(super) fn send(&mut self) {
        if let Some(socket) = self.socket.as_mut().filter(|_| !self.departures.is_empty()) {
            socket.send(&mut self.departures);
        }
    }

    pub(super) fn close(&mut self) {
        self.socket = None;
    }
}
