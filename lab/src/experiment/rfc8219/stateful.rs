//! The method of RFC 9693 for stateful devices: connections are established by one frame each (its first phase), and the far end, which
//! has noted where each came from, validates them by one frame back. The device begins without connections.

use super::frames::{TARGET, frame_ends, live, throughput, warm_up};
use super::longest::longest;
use super::search::{Found, Search, Seen, Trial};
use super::stage::{LEAST, at, given, precision, time, trials};
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::Live;
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{FlowState, Outcome, Trip};
use crate::measure::{Reading, core_time};
use crate::results::{Cell, Machine, Unit};
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

/// 32 addresses: more than two million connections to one destination.
const POOL: &str = "198.19.1.0/27";
/// For more than that: 256 addresses.
const LARGE_POOL: &str = "198.19.2.0/24";
/// The most connections of the smaller pool.
const FEW: f64 = 2_000_000.0;
/// The smallest frame.
const FRAME: usize = 84;
/// Frames a second by which a table is filled where its rate is not what is measured, and validated.
const CAREFUL: f64 = 10_000.0;
/// How long a table of more is filled, and validated. Sixway's connections have an hour.
const FILLED: f64 = 200.0;
/// Octets of memory for a connection, at the device and at the tester, that a table needs at least.
pub const OCTETS: u64 = 512;
/// A device that has just started has other work for a moment, which would cost it connections.
const SETTLES: Duration = Duration::from_secs(2);
/// How often a table that was not filled is filled again (RFC 9693 leaves that to the tester).
const AGAIN: u32 = 3;
/// The smallest table that is looked for.
const FEWEST: u32 = 1_024;
/// The highest rate of a search.
const FASTEST: f64 = 2_000_000.0;

/// A stateful device between the tester's ends.
pub struct Stateful {
    // Dropped first: a device's end needs its network.
    scene: Scene,
    live: Live,
    time: Duration,
    precision: f64,
    given: f64,
}

/// Where frames came from, now or before. A connection that exists comes from the same place again.
fn merged(before: Vec<FlowState>, now: Vec<FlowState>) -> Vec<FlowState> {
    if before.is_empty() {
        return now;
    }
    let mut all = [before, now].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Connections that are established and validated at a time: with millions, some frame is lost somewhere.
const PART: u32 = 1 << 17;

/// These connections in parts.
fn parts(flows: u32) -> impl Iterator<Item = Range<u32>> {
    (0..flows).step_by(PART as usize).map(move |first| first..flows.min(first + PART))
}

/// Frames a second by which a table of this size is filled and validated.
pub fn filling(flows: f64) -> f64 {
    (flows / FILLED).max(CAREFUL)
}

/// The pool of a device for this many connections.
pub fn pool_for(flows: f64) -> &'static str {
    if flows > FEW { LARGE_POOL } else { POOL }
}

/// How many ports a pool has to share out: those from 1,024 on of each address.
pub fn ports_of(pool: &str) -> u32 {
    let length = pool.split_once('/').and_then(|(_, length)| length.parse().ok()).unwrap_or(32);
    1_u32.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0).saturating_mul(64_512)
}

/// Why a table of this size is not filled on a machine.
fn no_room(flows: u64, is_kernels: bool, here: &Machine) -> Option<String> {
    let (needed, has) = ((flows * OCTETS) >> 20, here.memory_mb);
    if needed > has {
        return Some(format!(
            "{flows} connections need about {needed} MiB of memory, and this machine has {has} MiB"
        ));
    }
    let most = here.conntrack_max.filter(|most| is_kernels && flows > *most)?;
    Some(format!("{flows} connections are more than this kernel's table holds, {most} (nf_conntrack_max)"))
}

/// How often an empty table is deleted.
const EMPTY: usize = 5;

/// How much longer something takes than nothing does, if it is more than the times for nothing differ by.
fn beyond(full: Duration, empty: &[Duration]) -> Option<Duration> {
    let (least, most) = (*empty.iter().min()?, *empty.iter().max()?);
    let middle = least + (most - least) / 2;
    full.checked_sub(middle).filter(|time| *time > most - least && !time.is_zero())
}

