//! The mechanisms over more hops, over a narrower second link, with background traffic, and while they are idle.

use super::control::{idle, start};
use super::stage::Kind;
use crate::device::{Device, find};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, Stream, Target, Terrain, Way, bits_per_second};
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::measure::Cores;
use crate::namespace::command;
use crate::probe::answered;
use crate::results::{Asked, Cell, Unit};
use std::time::Duration;

/// Half of the paper's links, in bits a second.
const HALF: f64 = 50e6;
/// Octets of a packet of background.
const PACKET: usize = 1_400;
/// The MTU of the narrower link.
pub const NARROW: u32 = 1_400;
/// Echo requests over the narrower link that are counted.
const REQUESTS: u32 = 6;
/// Requests before them, one of which is to be answered: the first ones find the path's MTU, in each direction.
const FIRST: u32 = 8;

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
        if self.at_work.as_ref().is_none_or(|(of, at, _)| (*of, *at) != (way, terrain)) {
            // The old one ends before.
            self.at_work = None;
            let line = Line { device: self.device, cores: self.cores, asked: &self.asked };
            self.at_work = Some((way, terrain, AtWork::build(way, terrain, &line)?));
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
            _ => idle(at_work, Duration::from_secs_f64((60.0 * scale).clamp(1.0, 60.0)), sheet)?,
        }
        at_work.commands().into_iter().for_each(|line| sheet.command(line));
        Ok(())
    }
}

/// Response time and throughput over TCP, with background or without, through the mechanism and natively.
fn hops(at_work: &AtWork, cell: &Cell, scale: f64, sheet: &mut Sheet) -> Result<()> {
    let [target, native] = [at_work.way().target(), at_work.way().native()];
    let is_ping = cell.at("load") == f64::from(Kind::Ping as u8);
    let load = |target: Target| -> Result<Outcome> {
        at_work.is_reached(target, 512)?;
        let has_background = cell.at("background") > 0.0;
        let background = has_background.then(|| at_work.background(target, PACKET, HALF)).transpose()?;
        let outcome = match is_ping {
            true => at_work.echo(target, 512, (10_000.0 * scale).clamp(20.0, 10_000.0) as u16)?,
            false => {
                let stream = Stream { write: 1_024, no_delay: false, segment: None };
                at_work.tcp(target, stream, Duration::from_secs_f64((60.0 * scale).clamp(0.1, 60.0)))?
            }
        };
        background.map_or(Ok(()), |background| background.end().map(drop))?;
        Ok(outcome)
    };
    let (through, cost, _) = at_work.metered(|| load(target))?;
    let past = load(native)?;
    sheet.tester(cost);
    if is_ping {
        sheet.times("response", &through.latency)?;
        sheet.times("native-response", &past.latency)?;
        sheet.value("answered", through.answered as f64, Unit::Count);
        sheet.value("loss", through.loss(), Unit::Lost);
    } else {
        sheet.value("throughput", bits_per_second(through.octets, &through), Unit::BitsPerSecond);
        sheet.value("native-throughput", bits_per_second(past.octets, &past), Unit::BitsPerSecond);
    }
    Ok(())
}

/// Pings that the sender may split on its way, or must not: how many were lost until one was answered, and how many of the next ones were answered.
fn narrow(at_work: &AtWork, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
    let octets = cell.at("octets") as u32;
    let discover = if cell.at("df") > 0.0 { "do" } else { "dont" };
    let client = at_work.network().host("client")?;
    let ping = |target: Target, words: [&str; 6]| {
        let mut ping = command("ping")?;
        ping.args(["-n", "-M", discover, "-s", &octets.to_string()])
            .args(words)
            .arg(target.address.to_string());
        client.run(ping, Duration::from_secs(20))
    };
    // How many were lost before one was answered; nothing passes if this host's own kernel refuses it.
    let first = |target: Target| -> Result<Option<u32>> {
        for lost in 0..FIRST {
            let finished = ping(target, ["-c", "1", "-i", "1", "-W", "1"])?;
            if answered(&finished.stdout).next().is_some() {
                return Ok(Some(lost));
            }
            if finished.stderr.contains("message too long") {
                break;
            }
        }
        Ok(None)
    };
    // It ends with all answers, with an error, or after three seconds, in which it sends more.
    let counted = |target: Target, sheet: &mut Sheet| -> Result<(Option<u32>, f64)> {
        let lost = first(target)?;
        let finished = ping(target, ["-c", &REQUESTS.to_string(), "-i", "0.05", "-w", "3"])?;
        let all = answered(&finished.stdout).filter(|number| *number <= REQUESTS).count();
        sheet.command(finished.typed);
        Ok((lost, all as f64))
    };
    let [target, native] = [at_work.way().target(), at_work.way().native()];
    let mut through = (None, 0.0);
    let (_, cost, _) = at_work.metered(|| {
        through = counted(target, sheet)?;
        Ok(Outcome::default())
    })?;
    sheet.tester(cost);
    if let (Some(lost), _) = through {
        sheet.value("lost-before", f64::from(lost), Unit::Count);
    }
    sheet.value("sent", f64::from(REQUESTS), Unit::Count);
    sheet.value("answered", through.1, Unit::Count);
    let (_, natively) = counted(native, sheet)?;
    sheet.value("answered-natively", natively, Unit::Count);
    Ok(())
}
