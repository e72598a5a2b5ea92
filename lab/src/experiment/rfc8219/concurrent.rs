//! Concurrent TCP connection capacity (RFC 8219 §8.1, RFC 3511 §5.2): the most connections that are open at the same time. They are opened at a rate; when
//! all are open, data has to be answered over each of them. The device begins each trial without connections.

use super::frames::{frame_ends, live};
use super::longest::longest;
use super::stage::precision;
use super::stateful::{OCTETS, pool_for, ports_of};
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::Live;
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{Connected, compile_connections};
use crate::measure::Reading;
use crate::results::{Asked, Cell, Machine, Unit};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The most connections that are tried, if no other number is requested.
pub const MOST: f64 = 65_536.0;
/// RFC 3511's connection attempt rate: at or below the rate at which a device accepts connections.
const ATTEMPTS: f64 = 10_000.0;
/// The fewest connections of a search.
const FEWEST: u32 = 1_024;
/// From this share of a pool's ports on it is the pool that is full: ports are assigned in blocks.
const NEARLY: f64 = 0.95;

/// Connections that are attempted in a second (`--set attempts`).
///
/// # Errors
/// The request is invalid, with the reason.
pub fn attempts(asked: &Asked) -> std::result::Result<f64, String> {
    match asked.numbers("attempts", &[ATTEMPTS])?.first().copied().unwrap_or(ATTEMPTS) {
        rate if (100.0..=1_000_000.0).contains(&rate) => Ok(rate),
        other => Err(format!("--set attempts: {other} is not from 100 to 1000000")),
    }
}

/// What the tester bounds a search by.
#[derive(Clone, Debug, PartialEq)]
struct Bounds {
    /// The most connections that are tried, and why not more.
    most: u32,
    why: String,
    /// Ports of the pool that the lab gives to the device, if it uses one.
    ports: Option<u32>,
}

impl Bounds {
    /// Of a number that is requested, on a machine.
    fn new(asked: u32, ports: Option<u32>, here: &Machine) -> Self {
        let room = u32::try_from((here.memory_mb << 20) / OCTETS).unwrap_or(u32::MAX);
        let why = match room < asked {
            true => format!("the machine's memory, {} MiB, has no room for more", here.memory_mb),
            false => "more were not tried (--set tcp-capacity)".to_owned(),
        };
        Self { most: asked.min(room), why, ports }
    }

    /// Why the tester was the limit of what a search found, if it was not the device.
    /// `unfinished` is the number of a trial whose failure was not final; `passes_again`: all were open when the least number that had failed was
    /// tried once more.
    fn testers(
        &self,
        (open, failed): (u32, Option<u32>),
        unfinished: Option<u32>,
        passes_again: bool,
    ) -> Option<String> {
        match (failed, self.ports) {
            (Some(failed), _) if passes_again => Some(format!(
                "{failed} connections were open when they were tried once more: something else had disturbed the search"
            )),
            (Some(failed), _) if unfinished == Some(failed) => Some(format!(
                "of {failed} connections more were opened in each turn: they were attempted too fast (--set attempts)"
            )),
            (None, _) => Some(format!("all {open} connections were open, and {}", self.why)),
            (Some(failed), Some(ports)) if f64::from(failed) >= NEARLY * f64::from(ports) => Some(format!(
                "{failed} connections were too many for the {ports} ports of the pool that the device was given"
            )),
            (Some(_), _) => None,
        }
    }
}

/// A device between the tester's ends.
pub struct Concurrent {
    // Dropped first: a device's end needs its network.
    scene: Scene,
    live: Live,
    object: PathBuf,
    bounds: Bounds,
    precision: f64,
    attempts: f64,
}

impl Concurrent {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(cell: &Cell, line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let attempts = attempts(line.asked).map_err(Failure::Unexpected)?;
        let most = cell.at("connections");
        let pool = pool_for(most);
        let scene = Scene::with_pool(line, pool)?;
        let (live, object) = (live(&scene)?, compile_connections(scene.ends.network.folder())?);
        let ports = line.device.has_pool().then(|| ports_of(pool));
        let bounds = Bounds::new(most as u32, ports, &Machine::here());
        let concurrent = Self { scene, live, object, bounds, precision, attempts };
        // Neighbours are found.
        let ends = frame_ends(&concurrent.scene.ends, &concurrent.live, 0, 8);
        concurrent.live.connections(&concurrent.object, &ends)?.run(attempts)?;
        Ok(concurrent)
    }

    /// This many connections, in an empty table, and the sheet with what they cost.
    fn trial(&mut self, flows: u32, sheet: &Sheet) -> Result<(Connected, Sheet)> {
        self.scene.running.forget()?;
        let ends = frame_ends(&self.scene.ends, &self.live, 0, flows);
        let mut frames = self.live.connections(&self.object, &ends)?;
        let running = self.live.counting(self.scene.running.as_ref());
        let (mut sheet, mut seen) = (sheet.clone(), None);
        let measured = measure(&running, (self.scene.ends.cores, Reading::Ticks), &mut sheet, || {
            let connected = frames.run(self.attempts)?;
            Ok(seen.insert(connected).outcome.clone())
        })?;
        let connected = seen.ok_or_else(|| Failure::Unexpected("a trial has no result".to_owned()))?;
        let each = measured.nanoseconds_each(connected.outcome.answered as f64);
        sheet.value("cpu-per-connection", each / 1e6, Unit::CpuMilliseconds);
        sheet.value("opening", connected.opening.as_secs_f64() * 1e3, Unit::Milliseconds);
        sheet.times("setup", &connected.outcome.setup)?;
        sheet.times("answer", &connected.outcome.latency)?;
        Ok((connected, sheet))
    }
}

