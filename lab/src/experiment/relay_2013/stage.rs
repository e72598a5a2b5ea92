//! The network with a relay at work, and one measurement.

use super::load::{EACH, FLOWS, HOSTS, OCTETS, RELAY, run, sweep};
use super::topology::{INSIDE, OUTSIDE, network};
use crate::device::{Change, Forward, GUEST_CPU, GUEST_TICKS, Place, Relay6to4, Running, Task, TaskKind};
use crate::experiment::calibration::capacity;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Outcome, Pace, Until};
use crate::measure::{Cores, Reading};
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::sync::Arc;
use std::time::Duration;

/// An unanswered request is followed by the next one after this time, as by `ping -i 0`.
const RESEND: Duration = Duration::from_millis(10);
/// How long the device's capacity is measured.
const CALIBRATION: Duration = Duration::from_millis(500);
/// Rules of the packet filter in the puzzle.
const RULES: u32 = 500;
/// One host offers at most this share of the capacity.
const SHARE: f64 = 0.25;
/// The same for the puzzle: seven hosts offer the capacity, as in the paper.
const PAPERS_SHARE: f64 = 1.0 / 7.0;

/// How long a load of the puzzle is.
pub fn time_of_puzzle(scale: f64) -> Duration {
    Duration::from_secs_f64((100.0 * scale).clamp(2.0, 100.0))
}

/// CPU time of a guest since it booted, in seconds.
struct GuestTimes {
    by_ticks: f64,
    /// Of the thread that is its CPU.
    exact: f64,
}

/// A relay at work.
pub struct Relay {
    // Dropped first: a device's end needs its network.
    running: Box<dyn Running>,
    network: Arc<Network>,
    native: bool,
    cores: Cores,
    scale: f64,
    octets: usize,
    /// Requests a second that are answered without any pause.
    capacity: f64,
    /// What a host offers of the capacity.
    share: f64,
    pause: Duration,
    is_puzzle: bool,
}

impl Relay {
    /// Builds the network, starts the device as the first task that it can do, and measures its capacity, of which a host offers a share. In the
    /// puzzle, the device is a guest.
    pub fn build(responders: usize, is_puzzle: bool, line: &Line<'_>) -> Result<Self> {
        let native = !line.device.tasks().contains(&TaskKind::Relay6to4);
        let task =
            if native { Task::Forward(Forward) } else { Task::Relay6to4(Relay6to4 { address: RELAY }) };
        let network = Arc::new(network(native, responders, line.cores)?);
        let place = Place {
            network: Arc::clone(&network),
            host: "relay",
            inside: vec![INSIDE],
            outside: vec![OUTSIDE],
            core: line.cores.device,
        };
        let running = line.device.start(&place, &task)?;
        let octets = match line.asked.numbers("size", &[OCTETS as f64]).map_err(Failure::Unexpected)?[..] {
            [octets, ..] => octets as usize,
            [] => OCTETS,
        };
        let (cores, scale) = (line.cores, line.asked.scale);
        let mut relay = Self {
            running,
            network,
            native,
            cores,
            scale,
            octets,
            capacity: 0.0,
            share: if is_puzzle { PAPERS_SHARE } else { SHARE },
            pause: Duration::ZERO,
            is_puzzle,
        };
        relay.slow_down()?;
        relay.calibrate()?;
        Ok(relay)
    }

    /// An emulated guest spends about as much on its network cards as its CPU does on packets, on the same core. Rules make packets cost its CPU ten times
    /// as much, so that the core is used for packets most of the time.
    fn slow_down(&mut self) -> Result<()> {
        match self.is_puzzle {
            true => self.running.configure(&Change { key: "rules".to_owned(), value: RULES.to_string() }),
            false => Ok(()),
        }
    }

    /// Measures the capacity without any pause, from which the pause follows.
    fn calibrate(&mut self) -> Result<()> {
        self.warm_up()?;
        self.pause = Duration::ZERO;
        self.capacity =
            capacity(|| Ok(per_second(&self.load(HOSTS.len(), 1.0, Until::Time(CALIBRATION))?)))?;
        let visit = FLOWS as f64 * f64::from(EACH);
        self.pause = Duration::from_secs_f64(visit / (self.share * self.capacity.max(1.0)));
        Ok(())
    }

