//! Long UDP flows in frames that the kernel makes: what a translator forwards when a little more is offered. The paper has no
//! such series; echo requests and small files do not show what a data path can do, for a tester in user space is slower than most of them.
//!
//! The tester's core makes the frames and takes those that arrive, so less is offered than it could make: a row in which it has no time left says
//! nothing of the device. So a short search finds how much the device forwards, and it is offered a tenth more than that.

use super::topology::{direct, target};
use crate::device::{Forward, Nat64, Place, Running, Task, TaskKind};
use crate::experiment::calibration;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::{Live, Stream};
use crate::experiment::measured::measure;
use crate::experiment::rfc8219::search::{Search, Seen, Trial};
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{FrameEnds, Gaps, Load as _, Pace, Trip, Until};
use crate::measure::{Cores, Reading};
use crate::results::{Cell, Unit};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// The source of all flows, which differ by their ports: behind the first client, for the last 16 bits are the program's.
const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfdb9, 0xa0ab, 0xaf17, 0xfffd, 0, 0, 1, 0);
const PORT: u16 = 7_000;

/// Share of what the tester's core can make that is offered at most.
const MOST: f64 = 0.6;
/// How long is measured what it can make, twice at least.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Share of the frames that may be lost at the rate that is searched.
const LOSS: f64 = 0.01;
/// What is offered, in multiples of the device's capacity: the device is to be the limit.
const ABOVE: f64 = 1.1;
/// How long a rate is tried in the search.
const TRIAL: Duration = Duration::from_millis(100);
/// How long a little more than what was found is offered, to see how much of it passes for longer: a queue of 10,000 packets takes half of what
/// comes in a trial of the search.
const SETTLED: Duration = Duration::from_secs(1);
/// The lowest rate that is tried, in frames a second.
const LEAST: f64 = 1_000.0;
/// The share of itself to which that rate is found.
const PRECISION: f64 = 0.25;

/// How long a row takes: ten seconds at scale 1.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((10.0 * scale).clamp(0.3, 10.0))
}

/// A translator between a client and the responder.
pub struct Udp {
    // Dropped first: a device's end needs its network.
    running: Box<dyn Running>,
    live: Live,
    cores: Cores,
    time: Duration,
}

impl Udp {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let native = !line.device.tasks().contains(&TaskKind::Nat64);
        let network = Arc::new(direct(native)?);
        let place = Place {
            network: Arc::clone(&network),
            host: "translator",
            inside: vec!["in0"],
            outside: vec!["out0"],
            core: line.cores.device,
        };
        let task = match native {
            true => Task::Forward(Forward),
            false => Task::Nat64(Nat64 {
                prefix: super::topology::PREFIX.to_owned(),
                pool: super::topology::pool(line),
                sessions: None,
            }),
        };
        let running = line.device.start(&place, &task)?;
        let is_process = running.cpu()?.is_process();
        let ends = (("client1", "up0"), ("responder", "up0"));
        let live = Live::new(&network, line.cores, ends, ("translator", ["in0", "out0"]), is_process)?;
        Ok(Self { running, live, cores: line.cores, time: time(line.asked.scale) })
    }
}

impl Stage for Udp {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let flows = cell.at("flows") as u32;
        let ends = FrameEnds {
            to: self.live.door(),
            source: SOURCE.into(),
            destination: target(1, 257),
            port: PORT,
            flows,
            octets: 0,
        };
        let running = self.live.counting(self.running.as_ref());
        self.live.with(&ends, Trip::OneWay, |stream| {
            warm_up(stream, flows)?;
            let limit = calibration::capacity(|| stream.ceiling(CALIBRATION))?;
            let mut seen = Best { trial: Tried(stream, TRIAL), forwarded: 0.0 };
            let rate = capacity(&mut seen, MOST * limit)?;
            let rate = settled(&mut Tried(stream, SETTLED), rate, MOST * limit)?;
            let per_second = (ABOVE * rate).min(MOST * limit);
            let pace = Pace::Open { per_second, gaps: Gaps::Even };
            let measured = measure(&running, (self.cores, Reading::Ticks), sheet, || {
                stream.run(pace, Until::Time(self.time))
            })?;
            let outcome = &measured.outcome;
            let (came, seconds) = (outcome.answered as f64, outcome.took.as_secs_f64().max(1e-9));
            sheet.value("ceiling", limit, Unit::PerSecond);
            sheet.value("capacity", rate, Unit::PerSecond);
            sheet.value("sent", outcome.sent as f64, Unit::Count);
            sheet.value("arrived", came, Unit::Count);
            sheet.value("lost", outcome.lost as f64, Unit::Count);
            sheet.value("offered", outcome.sent as f64 / seconds, Unit::PerSecond);
            sheet.value("forwarded", came / seconds, Unit::PerSecond);
            sheet.value("loss", outcome.loss(), Unit::Lost);
            sheet.value("cpu-per-packet", measured.nanoseconds_each(came), Unit::NanosecondsPerPacket);
            measured.note_per_cpu_second("packets-per-cpu-second", came, sheet);
            Ok(())
        })
    }
}

/// What remains of a capacity that was found in short trials.
fn settled<T: Trial>(trial: &mut T, rate: f64, most: f64) -> std::result::Result<f64, T::Error> {
    let seen = trial.run((ABOVE * rate).min(most))?;
    Ok(rate.min(seen.offered * (1.0 - seen.loss)).max(LEAST))
}

