//! One measurement: through the boxes with background traffic, and by the bare wire with the same right after it.

use super::form::Form;
use super::measures::{calls, connections, echoes, outer, pages, pings, some};
use super::scene::{Offered, Scene, any};
use super::topology::{Path, bare};
use crate::device::{Device, Running as _};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::{measure, note_clock, own};
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{BackgroundReport, CallReport, Histogram, Outcome};
use crate::measure::{Cores, Meter, Reading};
use crate::results::{Asked, Cell, Unit};
use std::time::{Duration, Instant};

/// The paper's audio.
const AUDIO: f64 = 180.0;
/// The most readings of the CPU time at each rate.
const READINGS: u32 = 10;
/// Echo requests before each load.
const FIRST: u16 = 5;
/// Octets that a tunnel's header adds.
const TUNNEL: f64 = 20.0;
/// The share of a link's rate from which the link counts as full.
const FULL: f64 = 0.95;
/// Octets of a frame that are counted by no IP packet: Ethernet's header and check sequence, preamble and gap.
const ETHERNET: f64 = 38.0;
/// Those that a link's limit counts: the header.
const LIMITED: f64 = 14.0;

/// The rate on the wire of IP packets of this length: in frames, and in the tunnel if they pass one.
fn on_wire(rate: f64, octets: f64, is_tunnelled: bool) -> f64 {
    framed(rate, octets, is_tunnelled, ETHERNET)
}

/// The same as the limit of a link counts it, without preamble, gap and check sequence.
pub fn on_link(rate: f64, octets: f64, is_tunnelled: bool) -> f64 {
    framed(rate, octets, is_tunnelled, LIMITED)
}

fn framed(rate: f64, octets: f64, is_tunnelled: bool, frame: f64) -> f64 {
    let tunnel = if is_tunnelled { TUNNEL } else { 0.0 };
    rate * (octets + tunnel + frame) / octets
}

/// How many readings the CPU time has: ticks of 10 ms are a tenth of the time between two of them at most.
fn readings(time: Duration) -> u32 {
    u32::try_from(time.as_millis() / 100).unwrap_or(READINGS).clamp(1, READINGS)
}

/// A site's boxes, built for one form at a time.
pub struct Site {
    scene: Option<Scene>,
    device: &'static dyn Device,
    cores: Cores,
    asked: Asked,
}

impl Site {
    /// Nothing is built before the first cell, which says for which form.
    pub fn new(line: &Line<'_>) -> Result<Self> {
        let name = line.device.card().name;
        let device = crate::device::find(name);
        let device = device.ok_or_else(|| Failure::Unexpected(format!("no device is named {name}")))?;
        Ok(Self { scene: None, device, cores: line.cores, asked: line.asked.clone() })
    }

    fn scene(&mut self, cell: &Cell) -> Result<&mut Scene> {
        let form = Form::of(cell.at("form"));
        let form = form.ok_or_else(|| Failure::Unexpected("no form has this number".to_owned()))?;
        if self.scene.as_ref().is_none_or(|scene| scene.form() != form) {
            // The old one ends before.
            self.scene = None;
            let line = Line { device: self.device, cores: self.cores, asked: &self.asked };
            self.scene = Some(Scene::build(form, self.device, &line)?);
        }
        let scene = self.scene.as_mut();
        let scene = scene.ok_or_else(|| Failure::Unexpected("there is no scene".to_owned()))?;
        scene.limit(cell.at("link"))?;
        Ok(scene)
    }
}

