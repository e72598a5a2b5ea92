//! Transactions as netperf has them: a request and its answer over UDP (UDP_RR), over a connection that stays (TCP_RR), or over a new connection for
//! each (TCP_CRR).
//!
//! A connection of TCP_CRR is closed by the server first, as a server of HTTP/1.0 does. So the ports of the client are free for the next ones, and the
//! server keeps the TIME-WAIT state.

use super::server::{Peer, TcpServer};
use super::turns::{Done, TRANSACTION_LIMIT, Turn, take_turns, workers_of};
use crate::failure::{Asking as _, Result};
use crate::load::batch::Batch;
use crate::load::clock;
use crate::load::ends::{Ends, any, join, on, udp_socket};
use crate::load::flood::thread_cpu;
use crate::load::outcome::{LOST_AFTER, Load, Outcome, Pace, Until};
use crate::load::stamp::{FILL, STAMP, Stamp};
use nix::poll::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Which kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// One datagram each way.
    UdpRr,
    /// Over a connection of each worker, set up before the first one.
    TcpRr,
    /// A connection for each; its set-up time is [`Outcome::setup`], and part of the latency.
    TcpCrr,
}

/// Transactions between two hosts. At [`Pace::Closed`] `in_flight` of them are under way; at other paces, `workers` at most. Until a time or a count.
#[derive(Clone, Copy)]
pub struct Transactions<'a> {
    /// The hosts.
    pub ends: Ends<'a>,
    /// Their kind.
    pub kind: TransactionKind,
    /// The server as the client writes it.
    pub target: SocketAddr,
    /// The server as it listens.
    pub listens: SocketAddr,
    /// Octets of a request; over UDP 16 at least.
    pub request: usize,
    /// Octets of an answer; over UDP 16 at least.
    pub response: usize,
    /// How many may be under way at an open loop.
    pub workers: u16,
}

impl Load for Transactions<'_> {
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        let workers = workers_of(pace, self.workers);
        let how = (pace, until, workers);
        match self.kind {
            TransactionKind::UdpRr => self.over_udp(how),
            TransactionKind::TcpRr | TransactionKind::TcpCrr => {
                let is_once = self.kind == TransactionKind::TcpCrr;
                let (request, response) = (self.request.max(1), self.response.max(1));
                let serve = move |peer: &mut Peer<'_>| serve(peer, (request, response), is_once);
                let (host, core) = (self.ends.server, self.ends.core);
                let server = TcpServer::start(host, self.listens, (workers + 1, core), serve)?;
                let mut outcome = self.ends.client.enter(|| self.over_tcp(how, is_once))??;
                outcome.cost.answering = server.end();
                Ok(outcome)
            }
        }
    }
}

impl Transactions<'_> {
    /// To be called in the client's namespace, which the workers inherit.
    fn over_tcp(&self, how: (Pace, Until, u16), is_once: bool) -> Result<Outcome> {
        let prepare = |_| {
            let mut stays = match is_once {
                true => None,
                false => Some(connect(self.target).asking(|| format!("connecting to {}", self.target))?.0),
            };
            let request = vec![FILL; self.request.max(1)];
            let mut response = vec![0; self.response.max(1)];
            let octets = (request.len() + response.len()) as u64;
            Ok(move |_: Turn| {
                let Some(stream) = &mut stays else {
                    let (mut stream, setup) = connect(self.target)?;
                    exchange(&mut stream, &request, &mut response)?;
                    // The server closes first.
                    while stream.read(&mut [0; 64])? > 0 {}
                    return Ok(Done { setup: Some(setup), octets });
                };
                exchange(stream, &request, &mut response)?;
                Ok(Done { setup: None, octets })
            })
        };
        take_turns(how, self.ends.core, prepare)
    }

    fn over_udp(&self, how: (Pace, Until, u16)) -> Result<Outcome> {
        let server = udp_socket(self.ends.server, self.listens)?;
        let open = || {
            let socket = udp_socket(self.ends.client, any(self.target))?;
            socket.connect(self.target).asking(|| format!("connecting to {}", self.target))?;
            Ok(socket)
        };
        udp_transactions(how, self.ends.core, (&server, &open), (self.request, self.response))
    }
}

fn udp_transactions(
    how: (Pace, Until, u16),
    core: Option<usize>,
    (server, open): (&UdpSocket, &(dyn Fn() -> Result<UdpSocket> + Sync)),
    (request, response): (usize, usize),
) -> Result<Outcome> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| on(core, || answer(server, response.max(STAMP), &ended)));
        let prepare = |_| {
            let socket = open()?;
            let mut request = vec![FILL; request.max(STAMP)];
            let mut came = vec![0; response.max(STAMP)];
            Ok(move |turn: Turn| ask(&socket, turn, &mut request, &mut came))
        };
        let outcome = take_turns(how, core, prepare);
        ended.store(true, Ordering::Relaxed);
        let answering = join(answering);
        let mut outcome = outcome?;
        outcome.cost.answering = answering?;
        Ok(outcome)
    })
}

