//! Ten echo requests to each of 65,536 addresses for each client, eight at the same time.

use super::topology::{ADDRESSES, CLIENTS, Translator, addresses, target};
use crate::experiment::calibration::capacity;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{EchoSweep, From, Load as _, Outcome, Pace, Until};
use crate::measure::{Cores, Reading};
use crate::probe::cpu::pin_thread;
use crate::results::{Cell, QUANTILES, Unit};
use crate::topology::Network;
use std::time::Duration;

/// Echo requests to each address.
pub const EACH: u16 = 10;
/// Flows of one client.
pub const FLOWS: usize = 8;
/// Octets of a request's IPv6 packet, as `ping6` sends it.
const OCTETS: usize = 104;
/// An unanswered request is followed by the next one after this time, as by `ping -i 0`.
const RESEND: Duration = Duration::from_millis(10);
/// How long the device's capacity is measured.
const CALIBRATION: Duration = Duration::from_millis(500);
/// One client offers at most this share of the capacity.
const SHARE: f64 = 0.25;

/// What client `client`, counted from 1, sends: each flow visits every eighth of its addresses.
fn sweep(client: usize, octets: usize, scale: f64) -> EchoSweep {
    let count = addresses(scale) / FLOWS;
    let flow = |step: usize| (0..count).map(move |number| target(client, number * FLOWS + step)).collect();
    EchoSweep { from: From::Native, flows: (0..FLOWS).map(flow).collect(), each: EACH, octets }
}

/// Runs the clients' sweeps at the same time, each in a thread on the tester's core.
fn run(network: &Network, sweeps: &[EchoSweep], cores: Cores, pace: Pace, until: Until) -> Result<Outcome> {
    let one = |client: &'static str, sweep: &EchoSweep| {
        // Threads inherit the CPU, and the namespace is entered by a thread.
        cores.tester.map_or(Ok(()), pin_thread)?;
        network.host(client)?.enter(|| sweep.run(pace, until))?
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = CLIENTS
            .iter()
            .zip(sweeps)
            .map(|(client, sweep)| scope.spawn(move || one(client, sweep)))
            .collect();
        let mut all = Outcome::default();
        for client in running {
            let panicked = |_| Err(Failure::Unexpected("a client of the load panicked".to_owned()));
            all.add(&client.join().unwrap_or_else(panicked)?);
        }
        Ok(all)
    })
}

/// A translator at work, with its capacity measured.
pub struct Icmp {
    translator: Translator,
    octets: usize,
    /// The most sessions of the device, if they are limited.
    sessions: Option<u64>,
    /// Requests a second that are answered without any pause.
    capacity: f64,
    pause: Duration,
}

impl Icmp {
    /// Builds the network, starts the device and measures its capacity: with few sessions, if these are limited.
    pub fn build(line: &Line<'_>, states: Option<f64>) -> Result<Self> {
        let octets = line.asked.numbers("size", &[OCTETS as f64]).map_err(Failure::Unexpected)?;
        let octets = octets.first().map_or(OCTETS, |octets| *octets as usize);
        let sessions = states.map(|states| limit(states, line.asked.scale));
        let translator = Translator::build(line, sessions)?;
        let mut icmp = Self { translator, octets, sessions, capacity: 0.0, pause: Duration::ZERO };
        icmp.warm_up()?;
        let scale = sessions.map_or(1.0, |most| most as f64 / 4.0 / (CLIENTS.len() * ADDRESSES) as f64);
        icmp.capacity = capacity(|| {
            if sessions.is_some() {
                icmp.translator.running.restart()?;
                icmp.warm_up()?;
            }
            Ok(icmp.load(CLIENTS.len(), scale, Until::Time(CALIBRATION))?.per_second())
        })?;
        let visit = FLOWS as f64 * f64::from(EACH);
        icmp.pause = Duration::from_secs_f64(visit / (SHARE * icmp.capacity.max(1.0)));
        Ok(icmp)
    }

