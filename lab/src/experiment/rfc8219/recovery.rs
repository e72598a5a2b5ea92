//! System recovery (RFC 8219 §7.6, RFC 2544 §26.5): how long frames are lost after an overload has ended.

use super::search::Search;
use super::stage::{Frames, LEAST, given, noted, precision, time, trials};
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{Gaps, Load as _, Pace, Until};
use crate::measure::Reading;
use crate::results::{Cell, Unit};
use std::time::Duration;

/// RFC 2544 §26.5: the overload is 110 % of the throughput.
const OVERLOAD: f64 = 1.1;

/// A device that is overloaded.
pub struct Recovery {
    scene: Scene,
    time: Duration,
    precision: f64,
    given: f64,
}

impl Recovery {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let recovery = Self { scene: Scene::build(line)?, time: time(line.asked.scale), precision, given };
        recovery.scene.ends.warm_up(128)?;
        Ok(recovery)
    }
}

/// The rate of the overload for a throughput, if the tester can send it.
fn overload(throughput: f64, ceiling: f64) -> f64 {
    (OVERLOAD * throughput).clamp(LEAST, ceiling)
}

/// How long after the end of an overload the last lost frame was due, if the rate was halved then; 0 if it was due before.
fn recovery(last_lost: u32, per_second: f64, overload: Duration) -> Duration {
    let beyond = f64::from(last_lost) / per_second - overload.as_secs_f64();
    Duration::from_secs_f64(2.0 * beyond.max(0.0))
}

impl Stage for Recovery {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let Scene { running, ends } = &self.scene;
        let (frame, time) = (cell.at("frame") as usize, self.time);
        let ceiling = ends.ceiling(frame)?.max(LEAST);
        let search = Search {
            rates: (LEAST, ceiling),
            passed: 0.0,
            loss: self.given,
            precision: self.precision,
            repeats: 3,
        };
        let found = search.run(&mut Frames { tester: ends, frame, time })?;
        let per_second = overload(found.rate, ceiling);
        let pace = Pace::Open { per_second, gaps: Gaps::Halved(time) };
        let measured = measure(running.as_ref(), (ends.cores, Reading::Ticks), sheet, || {
            ends.stream(frame)?.run(pace, Until::Time(2 * time))
        })?;
        noted(&measured, 2 * time, sheet);
        sheet.value("throughput-given", found.rate, Unit::PerSecond);
        sheet.value("overload", per_second, Unit::PerSecond);
        sheet.value("at-ceiling", f64::from(u8::from(found.is_at_ceiling)), Unit::Count);
        // What was not overloaded has nothing to recover from.
        if let Some(last) = measured.outcome.last_lost {
            let took = recovery(last, per_second, time);
            sheet.value("recovery", took.as_secs_f64() * 1e3, Unit::Milliseconds);
        }
        sheet.keep("trials.txt", &trials("given loss", &found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overload_is_a_tenth_more_than_the_throughput_or_the_testers_limit() {
        assert!((overload(10_000.0, 50_000.0) - 11_000.0).abs() < 1e-6);
        assert_eq!(overload(10_000.0, 10_500.0), 10_500.0);
        assert_eq!(overload(0.0, 10_500.0), LEAST);
    }

    /// A device that loses every third frame until a known time after the overload, which is 200 ms long.
    #[test]
    fn a_known_recovery_is_found() {
        let (per_second, overload) = (10_000.0, Duration::from_millis(200));
        for known in [0.0, 0.01, 0.15] {
            let (mut due, mut last) = (0.0, 0);
            for number in 0..3_000 {
                if number % 3 == 0 && due < overload.as_secs_f64() + known {
                    last = number;
                }
                due += if due < overload.as_secs_f64() { 1.0 } else { 2.0 } / per_second;
            }
            let found = recovery(last, per_second, overload).as_secs_f64();
            assert!((found - known).abs() <= 7.0 / per_second, "{known}: {found}");
        }
        assert_eq!(recovery(5, per_second, overload), Duration::ZERO, "it was lost before");
    }
}
