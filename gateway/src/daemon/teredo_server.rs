//! The Teredo server of a gateway: a thread with its sockets, and its state for the admin API.

use super::error::RunError;
use super::teredo_server_view::TeredoServerView;
use super::threads::confine;
use crate::config::{TeredoServer as Section, TeredoServerClient};
use crate::host::addresses_now;
use crate::worker::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ring::hmac;
use sixway_control::teredo_server::{
    ClientKey, Clients, Datagram, OwnAddresses, Rate, Sent, Server, Settings,
};
use sixway_link::udp::{Arrivals, Departures, Path, UdpServer};
use sixway_link::{Duty, PacketSender6, Wake};
use sixway_wire::teredo::TEREDO_PORT;
use sixway_wire::{Endpoint4, Prefix4, Prefix6};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::oneshot;

/// How often this host's addresses are examined, and missing sockets opened.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest prefix that counts as a network of this host; sites get a /48 to a /64 (RFC 6177 §2).
const SITE: u8 = 48;
/// Batches of one socket that are handled before the other's.
const BATCHES: usize = 16;

/// The Teredo server while the gateway runs. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct TeredoServer {
    view: Arc<TeredoServerView>,
    end: Arc<AtomicBool>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
    ended: oneshot::Receiver<String>,
}

impl TeredoServer {
    /// Starts it.
    ///
    /// # Errors
    /// A socket could not be opened: another program has the port, or a privilege is missing.
    pub(super) fn start(section: &Section, clock: Clock, seed: u64) -> Result<Self, RunError> {
        let failed = |error: io::Error| RunError::Teredo(format!("teredo_server: {error}"));
        let view = Arc::new(TeredoServerView::new(section));
        let native = section.native.then(PacketSender6::open).transpose().map_err(|error| {
            let what = "sixway needs CAP_NET_RAW to send to native hosts; run it as root, or set teredo_server.native = false";
            RunError::Teredo(format!("teredo_server: {error}; {what}"))
        })?;
        let mut listeners = Vec::new();
        for address in section.addresses() {
            listeners.push(Listener::open(address)?);
        }
        let (end, wake) = (Arc::new(AtomicBool::new(false)), Wake::new().map_err(failed)?);
        let (said, ended) = oneshot::channel();
        let mut task = Task {
            server: Server::new(settings(section), seed),
            listeners,
            native,
            native_unsent: 0,
            clock,
            view: Arc::clone(&view),
            end: Arc::clone(&end),
            wake: wake.clone(),
        };
        let run = move || {
            confine(Duty::Queries);
            let why = match catch_unwind(AssertUnwindSafe(|| task.run())) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "its thread panicked; this is a defect of sixway, please report it".into(),
            };
            // Nothing listens at the end.
            let _ = said.send(format!("teredo_server: {why}"));
        };
        let thread = Builder::new().name("teredo-server".into()).spawn(run).map_err(failed)?;
        match section.required {
            true => tracing::info!("teredo_server: {}", section.exposes()),
            false => tracing::warn!("teredo_server is open to any host: {}", section.exposes()),
        }
        Ok(Self { view, end, wake, thread: Some(thread), ended })
    }

    /// The data for the admin API.
    pub(super) fn view(&self) -> Arc<TeredoServerView> {
        Arc::clone(&self.view)
    }

    /// Runs until the thread fails; returns why.
    pub(super) async fn keep(&mut self) -> String {
        match (&mut self.ended).await {
            Ok(why) => why,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for TeredoServer {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            // A panic was reported already.
            let _ = thread.join();
        }
    }
}

/// A socket of the server; `None`: its address does not exist on this host.
struct Listener {
    address: Ipv4Addr,
    socket: Option<UdpServer>,
    departures: Departures,
    /// The kernel's error when the socket could not be opened although the address exists.
    trouble: Option<String>,
    /// Of sockets that were closed.
    before: (u64, u64),
}

