//! While one client queries thousands of names a second in a zone that is silent, how many of its queries does another client lose? Both query the
//! same forwarder: Sixway or one of its peers. Its only upstream answers for all other zones.

use super::half_silent::{HalfSilent, dead_name, good_name};
use super::running::Running;
use super::server::Server;
use super::tree::AUTHORITY;
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::topology::client_gateway_server;
use nix::sys::socket::{setsockopt, sockopt};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Names of the silent zone that one client queries in a second.
pub const DEAD_NAMES: u32 = 10_000;
/// Names of a zone that answers that the other client queries in a second, each for the first time.
pub const GOOD_NAMES: u32 = 300;
/// A client gives a query up after this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first client is another subscriber.
const SUBNET: &str = "2001:db8:1:a";
/// Queries are sent this often.
const TICK: Duration = Duration::from_millis(1);

/// The outcome of the second client's queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Queries.
    pub asked: u32,
    /// Answered with an address.
    pub right: u32,
    /// Answered with anything else, or not within 5 s.
    pub lost: u32,
    /// The longest time that a right answer took.
    pub longest: Duration,
}

impl Share {
    /// Lost queries in percent.
    pub fn loss(&self) -> f64 {
        100.0 * f64::from(self.lost) / f64::from(self.asked.max(1))
    }

    fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.right += other.right;
        self.lost += other.lost;
        self.longest = self.longest.max(other.longest);
    }
}

/// A round: the second client alone, then both.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crowded {
    /// Without the first client.
    pub alone: Share,
    /// With it.
    pub together: Share,
    /// Names that the first client queried in a second.
    pub dead_per_second: f64,
    /// Queries that came to the upstream for each of them.
    pub tries: f64,
}

impl Crowded {
    /// What the second client loses because of the first, in percent of its queries.
    pub fn cost(&self) -> f64 {
        self.together.loss() - self.alone.loss()
    }
}

/// A forwarder between these clients and that upstream.
pub struct Crowding {
    /// The forwarder.
    pub running: Running,
    upstream: HalfSilent,
    next: AtomicU32,
}

impl Crowding {
    /// Starts the server as a forwarder, with its usual bounds.
    ///
    /// # Errors
    /// It is not installed, or does not answer.
    pub fn start(server: Server) -> Result<Self> {
        let network = client_gateway_server()?;
        network.address("client", "up0", &format!("{SUBNET}::1/128"))?;
        network.host("gateway")?.ip(&format!("-6 route add {SUBNET}::/64 dev in0"))?;
        let upstream = HalfSilent::start(&network, AUTHORITY)?;
        let running = server.start_as_forwarder(network)?;
        Ok(Self { running, upstream, next: AtomicU32::new(0) })
    }

    /// One round of this many seconds alone and together with the other client.
    ///
    /// # Errors
    /// A socket cannot be opened, or the load could not be made: this machine is too slow.
    pub fn round(&self, alone: Duration, together: Duration) -> Result<Crowded> {
        let mut round = Crowded::default();
        round.alone.add(self.good(alone)?);
        let (ended, unanswered) = (AtomicBool::new(false), self.upstream.unanswered());
        let (share, dead) = std::thread::scope(|scope| {
            let greedy = scope.spawn(|| self.dead(&ended));
            let share = self.good(together);
            ended.store(true, Ordering::Relaxed);
            let dead = greedy.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (share, dead)
        });
        let (sent, took) = dead?;
        round.together.add(share?);
        round.dead_per_second = f64::from(sent) / took.as_secs_f64();
        round.tries = (self.upstream.unanswered() - unanswered) as f64 / f64::from(sent.max(1));
        if round.dead_per_second < 0.9 * f64::from(DEAD_NAMES) {
            let rate = round.dead_per_second;
            return Err(Failure::Unexpected(format!(
                "{rate:.0} names a second is all that can be sent here"
            )));
        }
        Ok(round)
    }

    fn socket(&self, from: &str) -> Result<UdpSocket> {
        let asking = || format!("opening a socket at {from}");
        let socket = self.running.network.host("client")?.enter(|| UdpSocket::bind((from, 0)))?;
        let socket = socket.asking(asking)?;
        setsockopt(&socket, sockopt::RcvBufForce, &(16 << 20)).asking(asking)?;
        socket.connect(self.running.address()).asking(asking)?;
        socket.set_nonblocking(true).asking(asking)?;
        Ok(socket)
    }

    /// Numbers that had no name yet.
    fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Queries names of the silent zone until it is to end; returns how many, and in which time.
    fn dead(&self, ended: &AtomicBool) -> Result<(u32, Duration)> {
        let socket = self.socket(&format!("{SUBNET}::1"))?;
        let (begun, mut room) = (Instant::now(), [0; 4_096]);
        let mut sent = 0_u32;
        while !ended.load(Ordering::Relaxed) {
            while sent < due(begun, DEAD_NAMES) {
                // Packets that cannot be sent are lost, as on any network.
                let _ = socket.send(&query(sent as u16, &dead_name(self.number())));
                sent += 1;
            }
            while socket.recv(&mut room).is_ok() {}
            std::thread::sleep(TICK);
        }
        Ok((sent, begun.elapsed()))
    }

    /// Queries names of the zone that answers for this long, and waits for the last answers.
    fn good(&self, time: Duration) -> Result<Share> {
        let socket = self.socket("::")?;
        let (begun, mut room) = (Instant::now(), [0; 4_096]);
        let mut open: Vec<Option<Instant>> = Vec::new();
        let mut share = Share::default();
        let mut waiting = 0;
        while begun.elapsed() < time || waiting > 0 && begun.elapsed() < time + PATIENCE {
            interrupt::check()?;
            while begun.elapsed() < time && share.asked < due(begun, GOOD_NAMES) {
                let _ = socket.send(&query(share.asked as u16, &good_name(self.number())));
                open.push(Some(Instant::now()));
                share.asked += 1;
                waiting += 1;
            }
            while let Ok(length) = socket.recv(&mut room) {
                let Some((id, is_right)) = read(&room[..length]) else { continue };
                let Some(since) = open.get_mut(usize::from(id)).and_then(Option::take) else { continue };
                waiting -= 1;
                if is_right && since.elapsed() < PATIENCE {
                    share.right += 1;
                    share.longest = share.longest.max(since.elapsed());
                }
            }
            std::thread::sleep(TICK);
        }
        share.lost = share.asked - share.right;
        Ok(share)
    }
}

/// How many are to have been sent by now.
fn due(begun: Instant, per_second: u32) -> u32 {
    (begun.elapsed().as_secs_f64() * f64::from(per_second)) as u32
}

/// A query for AAAA records.
pub(super) fn query(id: u16, name: &[u8]) -> Vec<u8> {
    let header = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&id.to_be_bytes(), &header[..], name, &[0, 28, 0, 1]].concat()
}

/// ID of an answer, and whether it has an address.
fn read(answer: &[u8]) -> Option<(u16, bool)> {
    let header: &[u8; 12] = answer.first_chunk()?;
    Some((u16::from_be_bytes([header[0], header[1]]), header[3] & 15 == 0 && header[7] > 0))
}
