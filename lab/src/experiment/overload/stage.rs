//! One measurement: a heavy subscriber's load, and at the same time a light one's established flows and new connections.

use super::fairness::fairness;
use super::heavy::Heavy;
use super::topology::Scene;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Ends, Gaps, Load, Outcome, Pace, TransactionKind, Transactions, Trip, UdpStream, Until};
use crate::measure::Reading;
use crate::results::{Cell, Unit};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Flows of the light subscriber.
const FLOWS: u16 = 4;
/// Packets a second of the light subscriber's established flows.
const LIGHT: f64 = 500.0;
/// New connections a second of the light subscriber.
const NEW: f64 = 20.0;
/// How long the device's capacity is measured each time.
const CALIBRATION: Duration = Duration::from_millis(400);
/// What is offered then, in multiples of what the device forwarded before: under a flood it may forward less than it could.
const ABOVE: f64 = 1.5;
/// A device that forwards this share of what it is offered may be able to forward more.
const ALL: f64 = 0.95;
/// The fewest and the most rates after the flood.
const STEPS: std::ops::RangeInclusive<usize> = 2..=10;
/// Ports of the server for the light subscriber's flows and connections.
const PORTS: [u16; 2] = [7_100, 7_200];
/// A tester that offers less than this share of what is requested is the limit.
const ENOUGH: f64 = 0.9;
/// Above its capacity, a device that loses more than this share of what is offered is at its limit.
const DROPPED: f64 = 0.1;

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
    // The device's end needs its network, and ends first.
    scene: Scene,
    heavy: Heavy,
    /// Packets a second that it forwards when more is offered.
    capacity: f64,
    /// Packets a second that the heavy subscriber can send.
    most: f64,
    time: Duration,
}

impl Loaded {
    /// Builds the network, starts the device and measures its capacity.
    pub fn build(series: &str, line: &Line<'_>) -> Result<Self> {
        let scene = Scene::build(series, line)?;
        let heavy = Heavy::prepare(&scene, line.device)?;
        let mut loaded = Self { scene, heavy, capacity: 0.0, most: 0.0, time: time(line.asked.scale) };
        loaded.heavy.warm_up(&loaded.scene)?;
        loaded.warm_up()?;
        loaded.most = loaded.heavy.most(&loaded.scene)?;
        (loaded.capacity, loaded.most) = capacity(loaded.most, |rate| loaded.forwarded_at(rate))?;
        Ok(loaded)
    }

    /// What is offered at this rate, or as fast as possible, and what the device forwards of it, both in a second.
    fn forwarded_at(&self, rate: f64) -> Result<(f64, f64)> {
        let pace = if rate.is_finite() { at(rate.max(1.0)) } else { Pace::AsFastAsPossible };
        self.heavy.with(&self.scene, |load| {
            let before = self.scene.forwarded()?;
            let outcome = load.run(pace, Until::Time(CALIBRATION))?;
            let seconds = outcome.took.as_secs_f64().max(1e-9);
            Ok((outcome.sent as f64 / seconds, (self.scene.forwarded()? - before) as f64 / seconds))
        })
    }