impl Stage for Site {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let scale = self.asked.scale;
        let scene = self.scene(cell)?;
        let offered =
            Offered { megabits: cell.at("background"), octets: cell.at("packet").max(200.0) as usize };
        let is_six = cell.at("version") != 4.0;
        // It is IPv6, but for the rows that measure the CPU with IPv4.
        let is_tunnelled = scene.has_tunnel() && (is_six || cell.series != "cpu");
        let run = Run { scene, offered, is_six, is_tunnelled, link: cell.at("link") };
        match cell.series.as_str() {
            "connection" => run.connection(count(10_000.0, scale, 200.0), sheet)?,
            "web" => run.web(cell.at("page") as usize, count(2_000.0, scale, 50.0), sheet)?,
            "call" => {
                let talk = Duration::from_secs_f64((AUDIO * scale).clamp(0.3, AUDIO));
                run.call(count(1_000.0, scale, 10.0).min(50) as u32, talk, sheet)?;
            }
            "rtt" => run.rtt((5_000.0 * scale).clamp(30.0, 100.0) as u16, sheet)?,
            "outer" => run.outer(5, sheet)?,
            _ => run.cpu(Duration::from_secs_f64((60.0 * scale).clamp(0.2, 60.0)), sheet)?,
        }
        note_clock(&scene.boxes(), sheet)?;
        scene.commands().into_iter().for_each(|line| sheet.command(line));
        Ok(())
    }
}

/// The number at a scale, but enough of them that the first few do not decide.
fn count(at_one: f64, scale: f64, least: f64) -> u64 {
    (at_one * scale).clamp(least, at_one) as u64
}

struct Run<'a> {
    scene: &'a Scene,
    offered: Offered,
    is_six: bool,
    is_tunnelled: bool,
    link: f64,
}

