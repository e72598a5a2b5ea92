//! Throughput under frames that the kernel makes: more than sockets can send, so that the limit is the device's.

use super::search::{Found, Search, Seen, Trial};
use super::stage::{LEAST, at, given, noted, precision, seen, time};
use super::topology::{Scene, Tester};
use crate::experiment::calibration::capacity;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::{Live, Stream};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{FrameEnds, Load as _, Pace, Trip, Until};
use crate::measure::{Cores, Reading, core_time};
use crate::results::{Cell, Unit};
use std::time::Duration;

/// Flows of a stream.
const FLOWS: u32 = 16;
/// Their port at the far end.
pub const TARGET: u16 = 7_000;
/// Octets of a frame's check sequence, which is not made.
const CHECK: usize = 4;
/// How long the tester's own limit is measured, twice at least.
const CALIBRATION: Duration = Duration::from_millis(150);

/// A device between ends that make frames.
pub struct FrameBench {
    // Dropped first: a device's end needs its network.
    scene: Scene,
    live: Live,
    time: Duration,
    precision: f64,
    given: f64,
}

/// The way for frames through the scene's device.
pub fn live(scene: &Scene) -> Result<Live> {
    let is_process = scene.running.cpu()?.is_process();
    let ends = (("near", "up0"), ("far", "up0"));
    Live::new(&scene.ends.network, scene.ends.cores, ends, ("device", ["in0", "out0"]), is_process)
}

/// Frames of this size with IPv6 on Ethernet, on a number of flows.
pub fn frame_ends(tester: &Tester, live: &Live, frame: usize, flows: u32) -> FrameEnds {
    // An IPv4 header has 20 octets less.
    let less = if tester.target.is_ipv6() { CHECK } else { CHECK + 20 };
    FrameEnds {
        to: live.door(),
        source: tester.sources(),
        destination: tester.target,
        port: TARGET,
        flows,
        octets: frame.saturating_sub(less),
    }
}

/// Waits until a frame of each flow has come back: neighbours are found, and sessions there.
///
/// # Errors
/// Something does not come back within ten seconds.
pub fn warm_up(stream: &Stream<'_>, flows: u32) -> Result<()> {
    let few = Pace::Open { per_second: 2_000.0, gaps: crate::load::Gaps::Even };
    interrupt::wait_until(Duration::from_secs(10), "a frame back on every flow", || {
        Ok(stream.run(few, Until::Count(u64::from(flows.max(8))))?.lost == 0)
    })
}

/// Frames at a rate for a time.
pub struct Rate<'a> {
    /// The stream.
    pub stream: &'a Stream<'a>,
    /// The CPUs.
    pub cores: Cores,
    /// How long a trial takes.
    pub time: Duration,
}

impl Trial for Rate<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let before = core_time(self.cores.device)?;
        let outcome = self.stream.run(at(per_second), Until::Time(self.time))?;
        let stolen = core_time(self.cores.device)?.stolen_since(&before);
        Ok(seen(&outcome, stolen))
    }
}

impl Rate<'_> {
    /// The highest rate at which frames are made while all else works.
    ///
    /// # Errors
    /// A frame cannot be sent.
    pub fn ceiling(&self) -> Result<f64> {
        Ok(capacity(|| self.stream.ceiling(CALIBRATION))?.max(LEAST))
    }
}

/// Both searches, and a row at what they found.
///
/// # Errors
/// A frame cannot be sent.
pub fn throughput(
    (scene, live): (&Scene, &Live),
    (stream, time, (precision, given)): (&Stream<'_>, Duration, (f64, f64)),
    frame: usize,
    sheet: &mut Sheet,
) -> Result<()> {
    let cores = scene.ends.cores;
    let mut rate = Rate { stream, cores, time };
    let ceiling = rate.ceiling()?;
    let search = |passed, loss| Search { rates: (LEAST, ceiling), passed, loss, precision, repeats: 3 };
    let none = search(0.0, 0.0).run(&mut rate)?;
    let found = search(none.rate, given).run(&mut rate)?;
    let running = live.counting(scene.running.as_ref());
    let measured = measure(&running, (cores, Reading::Ticks), sheet, || {
        stream.run(at(found.rate.max(LEAST)), Until::Time(time))
    })?;
    noted(&measured, time, sheet);
    sheet.value("throughput", none.rate, Unit::PerSecond);
    sheet.value("throughput-given", found.rate, Unit::PerSecond);
    sheet.value("bits", found.rate * (frame * 8) as f64, Unit::BitsPerSecond);
    sheet.value("ceiling", ceiling, Unit::PerSecond);
    sheet.value("at-ceiling", f64::from(u8::from(found.is_at_ceiling)), Unit::Count);
    sheet.value("trials", (none.trials.len() + found.trials.len()) as f64, Unit::Count);
    sheet.times("latency", &measured.outcome.latency)?;
    keep(sheet, &none, &found)
}

fn keep(sheet: &mut Sheet, none: &Found, given: &Found) -> Result<()> {
    let text = super::stage::trials("no loss", none) + &super::stage::trials("given loss", given);
    sheet.keep("trials.txt", &text)
}

impl FrameBench {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let scene = Scene::build(line)?;
        let live = live(&scene)?;
        Ok(Self { scene, live, time: time(line.asked.scale), precision, given })
    }
}

impl Stage for FrameBench {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let frame = cell.at("frame") as usize;
        let ends = frame_ends(&self.scene.ends, &self.live, frame, FLOWS);
        let (time, precision) = (self.time, (self.precision, self.given));
        let Self { scene, live, .. } = self;
        live.with(&ends, Trip::Round, |stream| {
            warm_up(stream, FLOWS)?;
            throughput((scene, live), (stream, time, precision), frame, sheet)
        })
    }
}