    /// The light subscriber's established flows.
    fn stream(&self) -> Result<UdpStream<'_>> {
        let Scene { network, cores, target, listens, any, .. } = &self.scene;
        let ends =
            Ends { client: network.host("light")?, server: network.host("server")?, core: cores.tester };
        Ok(UdpStream {
            ends,
            source: SocketAddr::new(*any, PORTS[0] + 10_000),
            target: SocketAddr::new(*target, PORTS[0]),
            listens: SocketAddr::new(*listens, PORTS[0]),
            flows: FLOWS,
            payload: 16,
            trip: Trip::Round,
        })
    }

    fn connections(&self) -> Result<Transactions<'_>> {
        let Scene { network, cores, target, listens, .. } = &self.scene;
        let ends =
            Ends { client: network.host("light")?, server: network.host("server")?, core: cores.tester };
        Ok(Transactions {
            ends,
            kind: TransactionKind::TcpCrr,
            target: SocketAddr::new(*target, PORTS[1]),
            listens: SocketAddr::new(*listens, PORTS[1]),
            request: 1,
            response: 1,
            workers: 8,
        })
    }

    /// Neighbours are found, and the flows established.
    fn warm_up(&self) -> Result<()> {
        interrupt::wait_until(Duration::from_secs(10), "an answer on every flow", || {
            let light = self.stream()?.run(at(1_000.0), Until::Count(u64::from(2 * FLOWS)))?;
            Ok(light.lost + self.connections()?.run(at(1_000.0), Until::Count(1))?.lost == 0)
        })
    }

    /// The heavy subscriber's outcome, what the device has forwarded at its end, and what the light one has seen.
    fn load(&self, heavy: &(dyn Load + Sync), pace: Pace) -> Result<(Outcome, u64, Light)> {
        let until = Until::Time(self.time);
        let (light, connections) = (self.stream()?, self.connections()?);
        std::thread::scope(|scope| {
            let established = scope.spawn(move || light.run(at(LIGHT), until));
            let new = scope.spawn(move || connections.run(at(NEW), until));
            let heavy = heavy.run(pace, until);
            // What waits in the device's queue now is forwarded later.
            let forwarded = self.scene.forwarded();
            let panicked = |_| Err(Failure::Unexpected("a thread of a load panicked".to_owned()));
            let established = established.join().unwrap_or_else(panicked);
            let new = new.join().unwrap_or_else(panicked);
            Ok((heavy?, forwarded?, Light { established: established?, new: new? }))
        })
    }
}

/// The most that a device forwards in a second, and that the tester sends, by what is offered and forwarded at a rate. A flood comes first; the rate rises
/// while the device forwards nearly all of it.
fn capacity(most: f64, mut forwarded_at: impl FnMut(f64) -> Result<(f64, f64)>) -> Result<(f64, f64)> {
    let (offered, mut capacity) = forwarded_at(most)?;
    // What sockets send at most is known now.
    let most = if most.is_finite() { most } else { offered };
    // As many steps reach what the tester sends at most.
    let least = most / ABOVE.powi(*STEPS.end() as i32);
    for step in 1..=*STEPS.end() {
        let rate = (ABOVE * capacity.max(least).max(1.0)).min(most);
        let (offered, forwarded) = forwarded_at(rate)?;
        capacity = capacity.max(forwarded);
        let has_more = forwarded >= ALL * offered && rate < most;
        if step >= *STEPS.start() && !has_more {
            break;
        }
    }
    Ok((capacity, most))
}

/// An open loop with even gaps.
const fn at(per_second: f64) -> Pace {
    Pace::Open { per_second, gaps: Gaps::Even }
}

/// Why a row does not show what a load does, if the tester did not offer it.
fn fell_short(offered: f64, load: f64, capacity: f64) -> Option<String> {
    let reached = offered / capacity.max(1.0);
    (reached < ENOUGH * load)
        .then(|| format!("the tester offered {reached:.2} × the device's capacity in place of {load} ×"))
}

/// Whether a device was at its limit, by what it did not forward of what the tester offered, wherever its time went. Below its capacity the light
/// subscriber's packets, whose number is an estimate, are a large part.
fn dropped(load: f64, offered: f64, goodput: f64) -> bool {
    load > 1.0 && goodput < (1.0 - DROPPED) * offered
}

