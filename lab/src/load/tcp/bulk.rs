//! Octets over TCP, as fast as possible, in writes of a given size.

use super::server::{Peer, TcpServer};
use super::turns::TRANSACTION_LIMIT;
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::load::clock;
use crate::load::ends::{Ends, on};
use crate::load::flood::thread_cpu;
use crate::load::outcome::{Load, Outcome, Pace, ThreadCost, Until};
use crate::load::stamp::FILL;
use nix::sys::socket::sockopt::TcpMaxSeg;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket};
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One stream from client to server, at [`Pace::AsFastAsPossible`], until a time or a count of writes.
#[derive(Clone, Copy)]
pub struct TcpBulk<'a> {
    /// The hosts.
    pub ends: Ends<'a>,
    /// The server as the client writes it.
    pub target: SocketAddr,
    /// The server as it listens.
    pub listens: SocketAddr,
    /// Octets of one write.
    pub write: usize,
    /// Whether a segment leaves with each write (TCP_NODELAY); else small ones are gathered while others are under way.
    pub no_delay: bool,
    /// The greatest segment (TCP_MAXSEG), if not the path's.
    pub segment: Option<u32>,
}

impl Load for TcpBulk<'_> {
    /// [`Outcome::octets`] are those that arrived, [`Outcome::sent`] counts writes, and [`Outcome::setup`] has the connection's time.
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        if pace != Pace::AsFastAsPossible {
            return Err(Failure::Unexpected(format!("a stream over TCP does not run at {pace:?}")));
        }
        let (arrived, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count, time) = (Arc::clone(&arrived), Arc::clone(&last));
        let take = move |peer: &mut Peer<'_>| {
            let mut octets = vec![0; 1 << 17];
            loop {
                match peer.read(&mut octets)? {
                    0 => return Ok(()),
                    length => count.fetch_add(length as u64, Ordering::Relaxed),
                };
                time.store(clock::now(), Ordering::Relaxed);
            }
        };
        let core = self.ends.core;
        let server = TcpServer::start(self.ends.server, self.listens, (1, core), take)?;
        // `enter` has a thread of its own.
        let (mut outcome, start) = self.ends.client.enter(|| on(core, || self.send(until)))??;
        outcome.cost.answering = server.end();
        outcome.octets = arrived.load(Ordering::Relaxed);
        let last = last.load(Ordering::Relaxed);
        outcome.took = outcome.took.max(Duration::from_nanos(last.saturating_sub(start)));
        Ok(outcome)
    }
}

impl TcpBulk<'_> {
    /// What it has sent, and when it began.
    fn send(&self, until: Until) -> Result<(Outcome, u64)> {
        let (mut stream, setup) = self.connect()?;
        let octets = vec![FILL; self.write.max(1)];
        let (start, cpu) = (clock::now(), thread_cpu());
        let mut outcome = Outcome::default();
        outcome.setup.saturating_record(setup);
        loop {
            let is_over = match until {
                Until::Time(time) => clock::now() - start >= clock::nanoseconds(time),
                Until::Count(count) => outcome.sent >= count,
                Until::CountWithin(count, time) => {
                    outcome.sent >= count || clock::now() - start >= clock::nanoseconds(time)
                }
                Until::Done => return Err(Failure::Unexpected("a stream needs an end".to_owned())),
            };
            if is_over {
                break;
            }
            interrupt::check()?;
            match stream.write_all(&octets) {
                Ok(()) => outcome.sent += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).asking(|| "sending over TCP".to_owned()),
            }
        }
        outcome.took = Duration::from_nanos(clock::now() - start);
        outcome.cost = ThreadCost { cpu: thread_cpu().saturating_sub(cpu), ..ThreadCost::default() };
        Ok((outcome, start))
    }

    /// A greatest segment holds only if it is set before.
    fn connect(&self) -> Result<(TcpStream, u64)> {
        let family = if self.target.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
            .asking(|| "opening a socket".to_owned())?;
        if let Some(segment) = self.segment {
            setsockopt(&socket, TcpMaxSeg, &segment).asking(|| "TCP_MAXSEG".to_owned())?;
        }
        let start = clock::now();
        connect(socket.as_raw_fd(), &SockaddrStorage::from(self.target))
            .asking(|| format!("connecting to {}", self.target))?;
        let setup = clock::now() - start;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(self.no_delay).asking(|| "TCP_NODELAY".to_owned())?;
        stream.set_write_timeout(Some(TRANSACTION_LIMIT)).asking(|| "SO_SNDTIMEO".to_owned())?;
        Ok((stream, setup))
    }
}
