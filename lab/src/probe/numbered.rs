//! Numbered UDP packets of many flows at a steady rate, and their answers: lost, duplicated and reordered packets.

use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Octets of payload that every packet has at least: its flow, its number and the time at which it was sent.
const HEAD: usize = 16;
/// Octets of payload that an answer has at most.
const ANSWER: usize = 64;
/// Octets that a receiving socket has room for.
const ROOM: usize = 16 << 20;
/// How long the last packets may be under way.
const LAST: Duration = Duration::from_millis(300);

/// Who sends what to whom.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Where the flows begin.
    pub client: &'a Namespace,
    /// The client's address and the ports that its flows count up from.
    pub source: SocketAddr,
    /// Where they end.
    pub server: &'a Namespace,
    /// The server as the client writes it.
    pub target: SocketAddr,
    /// The server as it listens.
    pub listens: SocketAddr,
    /// Flows, one socket of the client each.
    pub flows: u16,
    /// Packets in a second, of all flows; each of them is answered.
    pub per_second: u32,
    /// Octets of payload.
    pub octets: usize,
}

/// One packet that was sent, or that has arrived; times since the stream's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its flow.
    pub flow: u16,
    /// Its number in the flow, from 0.
    pub number: u32,
    /// When it was sent.
    pub sent: Duration,
    /// When it arrived; of packets that were sent: the same.
    pub arrived: Duration,
    /// Where it came from, as the receiver sees it; of packets that were sent: where they went.
    pub other: SocketAddr,
}

/// One direction's packets in their order.
#[derive(Clone, Debug, Default)]
pub struct DirectionLog {
    /// Those that the kernel took.
    pub sent: Vec<Packet>,
    /// Those that came out.
    pub arrived: Vec<Packet>,
}

/// A stream that has ended.
#[derive(Clone, Debug, Default)]
pub struct StreamReport {
    /// From the client.
    pub up: DirectionLog,
    /// The answers.
    pub down: DirectionLog,
}

impl DirectionLog {
    /// Packets that did not arrive.
    pub fn lost(&self) -> usize {
        self.missing().len()
    }

    /// Those that did not arrive, in the order in which they were sent.
    pub fn missing(&self) -> Vec<Packet> {
        let there: std::collections::HashSet<_> =
            self.arrived.iter().map(|packet| (packet.flow, packet.number)).collect();
        self.sent.iter().filter(|packet| !there.contains(&(packet.flow, packet.number))).copied().collect()
    }

    /// Packets that arrived behind one of their flow that was sent later.
    pub fn reordered(&self) -> usize {
        let mut next = std::collections::HashMap::new();
        let mut behind = 0;
        for packet in &self.arrived {
            let next = next.entry(packet.flow).or_insert(0);
            if packet.number < *next {
                behind += 1;
            }
            *next = (*next).max(packet.number + 1);
        }
        behind
    }

    /// Packets that were sent in this span of time and did not arrive.
    pub fn lost_between(&self, from: Duration, to: Duration) -> usize {
        self.missing().iter().filter(|packet| (from..to).contains(&packet.sent)).count()
    }

    /// Flows whose packets came from more than one endpoint.
    pub fn flows_that_moved(&self) -> usize {
        let endpoints: std::collections::HashSet<_> =
            self.arrived.iter().map(|packet| (packet.flow, packet.other)).collect();
        let flows: std::collections::HashSet<_> = endpoints.iter().map(|(flow, _)| flow).collect();
        endpoints.len() - flows.len()
    }

    /// The time from the first loss to the last one; zero if nothing was lost.
    pub fn outage(&self) -> Duration {
        let missing = self.missing();
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Duration::ZERO };
        last.sent.saturating_sub(first.sent)
    }
}

impl StreamReport {
    /// Packets lost, up and down.
    pub fn lost(&self) -> [usize; 2] {
        [self.up.lost(), self.down.lost()]
    }

    /// Packets out of their order, up and down.
    pub fn reordered(&self) -> [usize; 2] {
        [self.up.reordered(), self.down.reordered()]
    }

    /// Packets sent, up and down.
    pub fn sent(&self) -> [usize; 2] {
        [self.up.sent.len(), self.down.sent.len()]
    }
}

/// A stream at work.
pub struct Numbered {
    begun: Instant,
    stop: Arc<AtomicBool>,
    all_arrived: Arc<AtomicBool>,
    client: JoinHandle<Result<DirectionLog>>,
    server: JoinHandle<Result<DirectionLog>>,
}

