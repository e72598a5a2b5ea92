//! One measurement by each of the benchmarks.

use super::delay::delay;
use super::double;
use super::dual;
use super::frame_sizes::{SMALLEST, payload};
use super::rules;
use super::search::{Found, Search, Seen, Trial};
use super::topology::{Scene, Tester};
use crate::experiment::calibration::capacity;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::{Measured, measure};
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Ends, Gaps, Load as _, Outcome, Pace, Trip, UdpStream, Until};
use crate::measure::{Reading, core_time};
use crate::results::{Cell, Unit};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

/// Flows of a stream, each with a port of its own.
const FLOWS: u16 = 16;
/// Their ports at the near end, the same in each trial: sessions exist before.
const SOURCE: u16 = 20_000;
/// The far end's port.
pub const TARGET: u16 = 7_000;
/// How long the tester's own limit is measured, twice at least.
const CALIBRATION: Duration = Duration::from_millis(150);
/// The lowest rate of a search.
pub const LEAST: f64 = 100.0;
/// A trial during which the hypervisor took more than this share of the device's core is repeated.
pub const STEAL: f64 = 0.01;
/// The loss that is admitted, apart from none, if no other one is given.
const GIVEN: f64 = 0.000_1;
/// Connections that are established in one trial.
const CONNECTIONS: u16 = 2_000;

/// How long a trial takes: a minute at scale 1, as RFC 2544 §24 asks.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((60.0 * scale).clamp(0.3, 60.0))
}

/// How long the stream of a latency is: two minutes at scale 1 (RFC 8219 §7.2).
pub fn stream(scale: f64) -> Duration {
    Duration::from_secs_f64((120.0 * scale).clamp(0.3, 120.0))
}

/// The precision of searches. With 1, a search ends with its first trial that fails.
pub fn precision(asked: &crate::results::Asked) -> std::result::Result<f64, String> {
    let usual = if asked.quick { 0.1 } else { 0.02 };
    let set = asked.numbers("precision", &[usual])?;
    match set.first().copied().unwrap_or(usual) {
        precision if (0.001..=1.0).contains(&precision) => Ok(precision),
        other => Err(format!("--set precision: {other} is not from 0.001 to 1")),
    }
}

/// The loss that is admitted, apart from none, as a share.
pub fn given(asked: &crate::results::Asked) -> std::result::Result<f64, String> {
    let set = asked.numbers("given", &[GIVEN])?;
    match set.first().copied().unwrap_or(GIVEN) {
        given if (0.000_001..=0.5).contains(&given) => Ok(given),
        other => Err(format!("--set given: {other} is not a share from 0.000001 to 0.5")),
    }
}

impl Tester {
    /// Frames of this size there and back.
    pub fn stream(&self, frame: usize) -> Result<UdpStream<'_>> {
        let (client, server) = (self.network.host("near")?, self.network.host("far")?);
        let [listens, any] = self.any;
        Ok(UdpStream {
            ends: Ends { client, server, core: self.cores.tester },
            source: SocketAddr::new(any, SOURCE),
            target: SocketAddr::new(self.target, TARGET),
            listens: SocketAddr::new(listens, TARGET),
            flows: FLOWS,
            payload: payload(frame),
            trip: Trip::Round,
        })
    }

    /// Frames of this size there and back, so that both directions are loaded.
    fn offer(&self, frame: usize, pace: Pace, until: Until) -> Result<Outcome> {
        self.stream(frame)?.run(pace, until)
    }

    /// Neighbours are found, and each flow has its session.
    pub fn warm_up(&self, frame: usize) -> Result<()> {
        let few = Pace::Open { per_second: 1_000.0, gaps: Gaps::Even };
        interrupt::wait_until(Duration::from_secs(10), "an answer on every flow", || {
            Ok(self.offer(frame, few, Until::Count(u64::from(2 * FLOWS)))?.lost == 0)
        })
    }

    /// The highest rate at which this tester sends through the device: none is offered above it.
    pub fn ceiling(&self, frame: usize) -> Result<f64> {
        capacity(|| {
            let outcome = self.offer(frame, Pace::AsFastAsPossible, Until::Time(CALIBRATION))?;
            Ok(outcome.sent as f64 / outcome.took.as_secs_f64().max(1e-9))
        })
    }
}

/// An open loop with even gaps.
pub const fn at(per_second: f64) -> Pace {
    Pace::Open { per_second, gaps: Gaps::Even }
}

/// Frames of a size at a rate for a time.
pub struct Frames<'a> {
    /// The ends.
    pub tester: &'a Tester,
    /// Octets of a frame with IPv6.
    pub frame: usize,
    /// How long a trial takes.
    pub time: Duration,
}

