//! The network with a mechanism at work, and loads through it and past it.

use super::bad_path::BadPath;
use super::renewal::Renewal;
use super::timers::Timers;
use super::topology::{Terrain, network};
use super::way::{TEREDO_HOST4, Target, Way};
use crate::device::{
    Change, CpuReading, CpuSource, Device, Nat64, Place, Realm, Running, Task, TaskKind, find,
};
use crate::experiment::contract::Line;
use crate::experiment::measured::{Measured, measure, note_clock, own};
use crate::experiment::several::Several;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::impair::ImpairedWire;
use crate::interrupt;
use crate::load::{
    Background, EchoSweep, Ends, From, Gaps, Load as _, Outcome, Pace, TcpBulk, TransactionKind,
    Transactions, Trip, UdpStream, Until,
};
use crate::measure::{Cores, Meter, Reading};
use crate::probe::cpu::pin_thread;
use crate::results::TesterCost;
use crate::teredo;
use crate::topology::Network;
use sixway_wire::{ICMP_HEADER, IPV4_HEADER, IPV6_HEADER};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The port of the server.
const PORT: u16 = 7_000;
/// That of background traffic.
const BACKGROUND: u16 = 9_000;
/// The device at the other end of a mechanism of which a device knows only one.
const PARTNER: &str = "sixway";
/// One at a time, without a pause.
const ONE: Pace = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };
/// How long a mechanism may take until it carries packets.
const AT_WORK: Duration = Duration::from_secs(20);

/// How octets are written into a TCP connection.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Octets of one write.
    pub write: usize,
    /// Whether a segment leaves with each write.
    pub no_delay: bool,
    /// The greatest segment, if not the path's.
    pub segment: Option<u32>,
}

/// A mechanism at work.
pub struct AtWork {
    // Dropped first: a device's end needs its network.
    running: Vec<Box<dyn Running>>,
    bad: Option<ImpairedWire>,
    network: Arc<Network>,
    way: Way,
    timers: Timers,
    cores: Cores,
}

impl AtWork {
    /// Builds the network and starts the device at both ends, and waits for an answer through it and past it.
    pub fn build(way: Way, terrain: Terrain, line: &Line<'_>) -> Result<Self> {
        Self::build_with(way, terrain, Timers::Usual, line)
    }

    /// The same with other timers.
    pub fn build_with(way: Way, terrain: Terrain, timers: Timers, line: &Line<'_>) -> Result<Self> {
        let network = Arc::new(match way {
            Way::Teredo => network_of_teredo()?,
            _ => network(terrain, line.cores)?,
        });
        way.routes().iter().try_for_each(|(host, route)| network.route(host, route))?;
        let mut at_work = Self { running: Vec::new(), bad: None, network, way, timers, cores: line.cores };
        at_work.start(line.device)?;
        for target in [way.target(), way.native()] {
            at_work.is_reached(target, 56)?;
        }
        let (middle, links): (_, &[&str]) = match way {
            Way::Teredo => ("middle", &["down0", "down1", "down2"]),
            _ => ("b", &["in0", "out0"]),
        };
        at_work.bad = BadPath::lay(line.asked, &at_work.network, middle, links)?;
        Ok(at_work)
    }

    /// Starts the device at both ends.
    fn start(&mut self, device: &dyn Device) -> Result<()> {
        for part in self.way.parts(self.timers) {
            let place = Place {
                network: Arc::clone(&self.network),
                host: part.host,
                inside: part.links.0.to_vec(),
                outside: part.links.1.to_vec(),
                core: self.cores.device,
            };
            self.running
                .push(self.player(device, part.task.kind())?.start(&place, &pooled(device, part.task))?);
        }
        Ok(())
    }