/// A line on a trial.
fn told(flows: u32, seen: &Connected) -> String {
    let Connected { outcome, open, syns, resets, from_elsewhere, is_final, .. } = seen;
    format!(
        "{flows} connections: {open} open, {} answered; {syns} SYNs, {resets} resets, {from_elsewhere} from elsewhere{}\n",
        outcome.answered,
        if outcome.lost > 0 && !is_final { ", unfinished" } else { "" }
    )
}

impl Stage for Concurrent {
    /// The row is that of the last trial without a failure (RFC 3511 §5.2.4).
    fn measure(&mut self, _cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let (mut text, mut last, mut unfinished, empty) = (String::new(), None, None, sheet.clone());
        let found = longest((FEWEST, self.bounds.most), self.precision, |flows| {
            let (seen, own) = self.trial(flows, &empty)?;
            write!(text, "{}", told(flows, &seen)).ok();
            let passes = seen.outcome.lost == 0;
            if !passes && !seen.is_final {
                unfinished = Some(flows);
            }
            if passes || last.is_none() {
                last = Some(own);
            }
            Ok::<_, Failure>(passes)
        })?;
        let (open, failed) = found;
        // What was disturbed by something else does not fail again.
        let passes_again = match failed {
            Some(failed) => {
                let (seen, _) = self.trial(failed, &empty)?;
                write!(text, "once more: {}", told(failed, &seen)).ok();
                seen.outcome.lost == 0
            }
            None => false,
        };
        *sheet = last.unwrap_or(empty);
        sheet.value("capacity", f64::from(open), Unit::Count);
        if let Some(failed) = failed {
            sheet.value("failed", f64::from(failed), Unit::Count);
        }
        sheet.value("at-ceiling", f64::from(u8::from(failed.is_none())), Unit::Count);
        match self.bounds.testers(found, unfinished, passes_again) {
            Some(why) => sheet.limited_by_tester(why),
            None => sheet.limited_by_device(),
        }
        sheet.keep("trials.txt", &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// The search against a device of a known capacity.
    fn of_device(capacity: u32, bounds: &Bounds) -> (u32, Option<u32>) {
        let passes = |flows| Ok::<_, Infallible>(flows <= capacity);
        longest((FEWEST, bounds.most), 0.02, passes).unwrap()
    }

    fn machine(memory_mb: u64) -> Machine {
        Machine { memory_mb, ..Machine::default() }
    }

    #[test]
    fn a_capacity_below_all_bounds_of_the_tester_is_the_devices() {
        let bounds = Bounds::new(100_000, Some(2_064_384), &machine(4_000));
        for capacity in [1, 900, 1_024, 30_000, 65_535, 98_000] {
            let (open, failed) = of_device(capacity, &bounds);
            assert!(open <= capacity && failed.is_some_and(|failed| failed > capacity), "{open} {failed:?}");
            assert!(f64::from(capacity - open) <= 0.021 * f64::from(capacity) + 1.0, "{capacity}: {open}");
            assert_eq!(bounds.testers((open, failed), None, false), None, "{capacity}");
        }
    }

    #[test]
    fn a_capacity_that_the_tester_bounds_has_the_reason() {
        let bounds = Bounds::new(65_536, None, &machine(4_000));
        let why = bounds.testers(of_device(u32::MAX, &bounds), None, false).unwrap();
        assert_eq!(why, "all 65536 connections were open, and more were not tried (--set tcp-capacity)");
        // 64 MiB have room for 131,072.
        let bounds = Bounds::new(1_000_000, None, &machine(64));
        assert_eq!(bounds.most, 131_072);
        let why = bounds.testers(of_device(u32::MAX, &bounds), None, false).unwrap();
        assert_eq!(
            why,
            "all 131072 connections were open, and the machine's memory, 64 MiB, has no room for more"
        );
    }

    #[test]
    fn a_pool_that_is_full_is_not_the_devices_table() {
        let bounds = Bounds::new(200_000, Some(64_512), &machine(4_000));
        let found = of_device(63_000, &bounds);
        assert!(
            bounds.testers(found, None, false).is_some_and(|why| why.contains("64512 ports of the pool")),
            "{found:?}"
        );
        assert_eq!(bounds.testers(of_device(50_000, &bounds), None, false), None);
        // Without a pool of the lab it is the device's.
        let bounds = Bounds { ports: None, ..bounds };
        assert_eq!(bounds.testers(found, None, false), None);
    }

    #[test]
    fn a_failure_that_was_not_final_is_not_the_devices() {
        let bounds = Bounds::new(100_000, None, &machine(4_000));
        let found = of_device(30_000, &bounds);
        let (_, failed) = found;
        assert!(bounds.testers(found, failed, false).is_some_and(|why| why.contains("too fast")));
        assert_eq!(bounds.testers(found, Some(65_536), false), None, "a later one was");
        assert!(bounds.testers(found, None, true).is_some_and(|why| why.contains("disturbed")));
    }

    #[test]
    fn a_rate_of_attempts_that_makes_no_sense_is_refused() {
        let asked = |rate: &str| {
            let set = [("attempts".to_owned(), rate.to_owned())].into();
            attempts(&Asked { set, ..Asked::default() })
        };
        assert_eq!((asked("50000"), attempts(&Asked::default())), (Ok(50_000.0), Ok(ATTEMPTS)));
        assert!(asked("5").is_err_and(|why| why.contains("attempts")) && asked("1e9").is_err());
    }
}