impl Numbered {
    /// Opens the sockets and begins to send.
    pub fn start(plan: &Plan<'_>) -> Result<Self> {
        let begun = Instant::now();
        let (stop, all_arrived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let server = bind(plan.server, plan.listens)?;
        let mut sockets = Vec::new();
        for flow in 0..plan.flows {
            let port = plan.source.port() + flow;
            let socket = bind(plan.client, SocketAddr::new(plan.source.ip(), port))?;
            socket.connect(plan.target).asking(|| format!("connecting to {}", plan.target))?;
            socket.set_nonblocking(true).asking(|| "O_NONBLOCK".to_owned())?;
            sockets.push(socket);
        }
        let client = Client::new(sockets, plan, begun)?;
        let server = Server { socket: server, begun, numbers: vec![0; plan.flows.into()] };
        let (until, all) = (Arc::clone(&stop), Arc::clone(&all_arrived));
        let client = std::thread::spawn(move || client.run(&until, &all));
        let all = Arc::clone(&all_arrived);
        let server = std::thread::spawn(move || server.run(&all));
        Ok(Self { begun, stop, all_arrived, client, server })
    }

    /// Time since the stream's beginning.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Stops sending, waits for what is under way, and gives the account.
    pub fn end(self) -> Result<StreamReport> {
        self.stop.store(true, Ordering::Relaxed);
        std::thread::sleep(LAST);
        self.all_arrived.store(true, Ordering::Relaxed);
        let join = |thread: JoinHandle<Result<DirectionLog>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Failure::Unexpected("a stream's thread panicked".to_owned())))
        };
        let (client, server) = (join(self.client)?, join(self.server)?);
        let up = DirectionLog { sent: client.sent, arrived: server.arrived };
        let down = DirectionLog { sent: server.sent, arrived: client.arrived };
        Ok(StreamReport { up, down })
    }
}

fn bind(host: &Namespace, address: SocketAddr) -> Result<UdpSocket> {
    let socket = host.enter(|| UdpSocket::bind(address))?.asking(|| format!("binding {address}"))?;
    setsockopt(&socket, RcvBufForce, &ROOM).asking(|| "SO_RCVBUFFORCE".to_owned())?;
    Ok(socket)
}

fn write(octets: &mut [u8], flow: u16, number: u32, sent: Duration) {
    octets[..2].copy_from_slice(&flow.to_be_bytes());
    octets[4..8].copy_from_slice(&number.to_be_bytes());
    octets[8..16].copy_from_slice(&(sent.as_nanos() as u64).to_be_bytes());
}

/// A packet of ours that arrived; none if its octets are not what we send.
fn read(octets: &[u8], arrived: Duration, other: SocketAddr) -> Option<Packet> {
    let (head, rest) = octets.split_at_checked(HEAD)?;
    let flow = u16::from_be_bytes([head[0], head[1]]);
    let number = u32::from_be_bytes(head[4..8].try_into().ok()?);
    let sent = Duration::from_nanos(u64::from_be_bytes(head[8..16].try_into().ok()?));
    rest.iter().all(|octet| *octet == FILL).then_some(Packet { flow, number, sent, arrived, other })
}

/// What payloads are filled up with.
const FILL: u8 = 0x36;

struct Client {
    sockets: Vec<UdpSocket>,
    numbers: Vec<u32>,
    epoll: Epoll,
    begun: Instant,
    per_second: u32,
    octets: Vec<u8>,
    target: SocketAddr,
    way: DirectionLog,
}

