//! One measurement: through the tunnel, and natively by the same routers right after it.

use super::breakdown::{breakdown, life};
use super::connectivity::connectivity;
use super::flow::flow;
use super::programs::{by_ditg, ftp};
use super::smoothing::{SMOOTHED, smoothed, times};
use crate::device::Realm;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{
    AtWork, NATIVE4, NATIVE6, Stream, Target, Terrain, Way, bits_per_second,
};
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::namespace::command;
use crate::results::{Cell, Unit};
use std::time::Duration;

/// Packets of one run of the paper.
const PACKETS: f64 = 20_000.0;
/// A stream's time at scale 1. The paper sends 20,000 buffers.
const SECONDS: f64 = 10.0;

/// The tunnel at work.
pub struct Tunnel {
    at_work: AtWork,
    device: &'static str,
    routers_are_here: bool,
    scale: f64,
    is_quick: bool,
}

impl Tunnel {
    /// Builds the network and starts the routers.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let at_work = AtWork::build(Way::SixToFour, Terrain::DRAWN, line)?;
        Ok(Self {
            at_work,
            device: line.device.card().name,
            routers_are_here: line.device.card().realm == Realm::Here,
            scale: line.asked.scale,
            is_quick: line.asked.quick,
        })
    }

    /// By echo requests of our own, and by `ping`, whose times are smoothed.
    fn round_trips(&self, octets: usize, sheet: &mut Sheet) -> Result<()> {
        let tunnel = self.at_work.way().target();
        let count = packets(self.scale);
        for target in [tunnel, NATIVE6, NATIVE4] {
            self.at_work.is_reached(target, octets)?;
        }
        let echo = |target| self.at_work.echo(target, octets, count);
        let measured = self.at_work.measured(sheet, || echo(tunnel))?;
        let (six, cost6, _) = self.at_work.metered(|| echo(NATIVE6))?;
        let (four, cost4, _) = self.at_work.metered(|| echo(NATIVE4))?;
        let through = &measured.outcome;
        for (name, outcome) in [("tunnel", through), ("ipv6", &six), ("ipv4", &four)] {
            sheet.times(name, &outcome.latency)?;
        }
        sheet.tester_of(&["ipv6"], &cost6);
        sheet.tester_of(&["ipv4"], &cost4);
        let overhead = (through.latency.mean() - six.latency.mean()) / 1e6;
        sheet.value("overhead", overhead, Unit::Milliseconds);
        sheet.value("loss", through.loss(), Unit::Lost);
        let by_ping = self.ping(tunnel, octets, count.min(200), sheet)?;
        let mean = by_ping.iter().sum::<f64>() / by_ping.len().max(1) as f64;
        sheet.value("by-ping", mean, Unit::Milliseconds);
        for (name, a) in SMOOTHED {
            let last =
                smoothed(&by_ping, a).ok_or_else(|| Failure::Unexpected("ping had no answer".to_owned()))?;
            sheet.value(name, last, Unit::Milliseconds);
        }
        let packets = 2.0 * through.answered.max(1) as f64;
        sheet.value("cpu-per-packet", measured.nanoseconds_each(packets), Unit::NanosecondsPerPacket);
        sheet.value("sent", through.sent as f64, Unit::Count);
        Ok(())
    }

    fn ping(&self, target: Target, octets: usize, count: u16, sheet: &mut Sheet) -> Result<Vec<f64>> {
        let mut ping = command("ping")?;
        ping.args(["-n", "-c", &count.to_string(), "-i", "0.002", "-s", &octets.to_string()]);
        ping.arg(target.address.to_string());
        let limit = Duration::from_secs(20) + Duration::from_millis(20) * u32::from(count);
        let finished = self.at_work.network().host("client")?.run(ping, limit)?;
        sheet.command(finished.typed.clone());
        sheet.keep("ping.txt", &finished.stdout)?;
        Ok(times(&finished.stdout))
    }

    /// One load on each of the three ways.
    fn rates(
        &self,
        sheet: &mut Sheet,
        load: impl Fn(Target) -> Result<Outcome>,
        octets: impl Fn(&Outcome) -> u64,
    ) -> Result<()> {
        let tunnel = self.at_work.way().target();
        let through = self.at_work.measured(sheet, || load(tunnel))?.outcome;
        let (six, cost6, _) = self.at_work.metered(|| load(NATIVE6))?;
        let (four, cost4, _) = self.at_work.metered(|| load(NATIVE4))?;
        for (name, outcome) in [("tunnel", &through), ("ipv6", &six), ("ipv4", &four)] {
            sheet.value(name, bits_per_second(octets(outcome), outcome), Unit::BitsPerSecond);
        }
        sheet.tester_of(&["ipv6"], &cost6);
        sheet.tester_of(&["ipv4"], &cost4);
        sheet.value("sent", through.sent as f64, Unit::Count);
        Ok(())
    }
}

impl Stage for Tunnel {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let octets = cell.at("octets") as usize;
        let time = Duration::from_secs_f64((SECONDS * self.scale).clamp(0.1, SECONDS));
        if cell.series == "life" {
            let idle = Duration::from_secs_f64((60.0 * self.scale).clamp(0.5, 60.0));
            return life(&mut self.at_work, self.device, idle, sheet);
        }
        let at_work = &self.at_work;
        match cell.series.as_str() {
            "flow" => {
                flow(at_work, octets, sheet)?;
                connectivity(at_work, self.routers_are_here, sheet)?;
            }
            "rtt" => self.round_trips(octets, sheet)?,
            "breakdown" => breakdown(at_work, octets, packets(self.scale), sheet)?,
            "ftp" => ftp(at_work, self.scale, sheet)?,
            "ditg" => by_ditg(at_work, octets, (self.scale, !self.is_quick), sheet)?,
            "tcp" => {
                let stream = Stream { write: octets, no_delay: false, segment: None };
                self.rates(sheet, |target| at_work.tcp(target, stream, time), |outcome| outcome.octets)?;
            }
            _ => {
                let payload = |outcome: &Outcome| outcome.answered * octets as u64;
                self.rates(sheet, |target| at_work.udp(target, octets, time), payload)?;
            }
        }
        at_work.describe(sheet)
    }
}

/// Round trips at a scale.
pub fn packets(scale: f64) -> u16 {
    (PACKETS * scale).clamp(20.0, PACKETS) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_count_is_that_of_scale_one() {
        assert_eq!([packets(1.0), packets(0.02), packets(0.0)], [20_000, 400, 20]);
    }
}
