//! Back-to-back frames (RFC 8219 §7.5, RFC 2544 §26.4): the longest burst without gaps of which no frame is lost. Frames go one way, and the kernel
//! makes them, for sockets send no faster than most devices forward.

use super::frames::{Rate, frame_ends, live, warm_up};
use super::longest::longest;
use super::stage::{STEAL, precision, time};
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::{Live, Stream};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{Load as _, Outcome, Pace, Trip, Until};
use crate::measure::{Cores, Reading, core_time};
use crate::results::{Cell, Unit};
use std::fmt::Write as _;
use std::time::Duration;

/// Flows of a burst.
const FLOWS: u32 = 16;
/// The shortest burst.
const FEWEST: u32 = 16;
/// RFC 2544 §26.4: a trial takes two seconds at least, so that this is the longest burst at the tester's rate.
const LONGEST: Duration = Duration::from_secs(2);
/// How often a burst that lost frames while the hypervisor took time is sent again.
const AGAIN: u32 = 3;

/// A device that bursts are sent to.
pub struct Bursts {
    // Dropped first: a device's end needs its network.
    scene: Scene,
    live: Live,
    longest: Duration,
    precision: f64,
}

impl Bursts {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let scene = Scene::build(line)?;
        let live = live(&scene)?;
        Ok(Self { scene, live, longest: time(line.asked.scale).min(LONGEST), precision })
    }
}

/// A burst of this many frames.
fn burst(stream: &Stream<'_>, frames: u32) -> Result<Outcome> {
    stream.run(Pace::AsFastAsPossible, Until::Count(frames.into()))
}

/// The same; it is sent again if it has lost frames while the hypervisor took the device's core.
fn undisturbed(stream: &Stream<'_>, cores: Cores, frames: u32) -> Result<Outcome> {
    let mut times = 0;
    loop {
        let before = core_time(cores.device)?;
        let outcome = burst(stream, frames)?;
        let stolen = core_time(cores.device)?.stolen_since(&before);
        if outcome.lost == 0 || stolen <= STEAL || times >= AGAIN {
            return Ok(outcome);
        }
        times += 1;
    }
}

/// Frames of a burst in a second.
fn rate(outcome: &Outcome) -> f64 {
    outcome.sent as f64 / outcome.took.as_secs_f64().max(1e-9)
}

impl Stage for Bursts {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let (scene, live, precision, time) = (&self.scene, &self.live, self.precision, self.longest);
        let cores = scene.ends.cores;
        let frame = cell.at("frame") as usize;
        let ends = frame_ends(&scene.ends, live, frame, FLOWS);
        live.with(&ends, Trip::OneWay, |stream| {
            warm_up(stream, FLOWS)?;
            let ceiling = Rate { stream, cores, time }.ceiling()?;
            let most = (ceiling * time.as_secs_f64()).clamp(FEWEST.into(), 1e9) as u32;
            let (mut text, mut tries) = (String::new(), 0);
            let (frames, too_long) = longest((FEWEST, most), precision, |frames| {
                let outcome = undisturbed(stream, cores, frames)?;
                writeln!(text, "{frames} frames at {:.0} a second: {} lost", rate(&outcome), outcome.lost)
                    .ok();
                tries += 1;
                Ok::<_, Failure>(outcome.lost == 0)
            })?;
            let running = live.counting(scene.running.as_ref());
            let near = scene.ends.network.host("near")?;
            let before = near.received_packets("up0")?;
            let measured =
                measure(&running, (cores, Reading::Ticks), sheet, || burst(stream, frames.max(FEWEST)))?;
            sheet.value("came-back", (near.received_packets("up0")? - before) as f64, Unit::Count);
            sheet.value("burst", f64::from(frames), Unit::Count);
            sheet.value("burst-rate", rate(&measured.outcome), Unit::PerSecond);
            sheet.value("ceiling", ceiling, Unit::PerSecond);
            sheet.value("at-ceiling", f64::from(u8::from(too_long.is_none())), Unit::Count);
            sheet.value("trials", f64::from(tries), Unit::Count);
            sheet.keep("trials.txt", &text)
        })
    }
}