    fn load(&self, hosts: usize, scale: f64, until: Until) -> Result<Outcome> {
        let sweeps: Vec<_> = (1..=hosts).map(|i| sweep(i, self.native, self.octets, scale)).collect();
        let pace = Pace::Closed { in_flight: 1, pause: self.pause, resend: Some(RESEND) };
        run(&self.network, &sweeps, self.cores, pace, until)
    }

    /// The first packets wait for neighbours to be found, and a device that has just started may need a moment.
    fn warm_up(&self) -> Result<()> {
        interrupt::wait_until(Duration::from_secs(10), "an answer to every request of the warm-up", || {
            Ok(self.load(HOSTS.len(), 0.0, Until::Done)?.lost == 0)
        })
    }
}

impl Stage for Relay {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        self.running.restart()?;
        self.slow_down()?;
        match cell.point.get("octets") {
            // The capacity depends on the size.
            Some(octets) if *octets as usize != self.octets => {
                self.octets = *octets as usize;
                self.calibrate()?;
            }
            Some(_) | None => self.warm_up()?,
        }
        // A tick is a hundredth of a second: the puzzle needs many of them with one host, too.
        let (scale, until) = match cell.series.as_str() {
            "puzzle" => (1.0, Until::Time(time_of_puzzle(self.scale))),
            _ => (self.scale, Until::Done),
        };
        let before = self.guest_times()?;
        let mut after = None;
        let measured = measure(self.running.as_ref(), (self.cores, Reading::Ticks), sheet, || {
            let outcome = self.load(cell.at("hosts") as usize, scale, until);
            // Reading the guest's memory afterwards costs time, too.
            after = self.guest_times()?;
            outcome
        })?;
        let outcome = &measured.outcome;
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("late", outcome.late as f64, Unit::Count);
        sheet.times("response", &outcome.latency)?;
        sheet.value("requests", per_second(outcome), Unit::PerSecond);
        sheet.value("packets-both-ways", 2.0 * per_second(outcome), Unit::PerSecond);
        if let (Some(before), Some(after)) = (before, after) {
            let each = |seconds: f64| seconds * 1e3 / outcome.answered.max(1) as f64;
            for (of, cost, spent) in [
                ("guest-ticks", "cost-by-ticks", after.by_ticks - before.by_ticks),
                ("guest-cpu", "cost", after.exact - before.exact),
            ] {
                sheet.value(of, spent / measured.active.as_secs_f64().max(1e-9), Unit::Cores);
                sheet.value(cost, each(spent), Unit::CpuMilliseconds);
            }
        }
        let packets = 2.0 * outcome.answered.max(1) as f64;
        sheet.value("cpu-per-packet", measured.nanoseconds_each(packets), Unit::NanosecondsPerPacket);
        sheet.value("capacity", self.capacity, Unit::PerSecond);
        sheet.value("pause", self.pause.as_secs_f64() * 1e3, Unit::Milliseconds);
        Ok(())
    }
}

impl Relay {
    /// CPU time of a guest.
    fn guest_times(&self) -> Result<Option<GuestTimes>> {
        let counters = self.running.counters()?;
        let of =
            |wanted: &str| counters.iter().find(|(name, _)| name == wanted).map(|(_, count)| *count as f64);
        // A tick of user space is a hundredth of a second.
        let times = of(GUEST_TICKS).zip(of(GUEST_CPU));
        Ok(times.map(|(ticks, exact)| GuestTimes { by_ticks: ticks / 100.0, exact: exact / 1e6 }))
    }
}

/// Requests that were answered in a second, each counted once.
fn per_second(outcome: &Outcome) -> f64 {
    outcome.answered as f64 / outcome.took.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_once() {
        let mut outcome = Outcome { sent: 10, took: Duration::from_secs(2), ..Outcome::default() };
        (0..10).for_each(|_| outcome.answer(Duration::from_millis(1)));
        assert_eq!(per_second(&outcome), 5.0);
    }
}
