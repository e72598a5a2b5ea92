//! The loads, each by one way: through the boxes, or by the bare wire.

use super::scene::{Scene, any};
use super::topology::Path;
use crate::failure::{Failure, Result};
use crate::load::{
    CallReport, Calls, EchoSweep, From, Gaps, Histogram, HttpFetch, HttpServer, Load as _, Outcome, Pace,
    TransactionKind, Transactions, Until, histogram,
};
use crate::measure::{Capture, Captured, exchanges, handshakes};
use crate::probe::cpu::pin_thread;
use crate::probe::{RoundTrips, ping};
use sixway_wire::{ICMP_HEADER, IPV4_HEADER, IPV6_HEADER};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// One at a time, without a pause.
const ONE: Pace = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };
/// Echo requests 5 ms apart: without a pause, those of 1,400 octets fill a link of 100 Mbit/s by themselves, and wait for one another in its
/// queues.
const SPACED: Pace = Pace::Open { per_second: 200.0, gaps: Gaps::Even };

const CONNECTIONS: u16 = 7_000;
const HTTP: u16 = 80;
const SIP: u16 = 5_060;
/// What a count of connections or pages may take: where the background overloads the boxes, each one may wait a second for TCP to send its SYN
/// again.
const PATIENCE: Duration = Duration::from_secs(20);
const EACH: Duration = Duration::from_millis(20);

/// Octets of a page's text; the rest of a page is images of this size at most.
const TEXT: usize = 4_000;
const IMAGE: usize = 25_000;
/// Octets of data of the paper's pings.
const PING: usize = 1_400;

/// Times that captures have shown at both ends.
pub struct Seen {
    /// At the client's link.
    pub client: Histogram,
    /// At the server's link.
    pub server: Histogram,
}

impl Seen {
    fn of(times: impl Fn(&[Captured]) -> Vec<Duration>, client: &[Captured], server: &[Captured]) -> Self {
        let fill = |packets: &[Captured]| {
            let mut all = histogram();
            times(packets).iter().for_each(|time| all.saturating_record(time.as_nanos() as u64));
            all
        };
        Self { client: fill(client), server: fill(server) }
    }
}

/// Until this many, or until it takes much longer than it should.
fn within(count: u64) -> Until {
    Until::CountWithin(count, PATIENCE + EACH * count.min(u64::from(u32::MAX)) as u32)
}

/// Captures at both ends of a way while something runs.
fn captured<T>(
    scene: &Scene,
    path: &Path,
    filter: &str,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, [Vec<Captured>; 2])> {
    let at = |host| Capture::start(scene.network(), host, path.link, filter);
    let (client, server) = (at("client")?, at("server")?);
    let done = work()?;
    Ok((done, [client.end()?, server.end()?]))
}

/// Connections of TCP, one after the other: how long they took from SYN to the client's ACK.
pub fn connections(scene: &Scene, path: &Path, count: u64) -> Result<(Outcome, Seen)> {
    let transactions = Transactions {
        ends: scene.ends()?,
        kind: TransactionKind::TcpCrr,
        target: SocketAddr::new(path.server, CONNECTIONS),
        listens: SocketAddr::new(any(path.server), CONNECTIONS),
        request: 16,
        response: 16,
        workers: 1,
    };
    let filter = format!("tcp port {CONNECTIONS}");
    let (outcome, [client, server]) =
        captured(scene, path, &filter, || transactions.run(ONE, within(count)))?;
    Ok((outcome, Seen::of(handshakes, &client, &server)))
}

/// The objects of a page of this size: a text, and the images in it.
pub fn objects(page: usize) -> Vec<usize> {
    let mut all = vec![page.min(TEXT)];
    let mut left = page.saturating_sub(TEXT);
    while left > 0 {
        all.push(left.min(IMAGE));
        left = left.saturating_sub(IMAGE);
    }
    all
}