impl Client {
    fn new(sockets: Vec<UdpSocket>, plan: &Plan<'_>, begun: Instant) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).asking(|| "epoll".to_owned())?;
        for (number, socket) in sockets.iter().enumerate() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, number as u64);
            epoll.add(socket, event).asking(|| "adding to an epoll".to_owned())?;
        }
        let numbers = vec![0; sockets.len()];
        let octets = vec![FILL; plan.octets.max(HEAD)];
        let (per_second, target, way) = (plan.per_second, plan.target, DirectionLog::default());
        Ok(Self { sockets, numbers, epoll, begun, per_second, octets, target, way })
    }

    fn run(mut self, stop: &AtomicBool, all_arrived: &AtomicBool) -> Result<DirectionLog> {
        let start = self.begun.elapsed();
        let mut due = 0;
        while !all_arrived.load(Ordering::Relaxed) {
            let passed = self.begun.elapsed().saturating_sub(start);
            if !stop.load(Ordering::Relaxed) {
                let until = (passed.as_nanos() * u128::from(self.per_second) / 1_000_000_000) as usize;
                // What could not be sent in time after a pause of the machine's is not made good in one burst.
                due = due.max(until.saturating_sub(64));
                while due < until {
                    self.send(due % self.sockets.len());
                    due += 1;
                }
            }
            self.receive()?;
        }
        Ok(self.way)
    }

    fn send(&mut self, flow: usize) {
        let sent = self.begun.elapsed();
        let number = self.numbers[flow];
        write(&mut self.octets, flow as u16, number, sent);
        // What the kernel refuses (a full queue, no route, an ICMP error before) was not sent, and does not count.
        if self.sockets[flow].send(&self.octets).is_ok() {
            self.numbers[flow] += 1;
            self.way.sent.push(Packet { flow: flow as u16, number, sent, arrived: sent, other: self.target });
        }
    }

    fn receive(&mut self) -> Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        let ready = match self.epoll.wait(&mut events, EpollTimeout::from(1_u8)) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error).asking(|| "waiting for answers".to_owned()),
        };
        let mut octets = [0; 2_048];
        for event in &events[..ready] {
            let Some(socket) = self.sockets.get(event.data() as usize) else { continue };
            while let Ok(length) = socket.recv(&mut octets) {
                self.way.arrived.extend(read(&octets[..length], self.begun.elapsed(), self.target));
            }
        }
        Ok(())
    }
}

struct Server {
    socket: UdpSocket,
    begun: Instant,
    numbers: Vec<u32>,
}

impl Server {
    /// Answers each packet with one of the flow's numbers on the way back.
    fn run(mut self, all_arrived: &AtomicBool) -> Result<DirectionLog> {
        let wait = Some(Duration::from_millis(20));
        self.socket.set_read_timeout(wait).asking(|| "setting a time limit".to_owned())?;
        let mut way = DirectionLog::default();
        let mut octets = [0; 2_048];
        while !all_arrived.load(Ordering::Relaxed) {
            let Ok((length, from)) = self.socket.recv_from(&mut octets) else { continue };
            let now = self.begun.elapsed();
            let Some(packet) = read(&octets[..length], now, from) else { continue };
            way.arrived.push(packet);
            let Some(number) = self.numbers.get_mut(usize::from(packet.flow)) else { continue };
            write(&mut octets, packet.flow, *number, now);
            if self.socket.send_to(&octets[..length.min(ANSWER)], from).is_ok() {
                way.sent.push(Packet { number: *number, sent: now, ..packet });
                *number += 1;
            }
        }
        Ok(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn packet(flow: u16, number: u32) -> Packet {
        let time = Duration::from_millis(number.into());
        Packet { flow, number, sent: time, arrived: time, other: HERE }
    }

    #[test]
    fn what_is_missing_late_or_in_order_is_distinguished() {
        let sent: Vec<_> = (0..4).flat_map(|number| [packet(0, number), packet(1, number)]).collect();
        let mut arrived = sent.clone();
        let whole = DirectionLog { sent: sent.clone(), arrived: arrived.clone() };
        assert_eq!((whole.lost(), whole.reordered(), whole.outage()), (0, 0, Duration::ZERO));
        arrived.swap(2, 3);
        assert_eq!(
            DirectionLog { sent: sent.clone(), arrived: arrived.clone() }.reordered(),
            0,
            "of two flows"
        );
        arrived.swap(2, 5);
        assert_eq!(DirectionLog { sent: sent.clone(), arrived: arrived.clone() }.reordered(), 1);
        arrived.retain(|packet| packet.flow == 1 || packet.number == 0);
        let way = DirectionLog { sent, arrived };
        assert_eq!((way.lost(), way.outage()), (3, Duration::from_millis(2)));
        assert_eq!(way.flows_that_moved(), 0);
        let elsewhere = Packet { other: SocketAddr::new(HERE.ip(), 2), ..packet(1, 9) };
        assert_eq!(DirectionLog { arrived: vec![packet(1, 8), elsewhere], ..way }.flows_that_moved(), 1);
    }

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let mut octets = [FILL; 100];
        write(&mut octets, 999, 70_000, Duration::from_nanos(5));
        let read_back = read(&octets, Duration::from_nanos(9), HERE).unwrap();
        assert_eq!((read_back.flow, read_back.number), (999, 70_000));
        octets[99] = 0;
        assert_eq!(read(&octets, Duration::ZERO, HERE), None);
    }
}
