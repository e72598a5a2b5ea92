//! Throughput while a part of the traffic is native (RFC 8219 §5.3): both parts have to arrive.

use super::search::{Found, Search, Seen, Trial};
use super::stage::{LEAST, at, given, noted, precision, seen, time, trials};
use super::topology::{FAR6, Scene};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{Ends, Load as _, Outcome, UdpStream, Until};
use crate::measure::{Reading, core_time};
use crate::results::{Cell, Unit};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Ports of native traffic.
const PORTS: (u16, u16) = (30_000, 7_001);

/// A device between ends that send traffic of two kinds.
pub struct MixedBench {
    scene: Scene,
    time: Duration,
    precision: f64,
    given: f64,
}

impl MixedBench {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let given = given(line.asked).map_err(Failure::Unexpected)?;
        let bench = Self { scene: Scene::build(line)?, time: time(line.asked.scale), precision, given };
        bench.scene.ends.warm_up(128)?;
        Ok(bench)
    }
}

impl Stage for MixedBench {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let frame = cell.at("frame") as usize;
        let ceiling = self.scene.ends.ceiling(frame)?;
        let (scene, time, native) = (&self.scene, self.time, cell.at("percent") / 100.0);
        Mixed { scene, frame, native, time }.throughput(ceiling, (self.precision, self.given), sheet)
    }
}

/// Frames of a size at a rate, of which a share is native.
struct Mixed<'a> {
    scene: &'a Scene,
    frame: usize,
    /// The native share, 0 to 1.
    native: f64,
    time: Duration,
}

impl Mixed<'_> {
    /// The outcome of both parts together.
    fn offer(&self, per_second: f64) -> Result<Outcome> {
        let ends = &self.scene.ends;
        let translated = ends.stream(self.frame)?;
        let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let native = UdpStream {
            ends: Ends { ..translated.ends },
            source: SocketAddr::new(any, PORTS.0),
            target: SocketAddr::new(FAR6.into(), PORTS.1),
            listens: SocketAddr::new(any, PORTS.1),
            ..translated
        };
        let (time, share) = (self.time, self.native);
        let part = move |stream: UdpStream<'_>, share: f64| {
            stream.run(at((per_second * share).max(1.0)), Until::Time(time))
        };
        std::thread::scope(|scope| {
            let native = scope.spawn(move || part(native, share));
            let mut all = part(translated, 1.0 - share)?;
            let panicked = |_| Err(Failure::Unexpected("a thread of a load panicked".to_owned()));
            all.add(&native.join().unwrap_or_else(panicked)?);
            Ok(all)
        })
    }

    /// The search for the highest rate with little loss, and a row.
    fn throughput(&mut self, ceiling: f64, (precision, loss): (f64, f64), sheet: &mut Sheet) -> Result<()> {
        let rates = (LEAST, ceiling.max(LEAST));
        let search = Search { rates, passed: 0.0, loss, precision, repeats: 3 };
        let found: Found = search.run(self)?;
        let scene = self.scene;
        let measured = measure(scene.running.as_ref(), (scene.ends.cores, Reading::Ticks), sheet, || {
            self.offer(found.rate.max(LEAST))
        })?;
        noted(&measured, self.time, sheet);
        sheet.value("throughput-given", found.rate, Unit::PerSecond);
        sheet.value("ceiling", ceiling, Unit::PerSecond);
        sheet.value("trials", found.trials.len() as f64, Unit::Count);
        sheet.keep("trials.txt", &trials("given loss", &found))
    }
}

impl Trial for Mixed<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let device = self.scene.ends.cores.device;
        let before = core_time(device)?;
        let outcome = self.offer(per_second)?;
        Ok(seen(&outcome, core_time(device)?.stolen_since(&before)))
    }
}