/// What an attempt to establish connections has shown.
struct Filled {
    /// Connections that exist: a frame has come back over each.
    validated: u64,
    outcome: Outcome,
}

impl Stateful {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(cell: &Cell, line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let scene = Scene::with_pool(line, pool_for(cell.at("connections")))?;
        let live = live(&scene)?;
        let mut stateful = Self { scene, live, time: time(line.asked.scale), precision, given };
        // Neighbours are found.
        stateful.filled(8)?;
        Ok(stateful)
    }

    /// Establishes this number of connections at a rate, in an empty table, and validates them.
    fn fill(&mut self, flows: u32, per_second: f64) -> Result<Filled> {
        self.scene.running.forget()?;
        self.fill_more(flows, per_second)
    }

    fn fill_more(&self, flows: u32, per_second: f64) -> Result<Filled> {
        let ends = frame_ends(&self.scene.ends, &self.live, FRAME, flows);
        let (outcome, states) = self.live.establish(&ends, 0..flows, at(per_second))?;
        Ok(Filled { validated: self.come_back(&states, filling(flows.into()))?, outcome })
    }

    /// How many frames come back over connections that had these states.
    fn come_back(&self, states: &[FlowState], per_second: f64) -> Result<u64> {
        if states.is_empty() {
            return Ok(0);
        }
        Ok(self.live.validate((self.scene.ends.far(), TARGET), states, at(per_second))?.answered)
    }

    /// A table with this number of connections, all of them validated, one part after the other. If frames of a part are lost, the whole part
    /// is sent again at half the rate: connections that exist stay.
    fn filled(&mut self, flows: u32) -> Result<Vec<FlowState>> {
        self.scene.running.forget()?;
        if flows > FEWEST {
            interrupt::pause(SETTLES)?;
        }
        let mut all = Vec::with_capacity(flows as usize);
        for part in parts(flows) {
            all.extend(self.fill_part(part, filling(flows.into()))?);
        }
        all.sort_unstable();
        all.dedup();
        match all.len() as u32 {
            different if different == flows => Ok(all),
            different => {
                Err(Failure::Unexpected(format!("of {flows} connections {different} are different")))
            }
        }
    }

    fn fill_part(&self, part: Range<u32>, per_second: f64) -> Result<Vec<FlowState>> {
        let ends = frame_ends(&self.scene.ends, &self.live, FRAME, part.end);
        let (mut states, mut validated, count) = (Vec::new(), 0, part.len() as u64);
        for attempt in 0..=AGAIN {
            // A queue somewhere may be too short for the rate.
            let rate = per_second / f64::from(1_u32 << attempt);
            let (_, seen) = self.live.establish(&ends, part.clone(), at(rate))?;
            states = merged(states, seen);
            validated = self.come_back(&states, rate)?;
            if validated == count {
                return Ok(states);
            }
        }
        Err(Failure::Unexpected(format!(
            "of connections {} to {} {validated} were established, after {AGAIN} repetitions",
            part.start, part.end
        )))
    }

    /// §4.5, §4.6: the highest rate at which all are established and validated.
    fn rate(&mut self, flows: u32, sheet: &mut Sheet) -> Result<()> {
        let rates = (LEAST, FASTEST);
        let search = Search { rates, passed: 0.0, loss: 0.0, precision: self.precision, repeats: AGAIN };
        let found = search.run(&mut Establishing { stateful: self, flows })?;
        self.scene.running.forget()?;
        let ends = frame_ends(&self.scene.ends, &self.live, FRAME, flows);
        let running = self.live.counting(self.scene.running.as_ref());
        let measured = measure(&running, (self.scene.ends.cores, Reading::Ticks), sheet, || {
            Ok(self.live.establish(&ends, 0..flows, at(found.rate.max(LEAST)))?.0)
        })?;
        let each = measured.nanoseconds_each(f64::from(flows));
        sheet.value("connections", f64::from(flows), Unit::Count);
        sheet.value("established-rate", found.rate, Unit::PerSecond);
        sheet.value("cpu-per-connection", each / 1e6, Unit::CpuMilliseconds);
        sheet.value("at-ceiling", f64::from(u8::from(found.is_at_ceiling)), Unit::Count);
        self.keep(sheet, &found)
    }

