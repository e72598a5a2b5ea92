//! UDP packets of given size at a given rate, from one host to another: one way, or answered.

use super::account::{Account, Told};
use super::batch::Batch;
use super::clock;
use super::ends::{Ends, join, on, udp_socket};
use super::flood::thread_cpu;
use super::outcome::{Load, Outcome, Pace, ThreadCost, Until};
use super::pacer::{Due, pace as paced};
use super::stamp::{FILL, STAMP, Stamp};
use crate::failure::{Asking as _, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use sixway_wire::{IPV4_HEADER, IPV6_HEADER, UDP_HEADER};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a receiver waits before it looks whether there is anything to wait for, in milliseconds.
const LOOK: u8 = 20;

/// Which packets are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trip {
    /// Those that arrive at the server: both ends have the same clock.
    OneWay,
    /// The server sends each back, and those that arrive at the client count.
    Round,
}

/// Who sends what to whom. At [`Pace::Open`] and [`Pace::AsFastAsPossible`], until a time or a count.
#[derive(Clone, Copy)]
pub struct UdpStream<'a> {
    /// The hosts.
    pub ends: Ends<'a>,
    /// The client's address, and the port that its flows count up from; port 0 leaves ports to the kernel.
    pub source: SocketAddr,
    /// The server as the client writes it.
    pub target: SocketAddr,
    /// The server as it listens.
    pub listens: SocketAddr,
    /// Flows, each with a source port of its own; packets take turns.
    pub flows: u16,
    /// Octets of UDP payload, 16 at least: an IPv6 packet has 48 more, an IPv4 packet 28.
    pub payload: usize,
    /// One way, or there and back.
    pub trip: Trip,
}

impl Load for UdpStream<'_> {
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        self.open()?.run(self.trip, pace, until, &AtomicBool::new(false))
    }
}

impl UdpStream<'_> {
    /// Sends at this pace until `stop` is set.
    ///
    /// # Errors
    /// The kernel refuses a socket, or a signal has come.
    pub fn run_until(&self, pace: Pace, stop: &AtomicBool) -> Result<Outcome> {
        self.open()?.run(self.trip, pace, Until::Time(Duration::MAX), stop)
    }

    /// Opens the sockets.
    pub(super) fn open(&self) -> Result<Sockets> {
        let server = udp_socket(self.ends.server, self.listens)?;
        let mut clients = Vec::new();
        for flow in 0..self.flows {
            let port = if self.source.port() == 0 { 0 } else { self.source.port() + flow };
            let socket = udp_socket(self.ends.client, SocketAddr::new(self.source.ip(), port))?;
            socket.connect(self.target).asking(|| format!("connecting to {}", self.target))?;
            clients.push(socket);
        }
        Ok(Sockets { clients, server, core: self.ends.core, payload: self.payload.max(STAMP) })
    }
}

/// Octets of the headers of IP and UDP.
const fn headers(target: SocketAddr) -> usize {
    match target {
        SocketAddr::V4(_) => IPV4_HEADER + UDP_HEADER,
        SocketAddr::V6(_) => IPV6_HEADER + UDP_HEADER,
    }
}

/// The open sockets of a stream.
pub(super) struct Sockets {
    clients: Vec<UdpSocket>,
    server: UdpSocket,
    core: Option<usize>,
    payload: usize,
}