impl Stage for Loaded {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let asked = (cell.at("load") * self.capacity).min(self.most);
        let seen = Mutex::new(None);
        let before = self.scene.forwarded()?;
        let cores = self.scene.cores;
        let measured = self.heavy.with(&self.scene, |heavy| {
            self.heavy.watched(self.scene.running.as_ref(), |running| {
                measure(running, (cores, Reading::Ticks), sheet, || {
                    let (heavy, forwarded, light) = self.load(heavy, at(asked.max(1.0)))?;
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((light, forwarded));
                    Ok(heavy)
                })
            })
        })?;
        let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
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
        // For statements, which a report makes without the tester's cost, too.
        sheet.value("core-busy", sheet.cost().device_core_busy, Unit::Share);
        sheet.value("offered", offered, Unit::PerSecond);
        sheet.value("goodput", goodput, Unit::PerSecond);
        sheet.value("of-capacity", goodput / self.capacity.max(1.0), Unit::Share);
        sheet.value("offered-load", offered / self.capacity.max(1.0), Unit::Share);
        sheet.value("heavy-loss", (1.0 - goodput / offered.max(1.0)).max(0.0), Unit::Lost);
        match fell_short(offered, cell.at("load"), self.capacity) {
            Some(why) => sheet.limited_by_tester(why),
            None if dropped(cell.at("load"), offered, goodput) => sheet.device_has_dropped(),
            None => {}
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_load_was_not_offered_says_what_was() {
        let why = fell_short(150_000.0, 10.0, 100_000.0).unwrap();
        assert_eq!(why, "the tester offered 1.50 × the device's capacity in place of 10 ×");
        assert_eq!(fell_short(195_000.0, 2.0, 100_000.0), None);
        assert!(fell_short(0.0, 0.1, 0.0).is_some());
    }

    #[test]
    fn the_capacity_is_found_though_a_flood_takes_most_of_it() {
        let mut asked = Vec::new();
        // It forwards 18,000 a second, and a fifth of it under a flood; the tester sends a million.
        let mut device = |rate: f64| {
            let offered = rate.min(1e6);
            asked.push(offered);
            let forwarded = if offered > 30_000.0 { 3_600.0 } else { offered.min(18_000.0) };
            Ok((offered, forwarded))
        };
        assert_eq!(capacity(f64::INFINITY, &mut device).unwrap(), (18_000.0, 1e6));
        assert!(asked.len() <= 1 + STEPS.end(), "{asked:?}");
        // One that keeps its best is asked twice more.
        let mut times = 0;
        let steady = |rate: f64| {
            times += 1;
            Ok((rate.min(1e6), rate.min(50_000.0)))
        };
        assert_eq!(capacity(f64::INFINITY, steady).unwrap(), (50_000.0, 1e6));
        assert_eq!(times, 3);
        // The tester is slower than the device: its rate is the most that is known.
        let mut times = 0;
        let faster = |rate: f64| {
            times += 1;
            Ok((rate.min(1_000.0), rate.min(1_000.0)))
        };
        assert_eq!(capacity(1_000.0, faster).unwrap(), (1_000.0, 1_000.0));
        assert_eq!(times, 3);
        // It forwards next to nothing under a flood.
        let livelocked = |rate: f64| {
            let offered = rate.min(1e6);
            Ok((offered, if offered > 30_000.0 { 100.0 } else { offered.min(18_000.0) }))
        };
        assert_eq!(capacity(f64::INFINITY, livelocked).unwrap(), (18_000.0, 1e6));
        // The best of all counts.
        let mut came = [50_000.0, 60_000.0, 45_000.0].into_iter();
        let varying = |rate: f64| Ok((rate.min(1e6), came.next().unwrap_or(45_000.0)));
        assert_eq!(capacity(f64::INFINITY, varying).unwrap().0, 60_000.0);
        let dead = |rate: f64| Ok((rate.min(1_000.0), 0.0));
        assert_eq!(capacity(f64::INFINITY, dead).unwrap(), (0.0, 1_000.0));
        assert!(capacity(1.0, |_| Err(Failure::Unexpected(String::new()))).is_err());
    }

    #[test]
    fn a_device_that_loses_more_than_a_tenth_is_at_its_limit() {
        assert!(dropped(10.0, 1_148_824.0, 76_431.0) && dropped(1.2, 100.0, 89.0));
        assert!(!dropped(1.2, 100.0, 91.0) && !dropped(2.0, 0.0, 0.0));
        assert!(!dropped(0.1, 100.0, 50.0), "below its capacity");
    }
}
