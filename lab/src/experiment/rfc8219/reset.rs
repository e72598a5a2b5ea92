//! Reset (RFC 8219 §7.7, RFC 2544 §26.6): how long nothing is forwarded when the device's process is stopped and started under load, by the times of the
//! frames before and after it; and, to see what else is lost, by the number of frames that are lost.

use super::search::Search;
use super::stage::{Frames, LEAST, at, given, precision, time, trials};
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::note_clock;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::measure::{Meter, Reading};
use crate::results::{Cell, Unit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long frames are sent before the reset, and after it.
const BEFORE: Duration = Duration::from_millis(300);
const AFTER: Duration = Duration::from_secs(1);

/// A device that is reset.
pub struct Reset {
    scene: Scene,
    time: Duration,
    precision: f64,
    given: f64,
}

impl Reset {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let reset = Self { scene: Scene::build(line)?, time: time(line.asked.scale), precision, given };
        reset.scene.ends.warm_up(128)?;
        Ok(reset)
    }

    /// Frames at a rate, and a reset among them; what they have seen, and how long the device took to stop and to start.
    fn under_load(&mut self, frame: usize, per_second: f64) -> Result<(Outcome, Duration)> {
        let Scene { running, ends } = &mut self.scene;
        let (stop, stream) = (AtomicBool::new(false), ends.stream(frame)?);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| stream.run_until(at(per_second), &stop));
            std::thread::sleep(BEFORE);
            let start = Instant::now();
            let restarted = running.restart();
            let took = start.elapsed();
            std::thread::sleep(AFTER);
            stop.store(true, Ordering::Relaxed);
            let panicked = |_| Err(Failure::Unexpected("a thread of a load panicked".to_owned()));
            let outcome = sending.join().unwrap_or_else(panicked)?;
            restarted.map(|()| (outcome, took))
        })
    }
}

/// Reset times: the longest time without a frame (RFC 2544 §26.6: from the last frame of the first stream to the first one of the new stream), and
/// the time in which as many frames are due as have not come back. `None` if nothing came back after the restart, which took this long, or at all.
fn reset_times(outcome: &Outcome, per_second: f64, restart: Duration) -> Option<[Duration; 2]> {
    let missing = (outcome.sent + outcome.refused).saturating_sub(outcome.answered);
    let by_loss = Duration::from_secs_f64(missing as f64 / per_second);
    let is_back = outcome.answered > 0 && outcome.silence < restart + AFTER;
    is_back.then_some([outcome.silence, by_loss])
}

impl Stage for Reset {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let (frame, time) = (cell.at("frame") as usize, self.time);
        let ends = &self.scene.ends;
        let (cores, ceiling) = (ends.cores, ends.ceiling(frame)?.max(LEAST));
        let search = Search {
            rates: (LEAST, ceiling),
            passed: 0.0,
            loss: self.given,
            precision: self.precision,
            repeats: 3,
        };
        let found = search.run(&mut Frames { tester: ends, frame, time })?;
        let per_second = found.rate.max(LEAST);
        let meter = Meter::begin(cores, Reading::Ticks)?;
        let (outcome, restart) = self.under_load(frame, per_second)?;
        // The process whose CPU time would be read has gone.
        sheet.tester(meter.end(&outcome, Duration::ZERO)?);
        let Some([by_time, by_loss]) = reset_times(&outcome, per_second, restart) else {
            return Err(Failure::Unexpected("no frame came back after the restart".to_owned()));
        };
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        sheet.value("rate", per_second, Unit::PerSecond);
        sheet.value("restart", milliseconds(restart), Unit::Milliseconds);
        sheet.value("reset", milliseconds(by_time), Unit::Milliseconds);
        sheet.value("reset-by-loss", milliseconds(by_loss), Unit::Milliseconds);
        note_clock(&*self.scene.running, sheet)?;
        self.scene.running.commands().into_iter().for_each(|line| sheet.command(line));
        sheet.keep("trials.txt", &trials("given loss", &found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_methods_agree_on_a_known_reset() {
        // 10,000 frames a second for 2 s, of which those of 400 ms are missing; 50 of them were refused by the sender's own kernel.
        let silence = Duration::from_millis(400);
        let outcome = Outcome { sent: 19_950, refused: 50, answered: 16_000, silence, ..Outcome::default() };
        let restart = Duration::from_millis(350);
        assert_eq!(reset_times(&outcome, 10_000.0, restart), Some([silence, silence]));
    }

    #[test]
    fn a_device_that_does_not_come_back_has_no_reset_time() {
        let silence = Duration::from_millis(1_400);
        let outcome = Outcome { sent: 20_000, answered: 6_000, silence, ..Outcome::default() };
        assert_eq!(reset_times(&outcome, 10_000.0, Duration::from_millis(350)), None);
        // Before the first frame has come there is no silence.
        let nothing = Outcome { sent: 20_000, ..Outcome::default() };
        assert_eq!(reset_times(&nothing, 10_000.0, Duration::from_millis(350)), None);
    }
}
