//! Tunnels and native IPv6 with IPsec and without, which the paper left for later. ESP takes a kernel that has it, so both ends are guests.

use super::stage::{Kind, NATIVE};
use crate::device::{Device, find};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, Target, Terrain, Way, bits_per_second};
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::measure::Cores;
use crate::results::{Asked, Cell, Unit};
use std::time::Duration;

/// Sizes, of data that fits into one packet with all headers.
pub const SIZES: [f64; 3] = [64.0, 512.0, 1_024.0];
/// Loads: echo requests and UDP.
pub const LOADS: [Kind; 2] = [Kind::Ping, Kind::Udp];

/// A mechanism, with IPsec or without.
pub struct Ipsec {
    at_work: Option<(Way, bool, AtWork)>,
    device: &'static dyn Device,
    cores: Cores,
    asked: Asked,
}

impl Ipsec {
    /// Nothing is built before the first cell, which says which mechanism.
    pub fn new(line: &Line<'_>) -> Result<Self> {
        let name = line.device.card().name;
        let device = find(name);
        let device = device.ok_or_else(|| Failure::Unexpected(format!("no device is named {name}")))?;
        Ok(Self { at_work: None, device, cores: line.cores, asked: line.asked.clone() })
    }

    /// The mechanism at work; what has IPsec already begins again if it is to have none.
    fn at_work(&mut self, cell: &Cell) -> Result<&AtWork> {
        let number = cell.at("way") as usize;
        let way = Way::ALL.get(number.wrapping_sub(1)).copied();
        let way = way.ok_or_else(|| Failure::Unexpected(format!("no mechanism has the number {number}")))?;
        let has_esp = cell.at("esp") > 0.0;
        if self.at_work.as_ref().is_none_or(|(of, esp, _)| *of != way || (*esp && !has_esp)) {
            // The old one ends before.
            self.at_work = None;
            let line = Line { device: self.device, cores: self.cores, asked: &self.asked };
            self.at_work = Some((way, false, AtWork::build(way, Terrain::DRAWN, &line)?));
        }
        let Some((_, esp, at_work)) = &mut self.at_work else {
            return Err(Failure::Unexpected("no mechanism is at work".to_owned()));
        };
        if has_esp && !*esp {
            at_work.protect()?;
            *esp = true;
        }
        Ok(at_work)
    }
}

impl Stage for Ipsec {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let scale = self.asked.scale;
        let at_work = self.at_work(cell)?;
        let octets = cell.at("octets") as usize;
        let is_ping = cell.at("load") == f64::from(Kind::Ping as u8);
        for target in [at_work.way().target(), at_work.way().native()] {
            at_work.is_reached(target, if is_ping { octets } else { 56 })?;
        }
        let load = |target: Target| -> Result<Outcome> {
            match is_ping {
                true => at_work.echo(target, octets, (10_000.0 * scale).clamp(20.0, 10_000.0) as u16),
                false => {
                    at_work.udp(target, octets, Duration::from_secs_f64((60.0 * scale).clamp(0.1, 60.0)))
                }
            }
        };
        let through = at_work.measured(sheet, || load(at_work.way().target()))?.outcome;
        let (past, cost, _) = at_work.metered(|| load(at_work.way().native()))?;
        if is_ping {
            sheet.times("response", &through.latency)?;
            sheet.times("native-response", &past.latency)?;
            sheet.value("loss", through.loss(), Unit::Lost);
        } else {
            let bits = |outcome: &Outcome| bits_per_second(outcome.answered * octets as u64, outcome);
            sheet.value("throughput", bits(&through), Unit::BitsPerSecond);
            sheet.value("native-throughput", bits(&past), Unit::BitsPerSecond);
        }
        sheet.tester_of(&NATIVE, &cost);
        at_work.describe(sheet)
    }
}
