//! The UDP sockets for clients: answers to a batch are sent as a batch.

use super::watch::{Ready, Watch};
use sixway_link::UdpServer;
use sixway_link::udp::{Arrivals, Departures, Path};
use std::io;
use std::mem::swap;

/// A socket, and the answers that are to leave by it.
#[derive(Debug)]
struct Server {
    socket: UdpServer,
    departures: Departures,
}

impl Server {
    /// Sends what has gathered.
    fn flush(&mut self) {
        if !self.departures.is_empty() {
            self.socket.send(&mut self.departures);
        }
    }
}

/// The sockets of a thread, and room for what comes.
#[derive(Debug)]
pub(super) struct Servers {
    servers: Vec<Server>,
    arrivals: Arrivals,
}

impl Servers {
    /// # Errors
    /// The kernel's error: they cannot be watched.
    pub(super) fn new(sockets: Vec<UdpServer>, watch: &Watch) -> io::Result<Self> {
        let mut servers = Self { servers: Vec::new(), arrivals: Arrivals::new() };
        for socket in sockets {
            servers.add(socket, watch)?;
        }
        Ok(servers)
    }

    /// Listens at one more.
    ///
    /// # Errors
    /// The kernel's error: it cannot be watched.
    pub(super) fn add(&mut self, socket: UdpServer, watch: &Watch) -> io::Result<()> {
        watch.add(socket.poll_fd(), Ready::Server(self.servers.len() as u16))?;
        self.servers.push(Server { socket, departures: Departures::new() });
        Ok(())
    }

    /// Receives a batch at a place and lets `answer` write the answer to each query; `false` from it: none leaves yet.
    ///
    /// # Errors
    /// The kernel's error of receiving.
    pub(super) fn serve(
        &mut self,
        place: u16,
        mut answer: impl FnMut(&Path, &[u8], &mut Vec<u8>) -> bool,
    ) -> io::Result<usize> {
        let Some(server) = self.servers.get_mut(usize::from(place)) else { return Ok(0) };
        let count = server.socket.receive(&mut self.arrivals)?;
        for (path, query) in self.arrivals.iter() {
            // A datagram from port 0 cannot be answered (RFC 768).
            if path.peer.port() != 0 && answer(path, query, server.departures.room()) {
                server.departures.push(*path);
                if server.departures.is_full() {
                    server.flush();
                }
            }
        }
        server.flush();
        Ok(count)
    }

    /// Queues an answer that comes later, to be [flushed](Self::flush). The content of `answer` is unspecified afterwards.
    pub(super) fn answer(&mut self, place: u16, path: Path, answer: &mut Vec<u8>) {
        let Some(server) = self.servers.get_mut(usize::from(place)) else { return };
        swap(server.departures.room(), answer);
        server.departures.push(path);
        if server.departures.is_full() {
            server.flush();
        }
    }

    /// Sends what has gathered.
    pub(super) fn flush(&mut self) {
        self.servers.iter_mut().for_each(Server::flush);
    }

    /// Stops reading queries: they wait in the sockets.
    pub(super) fn leave(&self, watch: &Watch) {
        for server in &self.servers {
            // If this fails, its queries are still read and answered.
            let _ = watch.remove(server.socket.poll_fd());
        }
    }

    /// Queries that there was no room for, and answers that the kernel would not send.
    pub(super) fn losses(&self) -> (u64, u64) {
        let sockets = || self.servers.iter().map(|server| &server.socket);
        (sockets().map(UdpServer::overflowed).sum(), sockets().map(UdpServer::unsent).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn answers_leave_with_their_batch_or_later() {
        let mut watch = Watch::new().unwrap();
        let sockets = UdpServer::open("[::1]:0".parse().unwrap(), 1).unwrap();
        let address = sockets[0].local();
        let mut servers = Servers::new(sockets, &watch).unwrap();
        let client = UdpSocket::bind("[::1]:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        for number in 0..3 {
            client.send_to(&[number], address).unwrap();
        }
        watch.wait(Duration::from_secs(2)).unwrap();
        assert_eq!(watch.ready(0), Ready::Server(0));
        let mut later = None;
        let count = servers.serve(0, |path, query, answer| {
            answer.clear();
            answer.extend([query[0], 7]);
            later = Some(*path);
            query[0] != 1
        });
        assert_eq!(count.unwrap(), 3);
        let mut answer = vec![1, 8];
        servers.answer(0, later.unwrap(), &mut answer);
        servers.flush();
        let mut room = [0; 8];
        for expected in [[0, 7], [2, 7], [1, 8]] {
            let length = client.recv(&mut room).unwrap();
            assert_eq!(room[..length], expected);
        }
        assert_eq!(servers.serve(0, |_, _, _| panic!("nothing came")).unwrap(), 0);
        assert_eq!((servers.serve(9, |_, _, _| true).unwrap(), servers.losses()), (0, (0, 0)));
    }
}
