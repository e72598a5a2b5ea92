//! The leases of all concentrators while the gateway runs: queries are answered, bindings are given to the workers before their answer leaves.

use super::concentrator::{Concentrator, Pending};
use crate::config::Config;
use crate::daemon::gateway::Gateway;
use crate::view::LeaseRow;
use crate::worker::{Clock, Command, LeaseChanges};
use futures_util::future::select_all;
use sixway_control::dhcp4o6::SERVER_PORT;
use sixway_dataplane::engine::Engine;
use sixway_link::udp::{Arrivals, Departures, Path, UdpServer};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How often leases that end, and Kea's file, are looked at; sockets that could not be opened are tried again.
const LOOK: Duration = Duration::from_secs(1);
/// Batches of queries that are answered before anything else is done.
const BATCHES: usize = 64;

/// The leases of all concentrators.
#[derive(Debug)]
pub(in crate::daemon) struct LeaseBook {
    clock: Clock,
    all: Mutex<Vec<Concentrator>>,
}

/// A socket of a concentrator's server.
struct Listener {
    concentrator: usize,
    socket: AsyncFd<Socket>,
}

struct Socket(UdpServer);

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.poll_fd().as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.poll_fd()
    }
}

impl LeaseBook {
    /// The leases of the time before, which the engines get. `None`: there is no concentrator.
    ///
    /// # Errors
    /// A lease file cannot be read, or is not one.
    pub(in crate::daemon) fn load(
        config: &Config,
        engines: &mut [Engine],
        clock: Clock,
        seed: u64,
    ) -> io::Result<Option<Self>> {
        let sections = config.others.four_over_six.iter();
        let concentrators = sections.filter_map(|section| Some((section, section.concentrator()?)));
        let mut all = Vec::new();
        for (index, section) in concentrators.enumerate() {
            let loaded =
                Concentrator::load(section, index as u16, &config.gateway.name, (seed, clock.wall()))?;
            engines.iter_mut().for_each(|engine| loaded.bind(engine));
            all.push(Concentrator { pending: Pending::new(), ..loaded });
        }
        Ok((!all.is_empty()).then(|| Self { clock, all: Mutex::new(all) }))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Concentrator>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers queries, for ever.
    pub(in crate::daemon) async fn keep(&self, gateway: &Gateway) {
        let mut tick = tokio::time::interval(LOOK);
        let (mut listeners, mut refused) = (Vec::new(), Vec::new());
        let mut arrivals = Arrivals::new();
        loop {
            let ready = async {
                if listeners.is_empty() {
                    return std::future::pending().await;
                }
                let sockets = listeners.iter().map(|listener: &Listener| &listener.socket);
                let waits: Vec<_> = sockets.map(|socket| Box::pin(readable(socket))).collect();
                select_all(waits).await.1
            };
            tokio::select! {
                place = ready => {
                    let Some(listener) = listeners.get_mut(place) else { continue };
                    self.serve(listener, &mut arrivals, gateway).await;
                }
                _ = tick.tick() => {
                    self.listen(&mut listeners, &mut refused);
                    self.all().iter_mut().for_each(|one| one.tick(self.clock.wall()));
                    self.tell(gateway).await;
                    // What came while many queries were answered.
                    for listener in &mut listeners {
                        self.serve(listener, &mut arrivals, gateway).await;
                    }
                }
            }
        }
    }

    /// Opens the sockets that are missing.
    fn listen(&self, listeners: &mut Vec<Listener>, refused: &mut Vec<SocketAddr>) {
        for (concentrator, one) in self.all().iter().enumerate() {
            for address in &one.listen {
                let local = SocketAddr::from((*address, SERVER_PORT));
                let is_open = listeners
                    .iter()
                    .any(|it| it.concentrator == concentrator && it.socket.get_ref().0.local() == local);
                if is_open {
                    continue;
                }
                match open(local) {
                    Ok(socket) => {
                        refused.retain(|it| *it != local);
                        listeners.push(Listener { concentrator, socket });
                    }
                    Err(error) if !refused.contains(&local) => {
                        tracing::error!("{}: no DHCP at {local} yet: {error}", one.name);
                        refused.push(local);
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// Answers the queries that wait at a socket.
    async fn serve(&self, listener: &mut Listener, arrivals: &mut Arrivals, gateway: &Gateway) {
        for _batch in 0..BATCHES {
            match listener.socket.get_mut().0.receive(arrivals) {
                Ok(0) => return,
                Ok(_) => self.answer(listener, arrivals, gateway).await,
                Err(error) => return tracing::debug!("DHCP: {error}"),
            }
        }
    }

    async fn answer(&self, listener: &mut Listener, arrivals: &Arrivals, gateway: &Gateway) {
        let mut replies: Vec<(Path, Vec<u8>)> = Vec::new();
        {
            let mut all = self.all();
            let Some(one) = all.get_mut(listener.concentrator) else { return };
            let wall = self.clock.wall();
            for (path, octets) in arrivals.iter() {
                let IpAddr::V6(source) = path.peer.ip() else { continue };
                match one.server.handle_query(wall.now, source, octets) {
                    Ok(Some(reply)) => replies.push((*path, reply.octets)),
                    Ok(None) => {}
                    Err(refusal) => tracing::debug!("{}: query of {source}: {refusal}", one.name),
                }
            }
            one.take_changes(wall);
        }
        // Before the host knows of its lease.
        self.tell(gateway).await;
        let mut departures = Departures::new();
        let socket = &mut listener.socket.get_mut().0;
        for (path, octets) in replies {
            if departures.is_full() {
                socket.send(&mut departures);
            }
            let room = departures.room();
            room.clear();
            room.extend(octets);
            departures.push(path);
        }
        if !departures.is_empty() {
            socket.send(&mut departures);
        }
    }

    /// Gives the workers what they do not know. What one did not get is given again.
    async fn tell(&self, gateway: &Gateway) {
        let changes: Vec<(usize, u16, Pending)> = {
            let mut all = self.all();
            let with = all.iter_mut().enumerate().filter(|(_, one)| !one.pending.is_empty());
            with.map(|(place, one)| (place, one.index, std::mem::take(&mut one.pending))).collect()
        };
        for (place, index, pending) in changes {
            let changes: LeaseChanges = pending.iter().map(|(ipv4, binding)| (*ipv4, *binding)).collect();
            let mut whole = true;
            for worker in 0..gateway.workers() {
                let changes = Arc::clone(&changes);
                let told = gateway.ask(worker, |answer| Command::Leases(index, changes, answer)).await;
                if let Err(error) = told {
                    tracing::warn!("worker {worker} does not know of leases yet: {error}");
                    whole = false;
                }
            }
            if !whole && let Some(one) = self.all().get_mut(place) {
                for (ipv4, binding) in pending {
                    one.pending.entry(ipv4).or_insert(binding);
                }
            }
        }
    }

    /// The leases of all concentrators, at most `room`.
    pub(in crate::daemon) fn rows(&self, room: usize) -> Vec<LeaseRow> {
        let wall = self.clock.wall();
        self.all().iter().flat_map(|one| one.rows(wall, room)).take(room).collect()
    }

    /// Ends the lease of an address. Whether there was one.
    pub(in crate::daemon) fn end(&self, ipv4: Ipv4Addr) -> bool {
        let wall = self.clock.wall();
        self.all().iter_mut().any(|one| one.end(ipv4, wall))
    }

    /// Bindings of a concentrator, and the most of them.
    pub(in crate::daemon) fn counts(&self, name: &str) -> Option<(u64, u64)> {
        self.all().iter().find(|one| one.name == name).map(Concentrator::counts)
    }

    /// Writes all leases a last time.
    pub(in crate::daemon) fn finish(&self) {
        let wall = self.clock.wall();
        self.all().iter_mut().for_each(|one| one.finish(wall));
    }
}

fn open(local: SocketAddr) -> io::Result<AsyncFd<Socket>> {
    let socket = UdpServer::open(local, 1)?.pop().ok_or_else(|| io::Error::other("no socket"))?;
    AsyncFd::register_with_interest(Socket(socket), Interest::READABLE).map_err(io::Error::from)
}

/// Waits until datagrams wait. A socket that fails is looked at as well: reading tells why.
async fn readable(socket: &AsyncFd<Socket>) {
    if let Ok(mut ready) = socket.readable().await {
        ready.clear_ready();
    }
}