    /// §4.8: how long it takes to delete all connections, less the same of an empty table.
    fn tear_down(&mut self, flows: u32, sheet: &mut Sheet) -> Result<()> {
        let states = self.filled(flows)?;
        let full = self.deletion()?;
        let left = self.come_back(&states, filling(flows.into()))?;
        let mut empty = Vec::new();
        for _ in 0..EMPTY {
            empty.push(self.deletion()?);
        }
        let back = self.fill_more(flows, CAREFUL)?;
        self.row(flows, sheet)?;
        sheet.value("connections", f64::from(flows), Unit::Count);
        sheet.value("deletion", full.as_secs_f64() * 1e3, Unit::Milliseconds);
        let milliseconds: Vec<f64> = empty.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        sheet.spread("deletion-of-none", &milliseconds, Unit::Milliseconds);
        sheet.value("left", left as f64, Unit::Count);
        sheet.value("established-again", back.validated as f64, Unit::Count);
        match beyond(full, &empty) {
            Some(time) => sheet.value("torn-down", f64::from(flows) / time.as_secs_f64(), Unit::PerSecond),
            None => sheet
                .not_measurable("torn-down", "deleting them took no longer than deleting none, which varies"),
        }
        Ok(())
    }

    fn deletion(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.scene.running.forget()?;
        Ok(start.elapsed())
    }

    /// §4.9: the most connections that are all established and validated; by doubling, then by halves.
    fn capacity(&mut self, most: u32, sheet: &mut Sheet) -> Result<()> {
        let mut text = String::new();
        let (low, high) = longest((FEWEST, most), self.precision, |flows| {
            let validated = self.fill(flows, CAREFUL)?.validated;
            writeln!(text, "{flows} connections: {validated} validated").ok();
            Ok(validated == u64::from(flows))
        })?;
        self.row(low.clamp(1, FEWEST), sheet)?;
        match high {
            None => sheet.limited_by_tester(format!("no more than {most} connections were tried")),
            Some(_) => sheet.limited_by_device(),
        }
        sheet.value("capacity", f64::from(low), Unit::Count);
        sheet.value("at-ceiling", f64::from(u8::from(high.is_none())), Unit::Count);
        sheet.keep("trials.txt", &text)
    }

    /// §5.1: throughput (its second phase, in both directions) with this number of connections, in turn.
    fn sessions(&mut self, flows: u32, sheet: &mut Sheet) -> Result<()> {
        let is_kernels = self.scene.running.counters()?.iter().any(|(name, _)| name == "connections");
        if let Some(why) = no_room(flows.into(), is_kernels, &Machine::here()) {
            return Err(Failure::Unexpected(why));
        }
        let states = self.filled(flows)?;
        // The kernel forgets its connections within minutes.
        if is_kernels && flows > PART && self.come_back(&states, filling(flows.into()))? < flows.into() {
            return Err(Failure::Unexpected(format!(
                "of {flows} connections some expired before all were established: raise nf_conntrack_udp_timeout"
            )));
        }
        let (live, scene, time, precision) =
            (&self.live, &self.scene, self.time, (self.precision, self.given));
        let ends = frame_ends(&scene.ends, live, FRAME, flows);
        live.with(&ends, Trip::Round, |stream| {
            warm_up(stream, flows.min(1_024))?;
            throughput((scene, live), (stream, time, precision), FRAME, sheet)
        })
    }

    /// A row needs the cost of a load: that of a table that is filled.
    fn row(&mut self, flows: u32, sheet: &mut Sheet) -> Result<()> {
        let ends = frame_ends(&self.scene.ends, &self.live, FRAME, flows);
        let running = self.live.counting(self.scene.running.as_ref());
        measure(&running, (self.scene.ends.cores, Reading::Ticks), sheet, || {
            Ok(self.live.establish(&ends, 0..flows, at(CAREFUL))?.0)
        })
        .map(drop)
    }