impl Trial for Frames<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let before = core_time(self.tester.cores.device)?;
        let outcome = self.tester.offer(self.frame, at(per_second), Until::Time(self.time))?;
        let stolen = core_time(self.tester.cores.device)?.stolen_since(&before);
        Ok(seen(&outcome, stolen))
    }
}

/// What a trial has seen, if the hypervisor took this share of its time.
pub fn seen(outcome: &Outcome, stolen: f64) -> Seen {
    let offered = outcome.sent as f64 / outcome.took.as_secs_f64().max(1e-9);
    Seen { loss: outcome.loss(), offered, is_disturbed: stolen > STEAL }
}

/// One frame on each of many new flows at a rate: each answer shows that its connection was established.
struct NewFlows<'a> {
    tester: &'a Tester,
}

impl NewFlows<'_> {
    fn establish(&self, per_second: f64) -> Result<Outcome> {
        let stream = self.tester.stream(84)?;
        // The kernel chooses ports, which are others each time.
        let source = SocketAddr::new(stream.source.ip(), 0);
        let stream = UdpStream { source, flows: CONNECTIONS, ..stream };
        stream.run(at(per_second), Until::Count(CONNECTIONS.into()))
    }
}

impl Trial for NewFlows<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let before = core_time(self.tester.cores.device)?;
        let outcome = self.establish(per_second)?;
        let stolen = core_time(self.tester.cores.device)?.stolen_since(&before);
        Ok(seen(&outcome, stolen))
    }
}

/// What every row of frames there and back has.
pub fn noted(measured: &Measured, time: Duration, sheet: &mut Sheet) {
    let frames = 2.0 * measured.outcome.answered as f64;
    sheet.value("cpu-per-packet", measured.nanoseconds_each(frames), Unit::NanosecondsPerPacket);
    measured.note_per_cpu_second("frames-per-cpu-second", frames, sheet);
    sheet.value("offered", measured.outcome.sent as f64 / time.as_secs_f64(), Unit::PerSecond);
    sheet.value("loss", measured.outcome.loss(), Unit::Lost);
    sheet.value("duration", time.as_secs_f64() * 1e3, Unit::Milliseconds);
}

/// A device between the tester's ends.
pub struct Bench {
    scene: Scene,
    time: Duration,
    stream: Duration,
    precision: f64,
    given: f64,
}

impl Bench {
    /// Builds the network of the cell's series and starts the device.
    pub fn build(cell: &Cell, line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let scene = match cell.series.as_str() {
            "rules" => rules::scene(line, cell.at("rules") as u32)?,
            "dual" => dual::scene(line)?,
            "double" => double::scene(line)?,
            _ => Scene::build(line)?,
        };
        let scale = line.asked.scale;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let bench = Self { scene, time: time(scale), stream: stream(scale), precision, given };
        bench.scene.ends.warm_up(128)?;
        Ok(bench)
    }

    fn search(&self, frame: usize, ceiling: f64, (passed, loss): (f64, f64)) -> Result<Found> {
        let rates = (LEAST, ceiling.max(LEAST));
        let search = Search { rates, passed, loss, precision: self.precision, repeats: 3 };
        search.run(&mut Frames { tester: &self.scene.ends, frame, time: self.time })
    }

    /// The load at a rate for a time, with all that is noted for each row.
    fn row(&self, frame: usize, (per_second, time): (f64, Duration), sheet: &mut Sheet) -> Result<Outcome> {
        let Scene { running, ends } = &self.scene;
        let measured = measure(running.as_ref(), (ends.cores, Reading::Ticks), sheet, || {
            ends.offer(frame, at(per_second.max(LEAST)), Until::Time(time))
        })?;
        noted(&measured, time, sheet);
        Ok(measured.outcome)
    }

    fn throughput(&self, frame: usize, sheet: &mut Sheet) -> Result<()> {
        let ceiling = self.scene.ends.ceiling(frame)?;
        let none = self.search(frame, ceiling, (0.0, 0.0))?;
        let given = self.search(frame, ceiling, (none.rate, self.given))?;
        let outcome = self.row(frame, (given.rate, self.time), sheet)?;
        sheet.value("throughput", none.rate, Unit::PerSecond);
        sheet.value("throughput-given", given.rate, Unit::PerSecond);
        let bits = given.rate * (frame * 8) as f64;
        sheet.value("bits", bits, Unit::BitsPerSecond);
        sheet.value("ceiling", ceiling, Unit::PerSecond);
        sheet.value("at-ceiling", f64::from(u8::from(given.is_at_ceiling)), Unit::Count);
        sheet.value("trials", (none.trials.len() + given.trials.len()) as f64, Unit::Count);
        sheet.times("latency", &outcome.latency)?;
        sheet.keep("trials.txt", &(trials("no loss", &none) + &trials("given loss", &given)))
    }