    /// Who does a task of this kind: the device, or its partner, which is also the other end of a device on another machine, of which there is one.
    fn player<'a>(&self, device: &'a dyn Device, kind: TaskKind) -> Result<&'a dyn Device> {
        let is_needed_again = device.card().realm == Realm::Remote && !self.running.is_empty();
        if !is_needed_again && (device.tasks().contains(&kind) || self.way.partners() != Some(kind)) {
            return Ok(device);
        }
        find(PARTNER).ok_or_else(|| Failure::Unexpected(format!("no device is named {PARTNER}")))
    }

    /// Ends the mechanism and begins it again, until the first answer.
    pub fn renew(&mut self, device: &dyn Device) -> Result<Renewal> {
        Renewal::of(
            self,
            |it| it.running.clear(),
            |it| {
                it.start(device)?;
                it.is_reached(it.way.target(), 56)
            },
        )
    }

    /// Restarts both ends, one after the other: how long it took to the first answer.
    pub fn restart(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.running.iter_mut().try_for_each(|end| end.restart())?;
        self.is_reached(self.way.target(), 56)?;
        Ok(start.elapsed())
    }

    /// Puts what passes between both ends, and native IPv6, into ESP; waits for answers through it.
    ///
    /// # Errors
    /// The device has no IPsec, or the mechanism has other ends.
    pub fn protect(&mut self) -> Result<()> {
        let ends = self.way.protection();
        let ends = ends.ok_or_else(|| Failure::Unexpected(format!("no IPsec for {}", self.way.name())))?;
        for (end, value) in self.running.iter_mut().zip(ends) {
            end.configure(&Change { key: "esp".to_owned(), value })?;
        }
        [self.way.target(), self.way.native()].into_iter().try_for_each(|target| self.is_reached(target, 56))
    }

    /// Begins to send IP packets of this length at a rate of bits a second to the server.
    pub fn background(&self, target: Target, packet: usize, bits: f64) -> Result<Background> {
        let stream = UdpStream {
            ends: self.ends()?,
            source: SocketAddr::new(any(target.address.is_ipv6()), 0),
            target: SocketAddr::new(target.address, BACKGROUND),
            listens: SocketAddr::new(target.arrives_at, BACKGROUND),
            flows: 1,
            payload: 16,
            trip: Trip::OneWay,
        };
        Background::start(&stream, packet, bits)
    }

    /// Its timers.
    pub fn timers(&self) -> Timers {
        self.timers
    }

    /// The mechanism.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, for what lasts longer than a borrowed one.
    pub fn shared_network(&self) -> Arc<Network> {
        Arc::clone(&self.network)
    }

    /// Waits until requests of this length are answered: the first ones find neighbours and the path's MTU.
    pub fn is_reached(&self, target: Target, data: usize) -> Result<()> {
        interrupt::wait_until(AT_WORK, &format!("answers from {}", target.address), || {
            // There may be no route yet.
            Ok(self.echo(target, data, 2).is_ok_and(|outcome| outcome.lost == 0))
        })
    }

    /// Echo requests, one at a time, with this number of octets of data.
    pub fn echo(&self, target: Target, data: usize, count: u16) -> Result<Outcome> {
        let (from, header) = match target.address {
            IpAddr::V4(_) => (From::Ipv4, IPV4_HEADER),
            IpAddr::V6(_) => (From::Native, IPV6_HEADER),
        };
        let octets = header + ICMP_HEADER + data;
        let sweep = EchoSweep { from, flows: vec![vec![target.address]], each: count, octets };
        let core = self.cores.tester;
        self.network.host("client")?.enter(|| {
            core.map_or(Ok(()), pin_thread)?;
            sweep.run(ONE, Until::Done)
        })?
    }

    /// Octets over TCP, as many as go.
    pub fn tcp(&self, target: Target, stream: Stream, time: Duration) -> Result<Outcome> {
        let Stream { write, no_delay, segment } = stream;
        let (target, listens) = sockets(target);
        let bulk = TcpBulk { ends: self.ends()?, target, listens, write, no_delay, segment };
        bulk.run(Pace::AsFastAsPossible, Until::Time(time))
    }

    /// Datagrams with this payload one way, as fast as they go.
    pub fn udp(&self, target: Target, payload: usize, time: Duration) -> Result<Outcome> {
        let (target, listens) = sockets(target);
        let source = SocketAddr::new(any(target.is_ipv6()), 0);
        let (ends, flows, trip) = (self.ends()?, 1, Trip::OneWay);
        UdpStream { ends, source, target, listens, flows, payload, trip }
            .run(Pace::AsFastAsPossible, Until::Time(time))
    }

    /// Transactions, one at a time.
    ///
    /// # Errors
    /// None was answered: that is not a rate of 0.
    pub fn transactions(&self, target: Target, kind: TransactionKind, time: Duration) -> Result<Outcome> {
        let (target, listens) = sockets(target);
        let ends = self.ends()?;
        let (request, response, workers) = (16, 16, 1);
        let load = Transactions { ends, kind, target, listens, request, response, workers };
        answered(load.run(ONE, Until::Time(time))?, target)
    }

    /// Runs a load and returns its cost: the device's CPU time is that of both its ends.
    pub fn metered(&self, load: impl FnOnce() -> Result<Outcome>) -> Result<(Outcome, TesterCost, Duration)> {
        let before = Several(&self.running).cpu()?;
        let meter = Meter::begin(self.cores, Reading::Ticks)?;
        let outcome = load()?;
        let since = Several(&self.running).cpu()?.since(&before);
        let cost = meter.end(&outcome, own(&since))?;
        Ok((outcome, cost, since.spent))
    }

    /// Runs a load and writes on the sheet what it cost, how the CPU time of both ends varied, and their memory.
    pub fn measured(&self, sheet: &mut Sheet, load: impl FnOnce() -> Result<Outcome>) -> Result<Measured> {
        measure(&Several(&self.running), (self.cores, Reading::Ticks), sheet, load)
    }

    /// CPU time of both ends.
    pub fn spent(&self) -> Result<Duration> {
        Ok(Several(&self.running).cpu()?.spent)
    }

    /// CPU time of each end that is a program of its own or a machine: `None` if the kernel's time is that of both.
    pub fn spent_by_each(&self) -> Result<Option<Vec<Duration>>> {
        let readings = self.running.iter().map(|end| end.cpu()).collect::<Result<Vec<_>>>()?;
        let is_own = |it: &CpuReading| matches!(it.source, CpuSource::Process | CpuSource::Machine);
        Ok(readings.iter().all(is_own).then(|| readings.iter().map(|it| it.spent).collect()))
    }

    /// Datagrams with this payload one way, at a pace.
    pub fn paced(&self, target: Target, payload: usize, per_second: f64, count: u64) -> Result<Outcome> {
        let (target, listens) = sockets(target);
        let source = SocketAddr::new(any(target.is_ipv6()), 0);
        let (ends, flows, trip) = (self.ends()?, 1, Trip::OneWay);
        let pace = Pace::Open { per_second, gaps: Gaps::Even };
        UdpStream { ends, source, target, listens, flows, payload, trip }.run(pace, Until::Count(count))
    }

    /// Notes command lines and configurations of the device, and of what makes the path worse; and its clock, if it is on another machine.
    pub fn describe(&self, sheet: &mut Sheet) -> Result<()> {
        note_clock(&Several(&self.running), sheet)?;
        let path = self.bad.iter().map(|bad| bad.command().to_owned());
        let all = self.running.iter().flat_map(|end| end.commands()).chain(path);
        all.for_each(|line| sheet.command(line));
        Ok(())
    }

    fn ends(&self) -> Result<Ends<'_>> {
        let core = self.cores.tester;
        Ok(Ends { client: self.network.host("client")?, server: self.network.host(self.way.server())?, core })
    }
}