/// One transaction over UDP. An answer to an earlier one is passed over: that one was lost.
fn ask(socket: &UdpSocket, turn: Turn, request: &mut [u8], came: &mut [u8]) -> io::Result<Done> {
    let sequence = turn.number as u32;
    let start = clock::now();
    Stamp { flow: 0, sequence, due: start }.write(request);
    socket.send(request)?;
    let mut one = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    loop {
        let left = (start + clock::nanoseconds(LOST_AFTER)).saturating_sub(clock::now()) / 1_000_000;
        if left == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        poll(&mut one, left as u16)?;
        while let Ok(length) = socket.recv(came) {
            let is_whole = length == came.len();
            if is_whole && Stamp::read(came).is_some_and(|stamp| stamp.sequence == sequence) {
                return Ok(Done { setup: None, octets: (request.len() + came.len()) as u64 });
            }
        }
    }
}

/// Answers with the request's stamp until `ended`; the CPU time of this thread.
fn answer(socket: &UdpSocket, length: usize, ended: &AtomicBool) -> Result<Duration> {
    let cpu = thread_cpu();
    let mut batch = Batch::new();
    let mut one = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    while !ended.load(Ordering::Relaxed) {
        poll(&mut one, 20_u16).ok();
        let count = batch.receive(socket).unwrap_or(0);
        (0..count).for_each(|at| batch.resize(at, length));
        batch.send_back(socket, count);
    }
    Ok(thread_cpu().saturating_sub(cpu))
}

/// Connects; how long it took, in nanoseconds.
pub(super) fn connect(target: SocketAddr) -> io::Result<(TcpStream, u64)> {
    let start = clock::now();
    let stream = TcpStream::connect_timeout(&target, TRANSACTION_LIMIT)?;
    let took = clock::now() - start;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TRANSACTION_LIMIT))?;
    stream.set_write_timeout(Some(TRANSACTION_LIMIT))?;
    Ok((stream, took))
}

fn exchange(stream: &mut TcpStream, request: &[u8], response: &mut [u8]) -> io::Result<()> {
    stream.write_all(request)?;
    stream.read_exact(response)?;
    match response.iter().all(|octet| *octet == FILL) {
        true => Ok(()),
        false => Err(ErrorKind::InvalidData.into()),
    }
}

fn serve(peer: &mut Peer<'_>, (request, response): (usize, usize), is_once: bool) -> io::Result<()> {
    let (mut request, response) = (vec![0; request], vec![FILL; response]);
    while peer.read_whole(&mut request)? {
        peer.stream.write_all(&response)?;
        if is_once {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const CLOSED: Pace = Pace::Closed { in_flight: 2, pause: Duration::ZERO, resend: None };

    #[test]
    fn transactions_over_tcp_are_answered_each_once() {
        for is_once in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let target = listener.local_addr().unwrap();
            let server =
                TcpServer::on(listener, (3, None), move |peer| serve(peer, (1, 300), is_once)).unwrap();
            let prepare = |_| {
                let mut stays = (!is_once).then(|| connect(target).unwrap().0);
                Ok(move |_: Turn| {
                    let (mut fresh, mut response) = (None, [0; 300]);
                    let stream = match &mut stays {
                        Some(stream) => stream,
                        None => &mut fresh.insert(connect(target)?).0,
                    };
                    exchange(stream, &[FILL], &mut response)?;
                    Ok(Done { setup: fresh.map(|(_, time)| time), octets: 301 })
                })
            };
            let outcome = take_turns((CLOSED, Until::Count(200), 2), None, prepare).unwrap();
            assert_eq!((outcome.sent, outcome.answered, outcome.octets), (200, 200, 200 * 301));
            assert_eq!(outcome.setup.len(), if is_once { 200 } else { 0 });
            server.end();
        }
    }

    #[test]
    fn transactions_over_udp_are_answered_each_once() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = server.local_addr().unwrap();
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(target).unwrap();
            socket.set_nonblocking(true).unwrap();
            Ok(socket)
        };
        let how = (CLOSED, Until::Count(300), 2);
        let outcome = udp_transactions(how, None, (&server, &open), (16, 700)).unwrap();
        assert_eq!((outcome.sent, outcome.answered, outcome.lost), (300, 300, 0));
        assert_eq!(outcome.octets, 300 * 716);
    }
}