    fn keep(&self, sheet: &mut Sheet, found: &Found) -> Result<()> {
        sheet.value("trials", found.trials.len() as f64, Unit::Count);
        sheet.keep("trials.txt", &trials("all validated", found))
    }
}

/// New connections at a rate, into an empty table.
struct Establishing<'a> {
    stateful: &'a mut Stateful,
    flows: u32,
}

impl Trial for Establishing<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let device = self.stateful.scene.ends.cores.device;
        let before = core_time(device)?;
        let filled = self.stateful.fill(self.flows, per_second)?;
        let stolen = core_time(device)?.stolen_since(&before);
        let seen = super::stage::seen(&filled.outcome, stolen);
        Ok(Seen { loss: 1.0 - filled.validated as f64 / f64::from(self.flows), ..seen })
    }
}

impl Stage for Stateful {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let flows = cell.at("connections") as u32;
        match cell.series.as_str() {
            "establishment" => self.rate(flows, sheet),
            "tear-down" => self.tear_down(flows, sheet),
            "capacity" => self.capacity(flows, sheet),
            _ => self.sessions(flows, sheet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_the_machine_cannot_hold_is_refused_with_the_reason() {
        let here = Machine { memory_mb: 4_000, conntrack_max: Some(262_144), ..Machine::default() };
        assert_eq!(no_room(1_000_000, false, &here), None);
        let why = no_room(10_000_000, false, &here).unwrap();
        assert_eq!(why, "10000000 connections need about 4882 MiB of memory, and this machine has 4000 MiB");
        let why = no_room(1_000_000, true, &here).unwrap();
        assert_eq!(
            why,
            "1000000 connections are more than this kernel's table holds, 262144 (nf_conntrack_max)"
        );
        assert_eq!(no_room(100_000, true, &here), None);
    }

    #[test]
    fn the_larger_pool_has_ports_for_more_connections() {
        assert!(ports_of(pool_for(FEW)) > FEW as u32);
        assert_eq!((ports_of(pool_for(2_000_001.0)), ports_of("198.19.1.1/32")), (256 * 64_512, 64_512));
    }

    #[test]
    fn what_came_now_or_before_is_there_once() {
        let [one, two, three] = [[1; 8], [2; 8], [3; 8]];
        assert_eq!(merged(Vec::new(), vec![two, one]), [two, one], "in the order in which they were sent");
        assert_eq!(merged(vec![three, one], vec![one, two]), [one, two, three]);
    }

    #[test]
    fn parts_have_each_connection_once() {
        assert!(parts(8).eq(std::iter::once(0..8)));
        let several: Vec<_> = parts(2 * PART + 1).collect();
        assert_eq!(several, [0..PART, PART..2 * PART, 2 * PART..2 * PART + 1]);
    }

    #[test]
    fn a_large_table_is_filled_and_validated_in_minutes() {
        assert_eq!(filling(1_000.0), CAREFUL);
        assert_eq!(10_000_000.0 / filling(10_000_000.0), FILLED);
    }

    #[test]
    fn a_difference_within_what_nothing_takes_is_no_time() {
        let of = |times: &[u64]| times.iter().map(|it| Duration::from_micros(*it)).collect::<Vec<_>>();
        let empty = of(&[3_190, 3_200, 3_230]);
        assert_eq!(beyond(Duration::from_micros(3_212), &empty), None, "2 us of 3.2 ms");
        assert_eq!(beyond(Duration::from_micros(3_250), &empty), None);
        assert_eq!(beyond(Duration::from_micros(3_251), &empty), Some(Duration::from_micros(41)));
        assert_eq!(beyond(Duration::from_micros(3_000), &empty), None, "it took less");
        assert_eq!(beyond(Duration::from_micros(50), &of(&[50])), None);
        assert_eq!(beyond(Duration::from_micros(50), &[]), None);
    }
}