impl Listener {
    fn open(address: Ipv4Addr) -> Result<Self, RunError> {
        let mut listener =
            Self { address, socket: None, departures: Departures::new(), trouble: None, before: (0, 0) };
        match listener.bind() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                tracing::warn!(
                    "teredo_server: this host does not have {address}; it is tried again each second"
                );
            }
            Err(error) => {
                let mend = "stop the program that has this port: ss -lunp sport = :3544";
                let mend = if error.kind() == io::ErrorKind::AddrInUse { mend } else { "check the address" };
                let at = SocketAddrV4::new(address, TEREDO_PORT);
                return Err(RunError::Teredo(format!("teredo_server: UDP {at}: {error}; {mend}")));
            }
        }
        Ok(listener)
    }

    fn bind(&mut self) -> io::Result<()> {
        let at = SocketAddr::V4(SocketAddrV4::new(self.address, TEREDO_PORT));
        self.socket = UdpServer::open(at, 1)?.pop();
        Ok(())
    }

    /// Opens the socket when the address appears, and closes it when the address is removed, so that this is reported.
    fn look(&mut self, has_address: bool) {
        let address = self.address;
        match (&self.socket, has_address) {
            (Some(_), false) => {
                self.close();
                tracing::warn!("teredo_server: this host does not have {address}; waiting for it");
            }
            (None, true) => {
                let trouble = self.bind().err().map(|error| error.to_string());
                match &trouble {
                    None => tracing::info!("teredo_server: listens at {address}"),
                    Some(what) if trouble != self.trouble => {
                        tracing::warn!(
                            "teredo_server: UDP {address}:{TEREDO_PORT}: {what}; it is tried again"
                        );
                    }
                    Some(_) => {}
                }
                self.trouble = trouble;
            }
            (None, false) => self.trouble = None,
            (Some(_), true) => {}
        }
    }

    /// Closes the socket. What it counted stays.
    fn close(&mut self) {
        (self.before, self.socket) = (self.lost(), None);
    }

    /// A datagram that is to leave from its address.
    fn push(&mut self, octets: &[u8], to: Endpoint4) {
        if self.socket.is_none() {
            self.before.1 += 1;
            return;
        }
        if self.departures.is_full() {
            self.send();
        }
        let room = self.departures.room();
        room.clear();
        room.extend_from_slice(octets);
        let peer = SocketAddr::V4(SocketAddrV4::new(to.address, to.port));
        self.departures.push(Path { peer, local: None, interface: 0 });
    }

    fn send(&mut self) {
        match &mut self.socket {
            Some(socket) if !self.departures.is_empty() => socket.send(&mut self.departures),
            Some(_) => {}
            // It was closed in this turn.
            None if !self.departures.is_empty() => {
                self.before.1 += self.departures.len() as u64;
                self.departures = Departures::new();
            }
            None => {}
        }
    }

    /// Datagrams that were received without room, and those that the kernel did not send.
    fn lost(&self) -> (u64, u64) {
        let now = self.socket.as_ref().map_or((0, 0), |socket| (socket.overflowed(), socket.unsent()));
        (self.before.0 + now.0, self.before.1 + now.1)
    }
}

/// The state of the thread.
struct Task {
    server: Server,
    listeners: Vec<Listener>,
    native: Option<PacketSender6>,
    native_unsent: u64,
    clock: Clock,
    view: Arc<TeredoServerView>,
    end: Arc<AtomicBool>,
    wake: Wake,
}

impl Task {
    fn run(&mut self) -> io::Result<()> {
        let (mut arrivals, mut out) = (Arrivals::new(), Vec::new());
        let mut next = self.clock.now();
        while !self.end.load(Ordering::Acquire) {
            let now = self.clock.now();
            if now >= next {
                self.look();
                next = now + LOOK;
            }
            self.wait(next.since(now))?;
            for at in 0..self.listeners.len() {
                self.serve(at, &mut arrivals, &mut out)?;
            }
            self.listeners.iter_mut().for_each(Listener::send);
        }
        Ok(())
    }