/// The same task; a translator without addresses of its own uses that of its link.
fn pooled(device: &dyn Device, task: Task) -> Task {
    match task {
        Task::Nat64(task) if !device.has_pool() => Task::Nat64(Nat64 { pool: Vec::new(), ..task }),
        other => other,
    }
}

/// The network of Teredo, where the far host has an IPv4 address, too.
fn network_of_teredo() -> Result<Network> {
    let network = teredo::network()?;
    network.address("host", "up0", &format!("{TEREDO_HOST4}/24"))?;
    network.address("gateway", "in0", "10.5.0.1/24")?;
    network.route("host", "default via 10.5.0.1")?;
    network.route("middle", "10.5.0.0/24 via 198.51.100.34")?;
    Ok(network)
}

/// The server as the client writes it, and as it listens.
fn sockets(target: Target) -> (SocketAddr, SocketAddr) {
    (SocketAddr::new(target.address, PORT), SocketAddr::new(target.arrives_at, PORT))
}

/// Transactions with a server, if it has answered one.
fn answered(outcome: Outcome, target: SocketAddr) -> Result<Outcome> {
    match outcome.answered {
        0 => Err(Failure::Unexpected(format!("{target} answered none of {} transactions", outcome.sent))),
        _ => Ok(outcome),
    }
}

/// The unspecified address of a version of IP.
pub const fn any(is_six: bool) -> IpAddr {
    match is_six {
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

/// Bits of payload that arrived in a second.
pub fn bits_per_second(octets: u64, outcome: &Outcome) -> f64 {
    octets as f64 * 8.0 / outcome.took.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_at_the_address_at_which_packets_arrive() {
        for way in Way::EVERY {
            for target in [way.target(), way.native()] {
                let (asked, listens) = sockets(target);
                assert!(!listens.ip().is_unspecified(), "{way:?}: it would answer from another address");
                assert_eq!((asked.ip(), listens.ip()), (target.address, target.arrives_at), "{way:?}");
            }
        }
        assert_eq!(sockets(Way::DsLite.target()).1.to_string(), "10.3.0.2:7000");
        assert_eq!(sockets(Way::Nat46.target()).1.to_string(), "[2001:db8:c::2]:7000");
    }

    #[test]
    fn transactions_without_an_answer_are_a_failure() {
        let target = SocketAddr::new(any(false), PORT);
        let outcome = |answered| Outcome { sent: 3, answered, ..Outcome::default() };
        let failure = answered(outcome(0), target).unwrap_err().to_string();
        assert!(failure.contains("0.0.0.0:7000 answered none of 3 transactions"), "{failure}");
        assert_eq!(answered(outcome(1), target).unwrap().answered, 1);
    }
}
