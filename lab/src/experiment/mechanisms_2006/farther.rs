//! The mechanisms over more hops, with background traffic, and while they are idle.

use super::control::{idle, idle_time, start};
use super::narrow::{NARROW, narrow};
use super::stage::{Kind, NATIVE};
use crate::device::{Device, find};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, Stream, Target, Terrain, Timers, Way, bits_per_second};
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::measure::Cores;
use crate::results::{Asked, Cell, Unit};
use std::time::Duration;

/// Half of the paper's links, in bits a second.
const HALF: f64 = 50e6;
/// Octets of a packet of background.
const PACKET: usize = 1_400;
/// Octets of data of an echo request, a datagram, and a write of TCP.
const DATA: [usize; 3] = [512, 1_024, 1_024];

/// A mechanism in one terrain at a time.
pub struct Farther {
    at_work: Option<(Way, Terrain, AtWork)>,
    device: &'static dyn Device,
    cores: Cores,
    asked: Asked,
}

impl Farther {
    /// Nothing is built before the first cell, which says which mechanism, and where.
    pub fn new(line: &Line<'_>) -> Result<Self> {
        let name = line.device.card().name;
        let device = find(name);
        let device = device.ok_or_else(|| Failure::Unexpected(format!("no device is named {name}")))?;
        Ok(Self { at_work: None, device, cores: line.cores, asked: line.asked.clone() })
    }

    fn at_work(&mut self, cell: &Cell) -> Result<&mut AtWork> {
        let number = cell.at("way") as usize;
        let way = Way::EVERY.get(number.wrapping_sub(1)).copied();
        let way = way.ok_or_else(|| Failure::Unexpected(format!("no mechanism has the number {number}")))?;
        let mtu = if cell.series == "narrow" { NARROW } else { Terrain::DRAWN.mtu };
        let terrain = Terrain { hops: (cell.at("hops") as usize).max(1), mtu };
        let timers = if cell.series == "control" { Timers::Short } else { Timers::Usual };
        let is_other =
            |(of, at, it): &(Way, Terrain, AtWork)| (*of, *at, it.timers()) != (way, terrain, timers);
        if self.at_work.as_ref().is_none_or(is_other) {
            // The old one ends before.
            self.at_work = None;
            let line = Line { device: self.device, cores: self.cores, asked: &self.asked };
            self.at_work = Some((way, terrain, AtWork::build_with(way, terrain, timers, &line)?));
        }
        let at_work = self.at_work.as_mut().map(|(.., at_work)| at_work);
        at_work.ok_or_else(|| Failure::Unexpected("no mechanism is at work".to_owned()))
    }
}

impl Stage for Farther {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let (scale, device) = (self.asked.scale, self.device);
        let at_work = self.at_work(cell)?;
        match cell.series.as_str() {
            "hops" => hops(at_work, cell, scale, sheet)?,
            "narrow" => narrow(at_work, cell, sheet)?,
            "start" => start(at_work, device, sheet)?,
            _ => idle(at_work, device, idle_time(at_work.way(), scale), sheet)?,
        }
        at_work.describe(sheet)
    }
}

/// Response time, throughput and transactions, with background or without, through the mechanism and natively.
fn hops(at_work: &AtWork, cell: &Cell, scale: f64, sheet: &mut Sheet) -> Result<()> {
    let [target, native] = [at_work.way().target(), at_work.way().native()];
    let [echo, datagram, write] = DATA;
    let kind = Kind::of(cell.at("load"))?;
    let time = Duration::from_secs_f64((60.0 * scale).clamp(0.1, 60.0));
    for target in [target, native] {
        at_work.is_reached(target, echo)?;
    }
    let load = |target: Target| -> Result<Outcome> {
        let has_background = cell.at("background") > 0.0;
        let background = has_background.then(|| at_work.background(target, PACKET, HALF)).transpose()?;
        let outcome = match (kind, kind.transaction()) {
            (_, Some(transaction)) => at_work.transactions(target, transaction, time)?,
            (Kind::Ping, _) => at_work.echo(target, echo, (10_000.0 * scale).clamp(20.0, 10_000.0) as u16)?,
            (Kind::Udp, _) => at_work.udp(target, datagram, time)?,
            _ => {
                let stream = Stream { write, no_delay: false, segment: None };
                at_work.tcp(target, stream, time)?
            }
        };
        background.map_or(Ok(()), |background| background.end().map(drop))?;
        Ok(outcome)
    };
    let through = at_work.measured(sheet, || load(target))?.outcome;
    let (past, natively, _) = at_work.metered(|| load(native))?;
    match (kind, kind.transaction()) {
        (_, Some(_)) => {
            sheet.value("transactions", through.per_second(), Unit::PerSecond);
            sheet.value("native-transactions", past.per_second(), Unit::PerSecond);
        }
        (Kind::Ping, _) => {
            sheet.times("response", &through.latency)?;
            sheet.times("native-response", &past.latency)?;
            sheet.value("answered", through.answered as f64, Unit::Count);
            sheet.value("loss", through.loss(), Unit::Lost);
        }
        _ => {
            let payload = |outcome: &Outcome| match kind {
                Kind::Udp => outcome.answered * datagram as u64,
                _ => outcome.octets,
            };
            sheet.value("throughput", bits_per_second(payload(&through), &through), Unit::BitsPerSecond);
            sheet.value("native-throughput", bits_per_second(payload(&past), &past), Unit::BitsPerSecond);
        }
    }
    sheet.tester_of(&NATIVE, &natively);
    Ok(())
}
