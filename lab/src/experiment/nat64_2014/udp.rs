//! Long UDP flows in frames that the kernel makes: what a translator forwards when far more is offered. The paper has no
//! such series; echo requests and small files do not show what a data path can do, for a tester in user space is slower than most of them.
//!
//! The tester's core makes the frames and takes those that arrive, so less is offered than it could make: a row in which it has no time left says
//! nothing of the device.

use super::topology::{direct, target};
use crate::device::{CpuSource, Forward, Nat64, Place, Running, Task, TaskKind};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::live::{Live, Stream};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::Result;
use crate::interrupt;
use crate::load::{FrameEnds, Gaps, Load as _, Pace, Trip, Until};
use crate::measure::{Cores, Reading};
use crate::results::{Cell, Unit};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// The source of all flows, which differ by their ports: behind the first client, for the last 16 bits are the program's.
const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfdb9, 0xa0ab, 0xaf17, 0xfffd, 0, 0, 1, 0);
const PORT: u16 = 7_000;

/// Share of what the tester's core can make that is offered.
const OFFERED: f64 = 0.5;
/// How long is measured what it can make.
const CALIBRATION: Duration = Duration::from_millis(200);

/// How long a row takes: ten seconds at scale 1.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((10.0 * scale).clamp(0.3, 10.0))
}

/// A translator between a client and the responder.
pub struct Udp {
    // Dropped first: a device's end needs its network.
    running: Box<dyn Running>,
    live: Live,
    cores: Cores,
    time: Duration,
}

impl Udp {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start, or programs of BPF cannot be loaded.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let native = !line.device.tasks().contains(&TaskKind::Nat64);
        let network = Arc::new(direct(native)?);
        let place = Place {
            network: Arc::clone(&network),
            host: "translator",
            inside: vec!["in0"],
            outside: vec!["out0"],
            core: line.cores.device,
        };
        let task = match native {
            true => Task::Forward(Forward),
            false => Task::Nat64(Nat64 {
                prefix: super::topology::PREFIX.to_owned(),
                pool: super::topology::pool(line),
                sessions: None,
            }),
        };
        let running = line.device.start(&place, &task)?;
        let is_process = running.cpu()?.source == CpuSource::Process;
        let ends = (("client1", "up0"), ("responder", "up0"));
        let live = Live::new(&network, line.cores, ends, ("translator", ["in0", "out0"]), is_process)?;
        Ok(Self { running, live, cores: line.cores, time: time(line.asked.scale) })
    }
}

impl Stage for Udp {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let flows = cell.at("flows") as u32;
        let ends = FrameEnds {
            to: self.live.door(),
            source: SOURCE.into(),
            destination: target(1, 257),
            port: PORT,
            flows,
            octets: 0,
        };
        let running = self.live.counting(self.running.as_ref());
        self.live.with(&ends, Trip::OneWay, |stream| {
            warm_up(stream, flows)?;
            let limit = stream.ceiling(CALIBRATION)?;
            let pace = Pace::Open { per_second: OFFERED * limit, gaps: Gaps::Even };
            let measured = measure(&running, (self.cores, Reading::Ticks), sheet, || {
                stream.run(pace, Until::Time(self.time))
            })?;
            let outcome = &measured.outcome;
            let (came, seconds) = (outcome.answered as f64, outcome.took.as_secs_f64().max(1e-9));
            sheet.value("ceiling", limit, Unit::PerSecond);
            sheet.value("sent", outcome.sent as f64, Unit::Count);
            sheet.value("arrived", came, Unit::Count);
            sheet.value("lost", outcome.lost as f64, Unit::Count);
            sheet.value("offered", outcome.sent as f64 / seconds, Unit::PerSecond);
            sheet.value("forwarded", came / seconds, Unit::PerSecond);
            sheet.value("loss", outcome.loss(), Unit::Lost);
            sheet.value("cpu-per-packet", measured.nanoseconds_each(came), Unit::NanosecondsPerPacket);
            measured.note_per_cpu_second("packets-per-cpu-second", came, sheet);
            Ok(())
        })
    }
}

/// Each flow has its session, and enough packets for a fast path to take it.
fn warm_up(stream: &Stream<'_>, flows: u32) -> Result<()> {
    let few = Pace::Open { per_second: 2_000.0, gaps: Gaps::Even };
    let count = Until::Count(u64::from(flows) * 12);
    interrupt::wait_until(Duration::from_secs(10), "packets of every flow", || {
        Ok(stream.run(few, count)?.lost == 0)
    })
}