    /// Waits for datagrams, for this long at most.
    fn wait(&self, longest: Duration) -> io::Result<()> {
        let sockets = self.listeners.iter().filter_map(|it| it.socket.as_ref());
        let mut waits: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::new(socket.poll_fd(), PollFlags::POLLIN)).collect();
        waits.push(PollFd::new(self.wake.fd(), PollFlags::POLLIN));
        let milliseconds = u16::try_from(longest.as_millis() + 1).unwrap_or(u16::MAX);
        match poll(&mut waits, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles what waits at a socket.
    fn serve(&mut self, at: usize, arrivals: &mut Arrivals, out: &mut Vec<u8>) -> io::Result<()> {
        for _batch in 0..BATCHES {
            let Some(listener) = self.listeners.get_mut(at) else { return Ok(()) };
            let (to, Some(socket)) = (listener.address, &mut listener.socket) else { return Ok(()) };
            let received = match socket.receive(arrivals) {
                Ok(received) => received,
                Err(error) => {
                    tracing::warn!("teredo_server: {to}: {error}; the socket is opened again");
                    listener.close();
                    return Ok(());
                }
            };
            if received == 0 {
                return Ok(());
            }
            let now = self.clock.now();
            for (path, payload) in arrivals.iter() {
                let SocketAddr::V4(peer) = path.peer else { continue };
                let from = Endpoint4::new(*peer.ip(), peer.port());
                if let Ok(sent) = self.server.handle(Datagram { from, to, payload }, out, now) {
                    self.send(sent, out);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, sent: Sent, octets: &[u8]) {
        let (from, to) = match sent {
            Sent::Udp { from, to } => (from, to),
            Sent::Native(destination) => {
                let sent = self.native.as_ref().map(|native| native.send(octets, destination));
                if let Some(Err(error)) = sent {
                    self.native_unsent += 1;
                    tracing::debug!("teredo_server: {error}");
                }
                return;
            }
        };
        let listener = self.listeners.iter_mut().find(|it| it.address == from);
        if let Some(listener) = listener {
            listener.push(octets, to);
        }
    }

    /// Reads this host's addresses, and publishes the counters.
    fn look(&mut self) {
        // If the kernel does not list addresses, the previous ones stay.
        if let Some(now) = addresses_now() {
            let subnets6 = now.iter().filter_map(|own| match own.address {
                IpAddr::V4(_) => None,
                // Without a netmask, or with that of a provider or of 6to4, it does not define neighbours.
                IpAddr::V6(address) if own.length < SITE => Some(Prefix6::holding(address, 128)),
                IpAddr::V6(address) => Some(Prefix6::holding(address, own.length)),
            });
            let subnets6 = subnets6.collect();
            let own = now.iter().filter_map(|own| match own.address {
                IpAddr::V4(address) => Some((address, own.length)),
                IpAddr::V6(_) => None,
            });
            let own: Vec<(Ipv4Addr, u8)> = own.collect();
            for listener in &mut self.listeners {
                listener.look(own.iter().any(|(address, _)| *address == listener.address));
            }
            let subnets = own.iter().map(|(address, length)| Prefix4::holding(*address, *length)).collect();
            let addresses = own.into_iter().map(|(address, _)| address).collect();
            self.server.set_host(OwnAddresses { addresses, subnets, subnets6 });
        }
        let closed = self.listeners.iter().filter(|it| it.socket.is_none());
        let waits = closed.map(|it| (it.address, it.trouble.clone())).collect();
        let lost = self.listeners.iter().map(Listener::lost);
        let (overflowed, unsent) = lost.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        self.view.note(self.server.counts(), [overflowed, unsent, self.native_unsent], waits);
    }
}

fn settings(section: &Section) -> Settings {
    let rate = |rate: u32, burst: u32| Rate { rate, burst: rate.saturating_mul(burst) };
    let (retired, valid): (Vec<_>, Vec<_>) = section.clients.iter().partition(|client| client.retired);
    let clients = Clients::new(valid.into_iter().map(key), section.required);
    let clients = retired.into_iter().map(key).fold(clients, |all, (id, key)| all.with_retired(id, key));
    Settings {
        clients,
        native: section.native,
        own_networks: section.own_networks,
        source_rate: rate(section.source_rate, 3),
        destination_rate: rate(section.destination_rate, 2),
        total_rate: rate(section.total_rate, 1),
        ..Settings::new(section.address, section.secondary)
    }
}

fn key(client: &TeredoServerClient) -> (Vec<u8>, ClientKey) {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, client.secret.octets());
    let sign = move |octets: &[u8]| {
        let mut value = [0; 20];
        value.copy_from_slice(hmac::sign(&key, octets).as_ref());
        value
    };
    (client.id.clone().into_bytes(), ClientKey::new(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn listener(address: &str) -> Listener {
        let address = address.parse().unwrap();
        Listener { address, socket: None, departures: Departures::new(), trouble: None, before: (0, 0) }
    }

    #[test]
    fn an_answer_from_an_address_that_is_gone_is_counted_as_unsent() {
        let mut listener = listener("127.44.7.1");
        let to = Endpoint4::new(Ipv4Addr::LOCALHOST, 9);
        listener.push(b"answer", to);
        assert_eq!(listener.lost(), (0, 1));
        // It goes between the answer and its departure.
        listener.look(true);
        listener.push(b"answer", to);
        listener.close();
        listener.send();
        assert_eq!((listener.lost(), listener.departures.is_empty()), ((0, 2), true));
    }

    #[test]
    fn a_port_that_another_program_has_is_named_and_an_address_that_is_missing_is_not() {
        let other = UdpSocket::bind("127.44.7.2:3544").unwrap();
        let mut listener = listener("127.44.7.2");
        listener.look(true);
        assert!(listener.trouble.as_ref().unwrap().contains("in use"), "{:?}", listener.trouble);
        drop(other);
        listener.look(true);
        assert!(listener.socket.is_some() && listener.trouble.is_none());
        listener.look(false);
        assert!(listener.socket.is_none() && listener.trouble.is_none());
    }
}
