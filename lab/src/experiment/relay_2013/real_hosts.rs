//! A real 6to4 host in place of our own load's encapsulation: `ping6` as the paper used it, and UDP and TCP, which its authors left for later.
//!
//! The host is Sixway with `role = "host"`, whose own CPU time is noted; with plain forwarding it is a host with a native address.

use super::load::{HOSTS, RELAY, host_address};
use super::topology::{INSIDE, OUTSIDE, network};
use crate::device::{Forward, Host6to4, Place, Relay6to4, Running, Task, TaskKind};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::experiment::six_to_four_host;
use crate::failure::Result;
use crate::interrupt;
use crate::load::{Ends, Gaps, Load as _, Outcome, Pace, TcpBulk, Trip, UdpStream, Until, histogram};
use crate::measure::{Cores, Reading};
use crate::probe::ping;
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first responder's own address: a socket takes answers from the address that it was connected to only.
const RESPONDER: Ipv6Addr = Ipv6Addr::new(0x2a02, 0xa50, 0, 0, 0, 0, 0, 2);
const PORT: u16 = 7_000;
/// Round trips a second: far below what a relay carries.
const RATE: f64 = 2_000.0;
/// Requests of `ping` for each second of a row: hundreds of milliseconds of them if each is answered in a hundred microseconds.
const REQUESTS: f64 = 3_000.0;
/// The fewest requests of `ping`: they last longer than the ten ticks that the CPU time of a row takes to be certain.
const FEWEST: u32 = 2_000;
/// Octets of the headers of IPv6 and UDP, and of an echo request.
const HEADERS: usize = 48;

/// How long a row takes: ten seconds at scale 1.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((10.0 * scale).clamp(0.3, 10.0))
}

/// How many requests `ping` sends in a row that takes this time.
fn requests(time: Duration) -> u32 {
    FEWEST.max((time.as_secs_f64() * REQUESTS) as u32)
}

/// A relay and a host that tunnels.
pub struct RealHost {
    // Dropped first: a device's end needs its network.
    relay: Box<dyn Running>,
    host: Option<Box<dyn Running>>,
    network: Arc<Network>,
    cores: Cores,
    time: Duration,
}

impl RealHost {
    /// Builds the network, and starts the relay and the host.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let native = !line.device.tasks().contains(&TaskKind::Relay6to4);
        let task =
            if native { Task::Forward(Forward) } else { Task::Relay6to4(Relay6to4 { address: RELAY }) };
        let network = Arc::new(network(native, 1, line.cores)?);
        let place = |host, inside, outside, core| Place {
            network: Arc::clone(&network),
            host,
            inside: vec![inside],
            outside: vec![outside],
            core,
        };
        let relay = line.device.start(&place("relay", INSIDE, OUTSIDE, line.cores.device), &task)?;
        let host = match native {
            true => None,
            false => {
                let host = Host6to4 { address: host_address(1), relay: RELAY };
                Some(six_to_four_host::start(&place(HOSTS[0], "up0", "up0", line.cores.tester), host)?)
            }
        };
        let real = Self { relay, host, network, cores: line.cores, time: time(line.asked.scale) };
        real.warm_up()?;
        Ok(real)
    }

    fn ends(&self) -> Result<Ends<'_>> {
        let (client, server) = (self.network.host(HOSTS[0])?, self.network.host("responder1")?);
        Ok(Ends { client, server, core: self.cores.tester })
    }

    fn stream(&self, octets: usize) -> Result<UdpStream<'_>> {
        let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        Ok(UdpStream {
            ends: self.ends()?,
            source: SocketAddr::new(any, PORT + 1_000),
            target: SocketAddr::new(RESPONDER.into(), PORT),
            listens: SocketAddr::new(any, PORT),
            flows: 8,
            payload: octets.saturating_sub(HEADERS),
            trip: Trip::Round,
        })
    }

    fn warm_up(&self) -> Result<()> {
        let few = Pace::Open { per_second: 1_000.0, gaps: Gaps::Even };
        interrupt::wait_until(Duration::from_secs(10), "an answer through the relay", || {
            Ok(self.stream(104)?.run(few, Until::Count(16))?.lost == 0)
        })
    }

    /// `ping -i 0` with 56 octets, each request when the last one was answered.
    fn ping(&self, octets: usize) -> Result<Outcome> {
        let count = requests(self.time);
        let host = self.network.host(HOSTS[0])?;
        let payload = octets.saturating_sub(HEADERS) as u32;
        let start = Instant::now();
        let trips = ping(host, &RESPONDER.to_string(), count, payload, Duration::ZERO)?;
        let mut outcome = Outcome { sent: trips.sent.into(), took: start.elapsed(), ..Outcome::default() };
        for time in &trips.milliseconds {
            outcome.answer(Duration::from_secs_f64(time / 1e3));
        }
        // Several answers to one request have several times.
        outcome.answered = trips.answered.into();
        outcome.lost = outcome.sent.saturating_sub(outcome.answered);
        Ok(outcome)
    }

    fn load(&self, series: &str, octets: usize) -> Result<Outcome> {
        match series {
            "udp" => {
                let pace = Pace::Open { per_second: RATE, gaps: Gaps::Even };
                self.stream(octets)?.run(pace, Until::Time(self.time))
            }
            "tcp" => {
                let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
                let bulk = TcpBulk {
                    ends: self.ends()?,
                    target: SocketAddr::new(RESPONDER.into(), PORT),
                    listens: SocketAddr::new(any, PORT),
                    write: octets,
                    no_delay: false,
                    segment: None,
                };
                bulk.run(Pace::AsFastAsPossible, Until::Time(self.time))
            }
            _ => self.ping(octets),
        }
    }
}

impl Stage for RealHost {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let octets = cell.at("octets") as usize;
        let host = |real: &Self| real.host.as_ref().map(|host| host.cpu()).transpose();
        let before = host(self)?;
        let measured = measure(self.relay.as_ref(), (self.cores, Reading::Ticks), sheet, || {
            self.load(&cell.series, octets)
        })?;
        let outcome = &measured.outcome;
        if let (Some(before), Some(after)) = (before, host(self)?) {
            let spent = after.spent.saturating_sub(before.spent).as_secs_f64();
            // In the same time as the relay's.
            sheet.value("host-cpu", spent / measured.active.as_secs_f64().max(1e-9), Unit::Cores);
        }
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        if cell.series == "tcp" {
            let seconds = outcome.took.as_secs_f64().max(1e-9);
            sheet.value("bits", outcome.octets as f64 * 8.0 / seconds, Unit::BitsPerSecond);
            return Ok(());
        }
        sheet.value("answered", outcome.answered as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        let times = if outcome.latency.is_empty() { &histogram() } else { &outcome.latency };
        sheet.times("response", times)
    }
}

#[cfg(test)]
mod tests {
    use super::{requests, time};

    #[test]
    fn requests_of_a_short_row_last_ten_ticks() {
        // Of a hundred microseconds each, at a hundred ticks a second.
        assert!([0.002, 0.02, 0.1, 1.0].iter().all(|scale| requests(time(*scale)) >= 2_000));
        assert_eq!(requests(time(1.0)), 30_000);
    }
}