    fn frame_loss(&self, (frame, percent): (usize, f64), sheet: &mut Sheet) -> Result<()> {
        let ceiling = self.scene.ends.ceiling(frame)?;
        let outcome = self.row(frame, (ceiling * percent / 100.0, self.time), sheet)?;
        sheet.value("forwarded", outcome.per_second(), Unit::PerSecond);
        Ok(())
    }

    fn latency(&self, frame: usize, sheet: &mut Sheet) -> Result<()> {
        let ceiling = self.scene.ends.ceiling(frame)?;
        let found = self.search(frame, ceiling, (0.0, self.given))?;
        let outcome = self.row(frame, (found.rate, self.stream), sheet)?;
        let delay = delay(&outcome.service);
        sheet.value("rate", found.rate, Unit::PerSecond);
        sheet.times("latency", &outcome.service)?;
        sheet.value("typical", delay.typical, Unit::Milliseconds);
        sheet.value("worst", delay.worst, Unit::Milliseconds);
        sheet.value("pdv", delay.variation, Unit::Milliseconds);
        if let Some(variation) = outcome.variation {
            let of = [variation.least, variation.median, variation.greatest];
            for (name, value) in ["ipdv-min", "ipdv-median", "ipdv-max"].into_iter().zip(of) {
                sheet.value(name, value / 1e6, Unit::Milliseconds);
            }
        }
        sheet.value("jitter", outcome.jitter.unwrap_or(0.0) / 1e6, Unit::Milliseconds);
        Ok(())
    }

    /// The device begins without sessions: what all trials together establish has room in one address's ports.
    fn connections(&mut self, sheet: &mut Sheet) -> Result<()> {
        self.scene.running.restart()?;
        self.scene.ends.warm_up(128)?;
        let Scene { running, ends } = &self.scene;
        let mut trial = NewFlows { tester: ends };
        let ceiling = trial.run(1e9)?.offered;
        let search =
            Search { rates: (LEAST, ceiling), passed: 0.0, loss: 0.0, precision: self.precision, repeats: 3 };
        let found = search.run(&mut trial)?;
        let measured = measure(running.as_ref(), (ends.cores, Reading::Ticks), sheet, || {
            trial.establish(found.rate.max(LEAST))
        })?;
        let each = measured.nanoseconds_each(f64::from(CONNECTIONS));
        sheet.value("connections-rate", found.rate, Unit::PerSecond);
        sheet.value("ceiling", ceiling, Unit::PerSecond);
        sheet.value("loss", measured.outcome.loss(), Unit::Lost);
        sheet.value("cpu-per-connection", each / 1e6, Unit::CpuMilliseconds);
        sheet.value("trials", found.trials.len() as f64, Unit::Count);
        sheet.keep("trials.txt", &trials("no loss", &found))
    }
}

impl Stage for Bench {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let frame = cell.at("frame") as usize;
        match cell.series.as_str() {
            "throughput" | "dual" | "double" => self.throughput(frame, sheet),
            "rules" => self.throughput(SMALLEST, sheet),
            "frame-loss" => self.frame_loss((frame, cell.at("percent")), sheet),
            "latency" => self.latency(frame, sheet),
            _ => self.connections(sheet),
        }
    }
}

/// All trials of a search, in lines.
pub fn trials(name: &str, found: &Found) -> String {
    let mut text = format!("{name}: {:.0} a second\n", found.rate);
    for (rate, loss, is_disturbed) in &found.trials {
        let disturbed = if *is_disturbed { " disturbed" } else { "" };
        writeln!(text, "  {rate:.0} {loss:.6}{disturbed}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_at_scale_1_has_the_lengths_of_the_clauses() {
        assert_eq!((time(1.0), stream(1.0)), (Duration::from_secs(60), Duration::from_secs(120)));
        assert_eq!((time(0.1), stream(0.1)), (Duration::from_secs(6), Duration::from_secs(12)));
        assert_eq!((time(0.001), stream(0.001)), (Duration::from_millis(300), Duration::from_millis(300)));
    }

    #[test]
    fn a_given_loss_is_a_share() {
        use crate::results::Asked;
        let asked =
            |text: &str| Asked { set: [("given".to_owned(), text.to_owned())].into(), ..Asked::default() };
        assert_eq!(given(&Asked::default()), Ok(GIVEN));
        for right in ["0.000001", "0.001", "0.5"] {
            assert_eq!(given(&asked(right)).ok(), right.parse().ok());
        }
        for wrong in ["0", "0.0000009", "0.51", "x"] {
            assert!(given(&asked(wrong)).is_err(), "{wrong}");
        }
    }
}