/// Pages, one after the other: the outcome has their times, and captures those from GET to the first octets of the answer.
pub fn pages(scene: &Scene, path: &Path, octets: usize, count: u64) -> Result<(Outcome, Seen)> {
    let ends = scene.ends()?;
    let listens = SocketAddr::new(any(path.server), HTTP);
    let _server = HttpServer::start(ends.server, listens, 2, ends.core)?;
    let fetch = HttpFetch {
        client: ends.client,
        core: ends.core,
        targets: &[SocketAddr::new(path.server, HTTP)],
        objects: &objects(octets),
        keep_alive: true,
        workers: 1,
    };
    let filter = format!("tcp port {HTTP}");
    let (outcome, [client, server]) = captured(scene, path, &filter, || fetch.run(ONE, within(count)))?;
    let answers = |packets: &[Captured]| exchanges(packets, b"GET ", b"HTTP/1.1 200");
    Ok((outcome, Seen::of(answers, &client, &server)))
}

/// Calls that are set up and ended immediately, then one with audio.
pub fn calls(scene: &Scene, path: &Path, count: u32, talk: Duration) -> Result<(CallReport, Seen)> {
    let calls = |calls, talk| -> Result<Calls<'_>> {
        let server = SocketAddr::new(path.server, SIP);
        Ok(Calls { ends: scene.ends()?, caller: path.client, target: server, callee: server, calls, talk })
    };
    let filter = format!("udp port {SIP}");
    let (report, [client, server]) = captured(scene, path, &filter, || {
        let mut set_up = calls(count, Duration::ZERO)?.run()?;
        let talked = calls(1, talk)?.run()?;
        set_up.made += talked.made;
        set_up.failed += talked.failed;
        Ok(CallReport { up: talked.up, down: talked.down, ..set_up })
    })?;
    let answers = |packets: &[Captured]| exchanges(packets, b"INVITE ", b"SIP/2.0 200");
    Ok((report, Seen::of(answers, &client, &server)))
}

/// Echo requests with the paper's data and one identifier, as `ping` has.
pub fn echoes(scene: &Scene, path: &Path, count: u16) -> Result<Outcome> {
    let (from, header) = match path.server {
        IpAddr::V4(_) => (From::Ipv4, IPV4_HEADER),
        IpAddr::V6(_) => (From::Native, IPV6_HEADER),
    };
    let octets = header + ICMP_HEADER + PING;
    let sweep = EchoSweep { from, flows: vec![vec![path.server]], each: count, octets };
    let core = scene.cores().tester;
    scene.network().host("client")?.enter(|| {
        core.map_or(Ok(()), pin_thread)?;
        sweep.run(SPACED, Until::Count(count.into()))
    })?
}

/// The same by `ping`.
pub fn pings(scene: &Scene, path: &Path, count: u16) -> Result<RoundTrips> {
    let (client, to) = (scene.network().host("client")?, path.server.to_string());
    ping(client, &to, count.into(), PING as u32, Duration::from_millis(10))
}

/// Requests over IPv6 whose outer packets are captured in front of the far router: how many were answered, how many left with each address, and how
/// many came back.
pub fn outer(scene: &Scene, path: &Path, count: u16) -> Result<(u64, [usize; 2], usize)> {
    let capture = Capture::start(scene.network(), "far", "in0", "ip proto 41")?;
    let outcome = echoes(scene, path, count)?;
    let packets = capture.end()?;
    let ends = |packet: &[u8]| -> Option<[[u8; 4]; 2]> {
        Some([packet.get(12..16)?.try_into().ok()?, packet.get(16..20)?.try_into().ok()?])
    };
    let sent = |from: std::net::Ipv4Addr| {
        let is_ours =
            |packet: &&Captured| ends(&packet.packet).is_some_and(|[source, _]| source == from.octets());
        packets.iter().filter(is_ours).count()
    };
    use super::form::{FAR, NAT, OWN};
    Ok((outcome.answered, [sent(OWN), sent(NAT)], sent(FAR)))
}

/// A load without a single answer has failed.
pub fn some(times: &Histogram, what: &str) -> Result<()> {
    match times.len() {
        0 => Err(Failure::Unexpected(format!("{what} was not seen"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_text_and_images() {
        assert_eq!(objects(4_000), [4_000]);
        assert_eq!(objects(1_000), [1_000]);
        assert_eq!(objects(30_000), [4_000, 25_000, 1_000]);
        assert_eq!(objects(150_000).iter().sum::<usize>(), 150_000);
    }
}