impl Run<'_> {
    /// The load through the boxes, and by the bare wire, both with the background; the verdict is that of the first one.
    fn both<T>(
        &self,
        sheet: &mut Sheet,
        load: impl Fn(&Path) -> Result<T>,
        outcome: impl Fn(&T) -> &Outcome,
    ) -> Result<[T; 2]> {
        let with_background = |path: Path, background: Path| -> Result<(T, Option<BackgroundReport>)> {
            let background = self.scene.background(&background, self.offered)?;
            // The first packets wait for neighbours and for code that is not in memory yet, and a short row would be theirs.
            echoes(self.scene, &path, FIRST)?;
            let done = load(&path)?;
            Ok((done, background.map(|background| background.end()).transpose()?))
        };
        let mut done = None;
        measure(&self.scene.boxes(), (self.scene.cores(), Reading::Ticks), sheet, || {
            let (through, background) = with_background(self.scene.path(self.is_six), self.scene.path(true))?;
            let mut all = outcome(&through).clone();
            if let Some(background) = &background {
                all.cost.cpu += background.outcome.cost.cpu;
                // It goes on while what was lost is waited for.
                all.lost = 0;
            }
            done = Some((through, background));
            Ok(all)
        })?;
        let nothing = || Failure::Unexpected("the load has brought nothing back".to_owned());
        let (through, background) = done.ok_or_else(nothing)?;
        sheet.value("sent", outcome(&through).sent as f64, Unit::Count);
        if let Some(report) = &background {
            self.note(report, sheet);
        }
        let (wire, _) = with_background(bare(self.is_six), bare(true))?;
        Ok([through, wire])
    }

    /// What the background was, with the tunnel's header on the wire if it has one.
    fn note(&self, report: &BackgroundReport, sheet: &mut Sheet) {
        let octets = self.offered.octets as f64;
        let wire = on_wire(report.packet_bits, octets, self.is_tunnelled);
        sheet.value("background-payload", report.payload_bits, Unit::BitsPerSecond);
        sheet.value("background-wire", wire, Unit::BitsPerSecond);
        sheet.value("background-lost", report.outcome.loss(), Unit::Lost);
        let limited = on_link(report.packet_bits, octets, self.is_tunnelled);
        if self.link > 0.0 && limited >= self.link * 1e6 * FULL {
            sheet.link_was_full();
        }
    }

    fn connection(&self, count: u64, sheet: &mut Sheet) -> Result<()> {
        let load = |path: &Path| connections(self.scene, path, count);
        let [(through, seen), (_, wire)] = self.both(sheet, load, |(outcome, _)| outcome)?;
        some(&seen.client, "a connection")?;
        not_all(&through, count, "connections").into_iter().for_each(|why| sheet.limited_by_tester(why));
        sheet.value("made", through.answered as f64, Unit::Count);
        sheet.value("failed", through.lost as f64, Unit::Count);
        sheet.times("connection-at-server", &seen.server)?;
        less_wire("connection", &seen.client, &wire.client, sheet)
    }

    fn web(&self, octets: usize, count: u64, sheet: &mut Sheet) -> Result<()> {
        let load = |path: &Path| pages(self.scene, path, octets, count);
        let [(through, seen), (wire, wire_seen)] = self.both(sheet, load, |(outcome, _)| outcome)?;
        some(&seen.client, "an answer of the web server")?;
        not_all(&through, count, "pages").into_iter().for_each(|why| sheet.limited_by_tester(why));
        sheet.value("pages", through.answered as f64, Unit::Count);
        sheet.value("failed", through.lost as f64, Unit::Count);
        sheet.times("response-at-server", &seen.server)?;
        less_wire("response", &seen.client, &wire_seen.client, sheet)?;
        less_wire("page-time", &through.latency, &wire.latency, sheet)
    }

    /// Messages carry the caller's own address: behind a NAT of IPv4 that does not change them, audio to the caller does not arrive.
    fn call(&self, count: u32, talk: Duration, sheet: &mut Sheet) -> Result<()> {
        let load = |path: &Path| calls(self.scene, path, count, talk);
        let [(through, seen), (wire, wire_seen)] = self.both(sheet, load, |(report, _)| &report.up)?;
        some(&seen.client, "an answer to a call")?;
        sheet.value("made", through.made as f64, Unit::Count);
        sheet.value("failed", through.failed as f64, Unit::Count);
        sheet.times("setup-at-server", &seen.server)?;
        less_wire("setup", &seen.client, &wire_seen.client, sheet)?;
        let jitter = |report: &CallReport| report.up.jitter.unwrap_or(0.0) / 1e6;
        sheet.value("jitter", jitter(&through), Unit::Milliseconds);
        for (name, report) in [("mean-jitter", &through), ("mean-jitter-wire", &wire)] {
            match report.up.mean_jitter {
                Some(mean) => sheet.value(name, mean / 1e6, Unit::Milliseconds),
                None => sheet.not_measurable(name, "fewer than two packets of audio came"),
            }
        }
        let each = through.up.octets as f64 / through.up.sent.max(1) as f64;
        sheet.value("throughput", through.up.per_second() * each * 8.0, Unit::BitsPerSecond);
        sheet.value("sent", through.up.sent as f64, Unit::Count);
        sheet.value("arrived", through.up.answered as f64, Unit::Count);
        sheet.value("loss", through.up.loss(), Unit::Lost);
        let lost_back = through.down.sent + through.down.refused - through.down.answered;
        let back = lost_back as f64 / (through.down.sent + through.down.refused).max(1) as f64;
        sheet.value("loss-back", back, Unit::Share);
        Ok(())
    }

    fn rtt(&self, count: u16, sheet: &mut Sheet) -> Result<()> {
        let load = |path: &Path| -> Result<_> {
            Ok((echoes(self.scene, path, count)?, pings(self.scene, path, count)?))
        };
        let [(through, by_ping), (wire, _)] = self.both(sheet, load, |(outcome, _)| outcome)?;
        some(&through.service, "an echo reply")?;
        // From when a request was sent: that it was sent late is not the boxes' doing.
        less_wire("response", &through.service, &wire.service, sheet)?;
        let offered = through.sent + through.refused;
        let lost = through.lost + through.refused;
        sheet.value("loss", lost as f64 / offered.max(1) as f64, Unit::Lost);
        sheet.value("answered", through.answered as f64, Unit::Count);
        let mean = by_ping.milliseconds.iter().sum::<f64>() / by_ping.milliseconds.len().max(1) as f64;
        sheet.value("by-ping", mean, Unit::Milliseconds);
        sheet.value("answered-ping", f64::from(by_ping.answered), Unit::Count);
        Ok(())
    }

    fn outer(&self, count: u16, sheet: &mut Sheet) -> Result<()> {
        let meter = Meter::begin(self.scene.cores(), Reading::Ticks)?;
        let (answered, [own, nat], back) = outer(self.scene, &self.scene.path(true), count)?;
        sheet.tester(meter.end(&Outcome::default(), Duration::ZERO)?);
        sheet.value("answered", answered as f64, Unit::Count);
        sheet.value("own-address", own as f64, Unit::Count);
        sheet.value("nat-address", nat as f64, Unit::Count);
        sheet.value("back", back as f64, Unit::Count);
        Ok(())
    }

    /// The CPU time of the boxes in each of several intervals. IPv4 is offered as datagrams of the same size.
    fn cpu(&self, time: Duration, sheet: &mut Sheet) -> Result<()> {
        let path = self.scene.path(self.is_six);
        let meter = Meter::begin(self.scene.cores(), Reading::Ticks)?;
        let boxes = self.scene.boxes();
        let begun = boxes.cpu()?;
        let background = self.scene.background(&path, self.offered)?;
        let background = background
            .ok_or_else(|| Failure::Unexpected(format!("nothing is offered to {:?}", any(path.server))))?;
        let (mut shares, readings) = (Vec::new(), readings(time));
        for _ in 0..readings {
            let (start, before) = (Instant::now(), boxes.cpu()?);
            interrupt::pause(time / readings)?;
            let spent = boxes.cpu()?.since(&before).spent;
            shares.push(spent.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9));
        }
        let report = background.end()?;
        let after = boxes.cpu()?;
        let since = after.since(&begun);
        sheet.tester(meter.end(&report.outcome, own(&since))?);
        sheet.cpu_source(after.source, time);
        sheet.memory(boxes.memory()?);
        sheet.value("duration", time.as_secs_f64() * 1e3, Unit::Milliseconds);
        sheet.spread("cpu", &shares, Unit::Cores);
        sheet.value("sent", report.outcome.sent as f64, Unit::Count);
        sheet.value("arrived", report.outcome.answered as f64, Unit::Count);
        self.note(&report, sheet);
        Ok(())
    }
}

