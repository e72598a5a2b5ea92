//! One measurement: a heavy subscriber's load, and at the same time a light one's established flows and new connections.

use super::fairness::fairness;
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{
    Ends, Gaps, Load as _, Outcome, Pace, TransactionKind, Transactions, Trip, UdpStream, Until,
};
use crate::measure::Reading;
use crate::results::{Cell, Unit};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Flows of the heavy subscriber, and of the light one.
const FLOWS: [u16; 2] = [16, 4];
/// Packets a second of the light subscriber's established flows.
const LIGHT: f64 = 500.0;
/// New connections a second of the light subscriber.
const NEW: f64 = 20.0;
/// How long the device's capacity is measured, each of two times.
const CALIBRATION: Duration = Duration::from_millis(500);
/// Ports of the server, and the first one of each subscriber's flows: a flow of the next row is the same one.
const PORTS: [u16; 3] = [7_000, 7_100, 7_200];

/// How long a row is loaded: ten seconds at scale 1.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((10.0 * scale).clamp(0.5, 10.0))
}

/// What the light subscriber has seen.
struct Light {
    established: Outcome,
    new: Outcome,
}

/// A device under load.
pub struct Loaded {
    scene: Scene,
    /// Packets a second that it forwards when more is offered.
    capacity: f64,
    time: Duration,
}

impl Loaded {
    /// Builds the network, starts the device and measures its capacity.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let mut loaded = Self { scene: Scene::build(line)?, capacity: 0.0, time: time(line.asked.scale) };
        loaded.warm_up()?;
        for _ in 0..2 {
            let before = loaded.scene.forwarded()?;
            let outcome = loaded.heavy(Pace::AsFastAsPossible, CALIBRATION)?;
            let rate = (loaded.scene.forwarded()? - before) as f64 / outcome.took.as_secs_f64().max(1e-9);
            loaded.capacity = loaded.capacity.max(rate);
        }
        Ok(loaded)
    }

    fn stream(&self, heavy: bool) -> Result<UdpStream<'_>> {
        let Scene { network, cores, target, listens, any, .. } = &self.scene;
        let (client, at, trip) = if heavy { ("heavy", 0, Trip::OneWay) } else { ("light", 1, Trip::Round) };
        let ends =
            Ends { client: network.host(client)?, server: network.host("server")?, core: cores.tester };
        Ok(UdpStream {
            ends,
            source: SocketAddr::new(*any, PORTS[at] + 10_000),
            target: SocketAddr::new(*target, PORTS[at]),
            listens: SocketAddr::new(*listens, PORTS[at]),
            flows: FLOWS[at],
            payload: 16,
            trip,
        })
    }

    fn heavy(&self, pace: Pace, time: Duration) -> Result<Outcome> {
        self.stream(true)?.run(pace, Until::Time(time))
    }

    fn connections(&self) -> Result<Transactions<'_>> {
        let Scene { network, cores, target, listens, .. } = &self.scene;
        let ends =
            Ends { client: network.host("light")?, server: network.host("server")?, core: cores.tester };
        Ok(Transactions {
            ends,
            kind: TransactionKind::TcpCrr,
            target: SocketAddr::new(*target, PORTS[2]),
            listens: SocketAddr::new(*listens, PORTS[2]),
            request: 1,
            response: 1,
            workers: 8,
        })
    }

    /// Neighbours are found, and the flows established.
    fn warm_up(&self) -> Result<()> {
        interrupt::wait_until(Duration::from_secs(10), "an answer on every flow", || {
            let few = Pace::Open { per_second: 1_000.0, gaps: Gaps::Even };
            let heavy = self.stream(true)?.run(few, Until::Count(u64::from(2 * FLOWS[0])))?;
            let light = self.stream(false)?.run(few, Until::Count(u64::from(2 * FLOWS[1])))?;
            Ok(heavy.lost + light.lost + self.connections()?.run(few, Until::Count(1))?.lost == 0)
        })
    }

    /// The heavy subscriber's outcome, and the light one's.
    fn load(&self, per_second: f64) -> Result<(Outcome, Light)> {
        let until = Until::Time(self.time);
        let at = |per_second| Pace::Open { per_second, gaps: Gaps::Even };
        let (light, connections) = (self.stream(false)?, self.connections()?);
        std::thread::scope(|scope| {
            let established = scope.spawn(move || light.run(at(LIGHT), until));
            let new = scope.spawn(move || connections.run(at(NEW), until));
            let heavy = self.heavy(at(per_second), self.time);
            let panicked = |_| Err(Failure::Unexpected("a thread of a load panicked".to_owned()));
            let established = established.join().unwrap_or_else(panicked);
            let new = new.join().unwrap_or_else(panicked);
            Ok((heavy?, Light { established: established?, new: new? }))
        })
    }
}

impl Stage for Loaded {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let asked = cell.at("load") * self.capacity;
        let seen = Mutex::new(None);
        let before = self.scene.forwarded()?;
        let running = self.scene.running.as_ref();
        let measured = measure(running, (self.scene.cores, Reading::Ticks), sheet, || {
            let (heavy, light) = self.load(asked)?;
            let forwarded = self.scene.forwarded()?;
            *seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((light, forwarded));
            Ok(heavy)
        })?;
        let seen = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some((light, forwarded)) = seen else {
            return Err(Failure::Unexpected("the light subscriber has seen nothing".to_owned()));
        };
        let heavy = &measured.outcome;
        let seconds = heavy.took.as_secs_f64().max(1e-9);
        let all = (forwarded - before) as f64;
        // The light one's packets to the server; a connection has four or five.
        let others = light.established.sent as f64 + 5.0 * light.new.sent as f64;
        let goodput = (all - others).max(0.0) / seconds;
        let offered = heavy.sent as f64 / seconds;
        sheet.value("capacity", self.capacity, Unit::PerSecond);
        sheet.value("offered", offered, Unit::PerSecond);
        sheet.value("goodput", goodput, Unit::PerSecond);
        sheet.value("of-capacity", goodput / self.capacity.max(1.0), Unit::Share);
        sheet.value("arrived", heavy.per_second(), Unit::PerSecond);
        sheet.value("heavy-loss", heavy.loss(), Unit::Lost);
        sheet.times("established", &light.established.latency)?;
        sheet.value("established-loss", light.established.loss(), Unit::Lost);
        sheet.times("connection", &light.new.setup)?;
        sheet.value("new-flows", light.new.per_second(), Unit::PerSecond);
        sheet.value("new-loss", light.new.loss(), Unit::Lost);
        let light_got = light.established.answered as f64 / seconds;
        let light_asked = light.established.sent as f64 / seconds;
        let fair = fairness(self.capacity, &[offered, light_asked], &[goodput, light_got]);
        sheet.value("fairness", fair, Unit::Share);
        sheet.value("cpu-per-packet", measured.nanoseconds_each(all), Unit::NanosecondsPerPacket);
        Ok(())
    }
}