impl Sockets {
    /// Runs the stream; its packets end when `stop` is set.
    pub(super) fn run(&self, trip: Trip, pace: Pace, until: Until, stop: &AtomicBool) -> Result<Outcome> {
        let (told, ended) = (Told::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let answering =
                (trip == Trip::Round).then(|| scope.spawn(|| on(self.core, || self.answer(&ended))));
            let receiving = scope.spawn(|| {
                on(self.core, || match trip {
                    Trip::OneWay => self.receive(std::slice::from_ref(&self.server), &told),
                    Trip::Round => self.receive(&self.clients, &told),
                })
            });
            let sending = scope.spawn(|| {
                on(self.core, || {
                    let cpu = thread_cpu();
                    let mut payload = self.filled();
                    let sent = paced(stop, pace, until, |due| Ok(self.send(&mut payload, due, &told)));
                    told.ends(sent.as_ref().map_or(0, |sent| sent.count));
                    Ok((sent?, thread_cpu().saturating_sub(cpu)))
                })
            });
            let (sent, received) = (join(sending), join(receiving));
            ended.store(true, Ordering::Relaxed);
            let answering = answering.map_or(Ok(Duration::ZERO), join);
            let ((sent, sending), (mut outcome, last, receiving)) = (sent?, received?);
            outcome.sent = sent.count;
            outcome.refused = sent.refused;
            outcome.lost = sent.count.saturating_sub(outcome.answered);
            outcome.octets = sent.count * self.packet() as u64;
            outcome.lateness = sent.lateness;
            outcome.took = Duration::from_nanos(last.max(sent.last).saturating_sub(sent.first));
            outcome.cost = match trip {
                Trip::OneWay => ThreadCost { cpu: sending, answering: receiving },
                Trip::Round => ThreadCost { cpu: sending + receiving, answering: answering? },
            };
            Ok(outcome)
        })
    }

    /// Octets of one of its IP packets.
    fn packet(&self) -> usize {
        let target = self.clients.first().and_then(|client| client.peer_addr().ok());
        self.payload + target.map_or(0, headers)
    }

    /// What the kernel refuses (a full queue, no route, an ICMP error that an earlier packet provoked) was not sent.
    fn send(&self, payload: &mut [u8], Due { sequence, due, now }: Due, told: &Told) -> bool {
        let flow = sequence as usize % self.clients.len().max(1);
        Stamp { flow: flow as u16, sequence, due }.write(payload);
        told.sends(sequence, now - due);
        self.clients.get(flow).is_some_and(|socket| socket.send(payload).is_ok())
    }

    /// What each packet carries, without its stamp.
    fn filled(&self) -> Vec<u8> {
        vec![FILL; self.payload]
    }

    fn receive(&self, sockets: &[UdpSocket], told: &Told) -> Result<(Outcome, u64, Duration)> {
        let cpu = thread_cpu();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).asking(|| "epoll".to_owned())?;
        for (number, socket) in sockets.iter().enumerate() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, number as u64);
            epoll.add(socket, event).asking(|| "adding to an epoll".to_owned())?;
        }
        let mut account = Account::new(told, self.clients.len() as u16);
        let mut batch = Batch::new();
        let mut events = [EpollEvent::empty(); 64];
        while !told.is_over(account.came()) {
            let ready = match epoll.wait(&mut events, EpollTimeout::from(LOOK)) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error).asking(|| "waiting for packets".to_owned()),
            };
            for event in &events[..ready] {
                let Some(socket) = sockets.get(event.data() as usize) else { continue };
                // An ICMP error that a packet provoked is read, and is not a packet.
                let count = batch.receive(socket).unwrap_or(0);
                let now = clock::now();
                (0..count).for_each(|at| account.note(batch.datagram(at), now));
            }
        }
        let (outcome, last) = account.end();
        Ok((outcome, last, thread_cpu().saturating_sub(cpu)))
    }

    /// Sends everything back, until all have come.
    fn answer(&self, ended: &AtomicBool) -> Result<Duration> {
        let cpu = thread_cpu();
        let mut batch = Batch::new();
        let mut one = [PollFd::new(self.server.as_fd(), PollFlags::POLLIN)];
        while !ended.load(Ordering::Relaxed) {
            match poll(&mut one, LOOK) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error).asking(|| "waiting for packets".to_owned()),
            }
            if let Ok(count) = batch.receive(&self.server) {
                batch.send_back(&self.server, count);
            }
        }
        Ok(thread_cpu().saturating_sub(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ends::with_room;
    use crate::load::outcome::{Gaps, Histogram};

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn sockets(flows: usize, payload: usize) -> Sockets {
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            with_room(&socket).unwrap();
            socket
        };
        let (server, clients) = (open(), (0..flows).map(|_| open()).collect::<Vec<_>>());
        clients.iter().for_each(|client| client.connect(server.local_addr().unwrap()).unwrap());
        Sockets { clients, server, core: None, payload }
    }

    #[test]
    fn each_packet_is_sent_once_and_accounted_for() {
        let pace = Pace::Open { per_second: 20_000.0, gaps: Gaps::Poisson(1) };
        for (trip, flows) in [(Trip::OneWay, 1), (Trip::Round, 3)] {
            let outcome = sockets(flows, 100).run(trip, pace, Until::Count(2_000), &NEVER).unwrap();
            assert_eq!((outcome.sent, outcome.answered, outcome.lost), (2_000, 2_000, 0), "{trip:?}");
            assert_eq!((outcome.duplicated, outcome.reordered, outcome.refused), (0, 0, 0), "{trip:?}");
            assert_eq!((outcome.latency.len(), outcome.lateness.len()), (2_000, 2_000));
            assert!(outcome.jitter.is_some() && outcome.took >= Duration::from_millis(80));
        }
    }

    /// Coordinated omission: a sender that is held up sees the wait in the latency of all that it was to send meanwhile.
    #[test]
    fn a_stalled_sender_shows_the_wait_in_latency() {
        let sockets = sockets(1, 16);
        let (told, rate) = (Told::new(), Pace::Open { per_second: 2_000.0, gaps: Gaps::Even });
        let outcome = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| sockets.receive(std::slice::from_ref(&sockets.server), &told));
            let mut payload = sockets.filled();
            let sent = paced(&NEVER, rate, Until::Count(2_000), |due| {
                let sent = sockets.send(&mut payload, due, &told);
                if due.sequence == 500 {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Ok(sent)
            })
            .unwrap();
            told.ends(sent.count);
            receiving.join().unwrap().unwrap().0
        });
        assert_eq!(outcome.answered, 2_000);
        assert!(outcome.latency.value_at_quantile(0.999) >= 45_000_000, "from the due time");
        let waited = |histogram: &Histogram| histogram.count_between(10_000_000, u64::MAX / 4);
        assert!(waited(&outcome.latency) >= 70 && waited(&outcome.latency) > waited(&outcome.service) + 40);
    }

    #[test]
    fn what_nobody_takes_is_lost() {
        let sockets = sockets(1, 16);
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        sockets.clients[0].connect(other.local_addr().unwrap()).unwrap();
        let outcome = sockets.run(Trip::OneWay, Pace::AsFastAsPossible, Until::Count(5), &NEVER).unwrap();
        assert_eq!((outcome.sent, outcome.answered, outcome.loss()), (5, 0, 1.0));
    }
}