/// Why a row has fewer than it should, if it has.
fn not_all(outcome: &Outcome, count: u64, what: &str) -> Option<String> {
    let seconds = outcome.took.as_secs_f64();
    (outcome.sent < count).then(|| format!("only {} of {count} {what} in {seconds:.0} s", outcome.sent))
}

/// Times through the boxes, by the bare wire, and the difference of their means.
fn less_wire(name: &str, through: &Histogram, wire: &Histogram, sheet: &mut Sheet) -> Result<()> {
    sheet.times(name, through)?;
    sheet.times(&format!("{name}-wire"), wire)?;
    let more = (through.mean() - wire.mean()) / 1e6;
    sheet.value(&format!("{name}-net"), more, Unit::Milliseconds);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_with_the_header_of_a_tunnel_where_there_is_one() {
        assert_eq!([true, false].map(|is_tunnelled| on_wire(90.0, 1_000.0, is_tunnelled)), [95.22, 93.42]);
        assert_eq!(on_wire(50.0, 200.0, false), 59.5);
        assert!((on_link(90.0, 1_000.0, true) - 93.06).abs() < 1e-9, "as a bucket of 100 Mbit/s counts it");
        assert_eq!(on_link(50.0, 200.0, false), 53.5);
    }

    #[test]
    fn an_interval_of_the_cpu_time_has_ten_ticks() {
        let of = |milliseconds| readings(Duration::from_millis(milliseconds));
        assert_eq!([of(0), of(100), of(200), of(999), of(1_000), of(60_000)], [1, 1, 2, 9, 10, 10]);
    }
}