    fn load(&self, clients: usize, scale: f64, until: Until) -> Result<Outcome> {
        let sweeps: Vec<_> = (1..=clients).map(|client| sweep(client, self.octets, scale)).collect();
        let pace = Pace::Closed { in_flight: 1, pause: self.pause, resend: Some(RESEND) };
        run(&self.translator.network, &sweeps, self.translator.cores, pace, until)
    }

    /// The first packets wait for neighbours to be found, and a device that has just started may need a moment.
    fn warm_up(&self) -> Result<()> {
        interrupt::wait_until(Duration::from_secs(10), "an answer to every request of the warm-up", || {
            Ok(self.load(CLIENTS.len(), 0.0, Until::Done)?.lost == 0)
        })
    }
}

/// The limit of sessions at a scale, so that the load exceeds it by as much as at scale 1: of the paper's 40,000 states; none of a device's is lower than 1,024.
fn limit(states: f64, scale: f64) -> u64 {
    (states * scale).round().max(1_024.0) as u64
}

/// The scale of the load at such a limit: that at which the limit has the same share of it.
fn scale_of(states: f64, limit: u64) -> f64 {
    limit as f64 / states.max(1.0)
}

/// How long the load with a limit of sessions is: an address whose session is refused is waited for, so that all of them would take hours. Within
/// this time the table is full.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64(2.0 + 60.0 * scale)
}

/// With a limit of sessions all clients send.
fn clients(cell: &Cell) -> usize {
    cell.point.get("clients").map_or(CLIENTS.len(), |clients| *clients as usize)
}

impl Stage for Icmp {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        self.translator.running.restart()?;
        self.warm_up()?;
        let Translator { running, cores, scale, .. } = &self.translator;
        let measured = measure(running.as_ref(), (*cores, Reading::Ticks), sheet, || match self.sessions {
            None => self.load(clients(cell), *scale, Until::Done),
            Some(most) => {
                let scale_of_load = scale_of(cell.at("states"), most);
                self.load(clients(cell), scale_of_load, Until::Time(time(*scale)))
            }
        })?;
        let outcome = &measured.outcome;
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("late", outcome.late as f64, Unit::Count);
        sheet.times("response", &outcome.latency)?;
        let longest = outcome.latency.value_at_quantile(QUANTILES[6]) as f64 / 1e6;
        sheet.value("response-max", longest, Unit::Milliseconds);
        sheet.value("requests", outcome.per_second(), Unit::PerSecond);
        sheet.value("packets-both-ways", 2.0 * outcome.per_second(), Unit::PerSecond);
        let packets = 2.0 * outcome.answered as f64;
        sheet.value("cpu-per-packet", measured.nanoseconds_each(packets), Unit::NanosecondsPerPacket);
        measured.note_per_cpu_second("packets-per-cpu-second", packets, sheet);
        if let Some(most) = self.sessions {
            sheet.value("limit", most as f64, Unit::Count);
        }
        sheet.value("capacity", self.capacity, Unit::PerSecond);
        sheet.value("pause", self.pause.as_secs_f64() * 1e3, Unit::Milliseconds);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_limit_of_states_is_far_below_what_eight_clients_need() {
        assert_eq!([1.0, 0.1, 0.02].map(|scale| limit(40_000.0, scale)), [40_000, 4_000, 1_024]);
        for scale in [1.0, 0.1, 0.02, 0.001] {
            let most = limit(40_000.0, scale);
            let of_load = scale_of(40_000.0, most);
            assert!(of_load >= scale && 8 * addresses(of_load) as u64 > 9 * most, "{scale}");
        }
    }

    #[test]
    fn a_client_sends_as_many_requests_as_the_papers() {
        let sweep = sweep(2, OCTETS, 1.0);
        let mut targets = sweep.flows.concat();
        assert_eq!(targets.len() * usize::from(sweep.each), 655_360);
        targets.sort_unstable();
        targets.dedup();
        assert_eq!((targets.len(), sweep.flows.len()), (65_536, 8));
        assert!(targets.contains(&target(2, 65_535)));
    }
}
