//! Small UDP packets, as many as one core can send, counted where they arrive.

use super::cpu::{family, family_cpu, machine_cpu, pin_process, pin_thread, unpin_process};
use super::iperf::Direction;
use crate::failure::{Asking as _, Failure, Result};
use crate::forwarder::Running;
use crate::load::{Train, flood};
use crate::namespace::Namespace;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrStorage, sockopt::ReuseAddr};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// Octets of payload: with it the IPv6 packet has 64 octets, the IPv4 packet 44.
pub const PAYLOAD: usize = 16;

const PORT: u16 = 4_000;

/// What arrived, and what it cost.
#[derive(Clone, Copy, Debug)]
pub struct SmallUdp {
    /// Packets that arrived in a second.
    pub per_second: f64,
    /// CPU time of the forwarding process and those that it started for each packet that arrived, in nanoseconds; `None` for the kernel.
    pub forwarder_ns: Option<f64>,
    /// CPU time of the whole machine for each packet that arrived, in nanoseconds.
    pub machine_ns: f64,
    /// Packets sent and not arrived, as a share of those sent.
    pub lost: f64,
}

/// The sender on CPU 0, the forwarder on CPU 1; what arrives is counted at the receiving host's device and thrown away by a full socket.
pub fn small_udp(running: &Running, flows: usize, direction: Direction, time: Duration) -> Result<SmallUdp> {
    let client = running.network.host("client")?;
    let server = running.network.host("server")?;
    let sink = open(server, SocketAddr::new(parse(running.listens)?, PORT))?;
    let target = SocketAddr::new(parse(running.target)?, PORT);
    let from_client = connected(client, target, flows)?;
    let senders = match direction {
        Direction::Up => from_client,
        Direction::Down => answers(server, &sink, from_client)?,
    };
    let (from, to) = match direction {
        Direction::Up => (client, server),
        Direction::Down => (server, client),
    };
    let trains: Vec<_> = senders.sockets.iter().map(|socket| (socket, vec![&[0x36; PAYLOAD][..]])).collect();
    flooded(running.process, (from, to), &trains, time)
}

/// Sends as much as one core can from one host to another, whose device up0 counts what arrives; `process` is what forwards between them.
pub fn flooded(
    process: Option<u32>,
    (from, to): (&Namespace, &Namespace),
    trains: &[Train<'_>],
    time: Duration,
) -> Result<SmallUdp> {
    flooded_counting(process, from, &|| to.received_packets("up0"), trains, time)
}

/// The same from one host; `count` says how many packets have arrived.
///
/// # Errors
/// A packet could not be sent.
pub fn flooded_counting(
    process: Option<u32>,
    from: &Namespace,
    count: &dyn Fn() -> Result<u64>,
    trains: &[Train<'_>],
    time: Duration,
) -> Result<SmallUdp> {
    let family = process.map_or_else(|| Ok(Vec::new()), family)?;
    family.iter().try_for_each(|id| pin_process(*id, 1))?;
    let measured = measure(process, from, count, trains, time);
    family.iter().try_for_each(|id| unpin_process(*id))?;
    measured
}

fn measure(
    process: Option<u32>,
    from: &Namespace,
    count: &dyn Fn() -> Result<u64>,
    trains: &[Train<'_>],
    time: Duration,
) -> Result<SmallUdp> {
    let flooding = |time| {
        from.enter(|| {
            pin_thread(0)?;
            flood(trains, time)
        })?
    };
    flooding(Duration::from_millis(100))?;
    std::thread::sleep(Duration::from_millis(20));
    let cpu = || process.map(family_cpu).transpose();
    let (arrived, own, machine) = (count()?, cpu()?, machine_cpu()?);
    let sent = flooding(time)?;
    let arrived = (count()? - arrived).max(1) as f64;
    let (own_after, machine) = (cpu()?, machine_cpu()?.saturating_sub(machine));
    let each = |time: Duration| time.as_nanos() as f64 / arrived;
    Ok(SmallUdp {
        per_second: arrived / sent.time.as_secs_f64(),
        forwarder_ns: own.zip(own_after).map(|(before, after)| each(after.saturating_sub(before))),
        machine_ns: each(machine),
        lost: (1.0 - arrived / sent.sent.max(1) as f64).max(0.0),
    })
}

/// Sockets that are connected, and those at the other end, which must stay open so that no host answers "port unreachable".
struct Connected {
    sockets: Vec<UdpSocket>,
    _others: Vec<UdpSocket>,
}

fn connected(host: &Namespace, to: SocketAddr, flows: usize) -> Result<Connected> {
    let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let mut sockets = Vec::new();
    for _ in 0..flows {
        let socket = open(host, SocketAddr::new(any, 0))?;
        socket.connect(to).asking(|| format!("connecting to {to}"))?;
        sockets.push(socket);
    }
    Ok(Connected { sockets, _others: Vec::new() })
}

/// Lets each of the client's sockets send one packet, so that the server knows where to answer, and connects the answering sockets.
fn answers(server: &Namespace, sink: &UdpSocket, asking: Connected) -> Result<Connected> {
    sink.set_read_timeout(Some(Duration::from_secs(2))).asking(|| "setting a time limit".to_owned())?;
    let here = sink.local_addr().asking(|| "reading the sink's address".to_owned())?;
    let mut sockets = Vec::new();
    for socket in &asking.sockets {
        socket.send(&[0; PAYLOAD]).asking(|| "sending the first packet of a flow".to_owned())?;
        let mut octets = [0; 64];
        let (_, from) =
            sink.recv_from(&mut octets).asking(|| "waiting for the first packet of a flow".to_owned())?;
        let answering = open(server, here)?;
        answering.connect(from).asking(|| format!("connecting to {from}"))?;
        sockets.push(answering);
    }
    Ok(Connected { sockets, _others: asking.sockets })
}

/// A socket whose port others may share: the sink and those that answer from its port, each for one flow.
pub fn open(host: &Namespace, address: SocketAddr) -> Result<UdpSocket> {
    let family = if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    host.enter(|| {
        let socket = socket::socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        socket::setsockopt(&socket, ReuseAddr, &true)?;
        socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
        Ok::<_, nix::Error>(UdpSocket::from(socket))
    })?
    .asking(|| format!("binding {address}"))
}

fn parse(address: &str) -> Result<IpAddr> {
    address.parse().map_err(|_| Failure::Unexpected(format!("{address} is not an address")))
}
