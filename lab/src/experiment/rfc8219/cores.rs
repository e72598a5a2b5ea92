//! Scaling by CPU cores (RFC 9693 §5.2): throughput and CPU time with a worker on each of a number of CPUs.

use super::frame_sizes::SMALLEST;
use super::frames::{frame_ends, live, throughput, warm_up};
use super::stage::{given, precision, time};
use super::topology::{POOL, Scene};
use crate::affinity::cpus;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::Live;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::Trip;
use crate::results::{Cell, Unit};
use std::time::Duration;

/// Enough for each worker to have about as many as the others.
const FLOWS: u32 = 1_024;
/// Numbers of workers, as far as there are CPUs.
pub const CORES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// The CPUs of this number of workers: those after the tester's, which is the first, and that one in addition if there are no others.
fn cores_of(workers: usize, cpus: usize) -> Vec<usize> {
    (1..=workers).map(|worker| worker % cpus.max(1)).collect()
}

/// A device with workers.
pub struct Workers {
    // Dropped first: a device's end needs its network.
    scene: Scene,
    live: Live,
    cores: Vec<usize>,
    time: Duration,
    precision: f64,
    given: f64,
}

impl Workers {
    /// Builds the network and starts the device with the cell's number of workers.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(cell: &Cell, line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let cores = cores_of(cell.at("workers") as usize, cpus());
        let scene =
            Scene::with_start(line, POOL, |place, task| line.device.start_workers(place, task, &cores))?;
        let live = live(&scene)?;
        live.spread(&cores)?;
        Ok(Self { scene, live, cores, time: time(line.asked.scale), precision, given })
    }
}

impl Stage for Workers {
    fn measure(&mut self, _cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let (scene, live, time, precision) =
            (&self.scene, &self.live, self.time, (self.precision, self.given));
        let ends = frame_ends(&scene.ends, live, SMALLEST, FLOWS);
        live.with(&ends, Trip::Round, |stream| {
            warm_up(stream, FLOWS)?;
            throughput((scene, live), (stream, time, precision), SMALLEST, sheet)
        })?;
        // Without a CPU of its own, the tester has all of them.
        let tester = self.scene.ends.cores.tester;
        let is_shared = tester.is_none_or(|tester| self.cores.contains(&tester));
        if is_shared {
            sheet.limited_by_tester("the device's workers and the tester shared a CPU".to_owned());
        }
        sheet.value("receiving-cpus", self.live.receiving_cpus()? as f64, Unit::Count);
        sheet.value("shared", f64::from(u8::from(is_shared)), Unit::Count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_testers_cpu_is_the_last_that_a_worker_gets() {
        assert_eq!(cores_of(1, 2), [1]);
        assert_eq!(cores_of(2, 2), [1, 0]);
        assert_eq!(cores_of(4, 8), [1, 2, 3, 4]);
        assert_eq!(cores_of(2, 1), [0, 0], "a single CPU is shared");
    }
}
