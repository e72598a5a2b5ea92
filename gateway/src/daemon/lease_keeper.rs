//! Serves leases while the gateway runs: queries are answered, and workers get the bindings before the answer is sent.

use super::gateway::Gateway;
use super::leases::LeaseBook;
use crate::worker::{Command, LeaseChanges};
use futures_util::future::select_all;
use sixway_link::udp::{Arrivals, Departures, UdpServer};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// How often ends of leases, and Kea's file, are checked; sockets that could not be opened are tried again.
const LOOK: Duration = Duration::from_secs(1);
/// Batches of queries that are answered in one turn.
const BATCHES: usize = 64;

/// A socket of a concentrator's server.
struct Listener {
    place: usize,
    socket: UdpServer,
    readable: AsyncFd<OwnedFd>,
}

/// Serves the leases of a gateway, if it has a concentrator, without end.
pub(super) async fn keep(gateway: &Gateway) {
    let Some(book) = gateway.leases() else { return std::future::pending().await };
    let mut tick = tokio::time::interval(LOOK);
    let (mut listeners, mut refused, mut arrivals) = (Vec::new(), Vec::new(), Arrivals::new());
    loop {
        tokio::select! {
            place = ready(&listeners) => {
                if let Some(listener) = listeners.get_mut(place) {
                    serve(listener, &mut arrivals, book, gateway).await;
                }
            }
            () = book.hurried() => tell(book, gateway).await,
            _ = tick.tick() => {
                listen(&mut listeners, &mut refused, book);
                book.tick();
                tell(book, gateway).await;
                // What came while many queries were answered.
                for listener in &mut listeners {
                    serve(listener, &mut arrivals, book, gateway).await;
                }
            }
        }
    }
}

/// The first socket at which datagrams wait.
async fn ready(listeners: &[Listener]) -> usize {
    if listeners.is_empty() {
        return std::future::pending().await;
    }
    let waits = listeners.iter().map(|listener| Box::pin(readable(&listener.readable)));
    select_all(waits).await.1
}

/// A failed socket is read as well: the read returns the error.
async fn readable(socket: &AsyncFd<OwnedFd>) {
    if let Ok(mut ready) = socket.readable().await {
        ready.clear_ready();
    }
}

/// Opens the sockets that are missing.
fn listen(listeners: &mut Vec<Listener>, refused: &mut Vec<SocketAddr>, book: &LeaseBook) {
    for (place, local) in book.listening() {
        if listeners.iter().any(|it| it.place == place && it.socket.local() == local) {
            continue;
        }
        match open(place, local) {
            Ok(listener) => {
                refused.retain(|it| *it != local);
                listeners.push(listener);
            }
            Err(error) if !refused.contains(&local) => {
                tracing::error!("no leases are served at {local}: {error}; it is tried again");
                refused.push(local);
            }
            Err(_) => {}
        }
    }
}

#[expect(deprecated, reason = "what replaces it is unsafe; the descriptor is owned")]
fn open(place: usize, local: SocketAddr) -> io::Result<Listener> {
    let socket = UdpServer::open(local, 1)?.pop().ok_or_else(|| io::Error::other("no socket"))?;
    let readable = AsyncFd::new(socket.poll_fd().try_clone_to_owned()?)?;
    Ok(Listener { place, socket, readable })
}

/// Answers the queries that wait at a socket.
async fn serve(listener: &mut Listener, arrivals: &mut Arrivals, book: &LeaseBook, gateway: &Gateway) {
    for _batch in 0..BATCHES {
        match listener.socket.receive(arrivals) {
            Ok(0) => return,
            Ok(_) => answer(listener, arrivals, book, gateway).await,
            Err(error) => return tracing::debug!("leases: {error}"),
        }
    }
}

async fn answer(listener: &mut Listener, arrivals: &Arrivals, book: &LeaseBook, gateway: &Gateway) {
    let replies = book.answer(listener.place, arrivals);
    // Before the hosts know of their leases.
    tell(book, gateway).await;
    let mut departures = Departures::new();
    for (path, octets) in replies {
        if departures.is_full() {
            listener.socket.send(&mut departures);
        }
        let room = departures.room();
        room.clear();
        room.extend(octets);
        departures.push(path);
    }
    if !departures.is_empty() {
        listener.socket.send(&mut departures);
    }
}

/// Writes leases to the file, and sends changes to the workers. A change that a worker did not get is sent again.
pub(super) async fn tell(book: &LeaseBook, gateway: &Gateway) {
    // Changes are taken before they are written, so that workers get none that is not in the file.
    let all_pending = book.take_pending();
    book.write_down();
    let notices = book.take_notices();
    if let Some(events) = gateway.event_log() {
        let known = notices.iter().take_while(|notice| events.lease(notice)).count();
        book.put_back_notices(notices, known);
    }
    for (place, index, pending) in all_pending {
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
        match whole {
            true => book.note_told(place, &pending),
            false => book.put_back(place, pending),
        }
    }
}