/// Frames at a rate for a time.
struct Tried<'a>(&'a Stream<'a>, Duration);

impl Trial for Tried<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let outcome = self.0.run(Pace::Open { per_second, gaps: Gaps::Even }, Until::Time(self.1))?;
        let offered = outcome.sent as f64 / outcome.took.as_secs_f64().max(1e-9);
        Ok(Seen { loss: outcome.loss(), offered, is_disturbed: false })
    }
}

/// Trials, and the most that a device has forwarded in one of them, whatever was lost there.
struct Best<T> {
    trial: T,
    forwarded: f64,
}

impl<T: Trial> Trial for Best<T> {
    type Error = T::Error;

    fn run(&mut self, per_second: f64) -> std::result::Result<Seen, T::Error> {
        let seen = self.trial.run(per_second)?;
        self.forwarded = self.forwarded.max(seen.offered * (1.0 - seen.loss));
        Ok(seen)
    }
}

/// What a device forwards, up to `most`: the highest rate at which no more than the given share is lost, or what it has forwarded at another one if that
/// is more. The latter is what remains where other programs of the machine let some be lost at any rate.
fn capacity<T: Trial>(trial: &mut Best<T>, most: f64) -> std::result::Result<f64, T::Error> {
    let rate = lossless(trial, most)?;
    Ok(rate.max(trial.forwarded))
}

/// The highest rate at which no more than the given share is lost, up to `most`.
fn lossless<T: Trial>(trial: &mut T, most: f64) -> std::result::Result<f64, T::Error> {
    let flood = trial.run(most)?;
    if flood.loss <= LOSS {
        return Ok(most);
    }
    // Under a flood a device may forward less than it could.
    let mut high = 2.0 * flood.offered * (1.0 - flood.loss);
    let mut passed = 0.0;
    loop {
        high = high.clamp(LEAST, most.max(LEAST));
        let search = Search { rates: (LEAST, high), passed, loss: LOSS, precision: PRECISION, repeats: 0 };
        let found = search.run(trial)?;
        if !found.is_at_ceiling || high >= most {
            return Ok(found.rate.max(LEAST));
        }
        (passed, high) = (found.rate, 2.0 * high);
    }
}

/// Each flow has its session, and enough packets for a fast path to take it.
fn warm_up(stream: &Stream<'_>, flows: u32) -> Result<()> {
    let few = Pace::Open { per_second: 2_000.0, gaps: Gaps::Even };
    let count = Until::Count(u64::from(flows) * 12);
    interrupt::wait_until(Duration::from_secs(10), "packets of every flow", || {
        Ok(stream.run(few, count)?.lost == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A device of a capacity, which forwards less under a flood of ten times as much.
    struct Model {
        capacity: f64,
        flooded: f64,
        trials: u32,
        /// What is lost by others, as a share.
        lost: f64,
    }

    impl Trial for Model {
        type Error = Infallible;

        fn run(&mut self, per_second: f64) -> std::result::Result<Seen, Infallible> {
            self.trials += 1;
            let forwards = if per_second > 10.0 * self.capacity { self.flooded } else { self.capacity };
            let loss = (1.0 - forwards / per_second).max(self.lost);
            Ok(Seen { loss, offered: per_second, is_disturbed: false })
        }
    }

    #[test]
    fn a_slow_device_is_offered_what_it_can_forward_and_not_what_the_tester_can_make() {
        for (capacity, flooded) in [(56_000.0, 56_000.0), (110_000.0, 4_000.0), (790_000.0, 600_000.0)] {
            let mut trials =
                Best { trial: Model { capacity, flooded, trials: 0, lost: 0.0 }, forwarded: 0.0 };
            let Ok(found) = super::capacity(&mut trials, 1_300_000.0);
            assert!((0.94..=1.011).contains(&(found / capacity)), "{found} of {capacity}");
            assert!(trials.trial.trials <= 12, "{} trials", trials.trial.trials);
        }
    }

    #[test]
    fn a_fast_device_is_offered_what_the_tester_can_make() {
        let model = Model { capacity: 9e6, flooded: 9e6, trials: 0, lost: 0.0 };
        let mut trials = Best { trial: model, forwarded: 0.0 };
        assert_eq!(super::capacity(&mut trials, 1_300_000.0), Ok(1_300_000.0));
        assert_eq!(trials.trial.trials, 1);
    }

    /// What a queue took in short trials does not pass for longer.
    #[test]
    fn a_queue_is_no_capacity() {
        let model = |capacity| Model { capacity, flooded: capacity, trials: 0, lost: 0.0 };
        let of = |capacity, found| {
            let Ok(rate) = settled(&mut model(capacity), found, 1_300_000.0);
            rate.round()
        };
        assert_eq!(of(170_000.0, 210_000.0), 170_000.0);
        assert_eq!(of(130_000.0, 128_000.0), 128_000.0, "no more than was found");
        assert_eq!(of(9e6, 1_300_000.0), 1_300_000.0);
    }

    #[test]
    fn a_machine_that_loses_some_at_any_rate_does_not_make_a_device_slow() {
        let model = Model { capacity: 9e6, flooded: 9e6, trials: 0, lost: 0.03 };
        let mut trials = Best { trial: model, forwarded: 0.0 };
        let Ok(found) = super::capacity(&mut trials, 1_300_000.0);
        assert!((found / 1_300_000.0 - 0.97).abs() < 1e-9, "{found}");
    }
}
