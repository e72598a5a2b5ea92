//! One row of the small packets' table: the sender, the packets, the scene, and the measurement.

use super::content::Content;
use super::scene::Scene;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Answer, Frames, Pattern, Sink, SinkCounts, thread_cpu};
use crate::probe::cpu::{pin_thread, process_cpu, receiving_cpu};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Maximum packets in flight where none may be lost: a TUN device's queue holds 500.
const WINDOW: u32 = 256;
/// The share that must arrive where nothing is sent faster than it is carried.
const LEAST: f64 = 0.99;
/// How long to wait for a window of packets; missing ones count as lost.
const PATIENCE: Duration = Duration::from_millis(20);

/// Frames of one kind through a scene.
pub struct Column {
    /// Its name in the tables.
    pub name: &'static str,
    /// The network.
    pub scene: Rc<Scene>,
    /// The host that sends.
    from: &'static str,
    frames: Frames,
    flows: u32,
    arrives: Content,
}

/// What was measured once.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Packets that arrived in a second.
    pub per_second: f64,
    /// CPU time of all that had to do with a packet that arrived, in nanoseconds: sender, kernel and gateway.
    pub ns: f64,
    /// The part of it that the gateway's process spent.
    pub process_ns: f64,
}

impl Column {
    /// Makes the sender ready. `pattern` gets the link-layer address that the frames go to; `arrives` is what they become.
    pub fn new(
        name: &'static str,
        scene: Rc<Scene>,
        from: &'static str,
        pattern: impl FnOnce([u8; 6]) -> Pattern,
        arrives: Content,
    ) -> Result<Self> {
        let pattern = pattern(scene.door(from));
        let frames = Frames::load(&scene.object, &pattern, scene.network.host(from)?, "up0")?;
        Ok(Self { name, scene, from, frames, flows: pattern.flows, arrives })
    }

    /// Sets the destination of a sender of replies.
    pub fn answer(&mut self, answers: &[Answer]) -> Result<()> {
        self.frames.answer(answers)
    }

    /// Sends every flow several times, none faster than it is carried, until the gateway's process has next to nothing to do with them, or
    /// `passes` times at most.
    ///
    /// # Errors
    /// More than one in a hundred was lost in the last pass, or what arrived is not what should have.
    pub fn settle(&mut self, passes: u32) -> Result<()> {
        let mut share = 0.0;
        for _ in 0..passes {
            let before = self.process_cpu()?;
            share = self.carry(self.flows.max(WINDOW))?.0 as f64 / f64::from(self.flows.max(WINDOW));
            let spent = self.process_cpu()?.saturating_sub(before);
            if spent.as_nanos() < u128::from(self.flows.max(WINDOW)) * 50 && share > LEAST {
                break;
            }
        }
        if share > LEAST {
            self.verify()
        } else {
            let share = share * 100.0;
            Err(Failure::Unexpected(format!("{}: only {share:.1} % arrived, however slowly sent", self.name)))
        }
    }

    /// Checks some of the frames that arrived.
    pub fn verify(&self) -> Result<()> {
        let samples = self.sink().samples()?;
        if samples.is_empty() {
            return Err(Failure::Unexpected(format!("{}: no packet arrived", self.name)));
        }
        samples.iter().try_for_each(|frame| {
            let wrong = |why| Failure::Unexpected(format!("{}: {why}: {frame:02x?}", self.name));
            self.arrives.check(frame).map_err(wrong)
        })
    }

    /// Sends packets, at most [`WINDOW`] in flight. Returns how many arrived, and the time that took.
    pub fn carry(&mut self, count: u32) -> Result<(u64, Duration)> {
        let Self { scene, frames, from, .. } = self;
        let host = scene.network.host(from)?;
        let scene: &Scene = scene;
        let sink = if *from == "client" { &scene.server } else { &scene.client };
        host.enter(|| {
            pin_thread(0)?;
            let (begin, start) = (sink.seen()?.packets, Instant::now());
            let mut sent = 0;
            while sent < count {
                interrupt::check()?;
                let before = sink.seen()?.packets;
                let some = WINDOW.min(count - sent);
                frames.send(some)?;
                sent += some;
                let waiting = Instant::now();
                while sink.seen()?.packets < before + u64::from(some) && waiting.elapsed() < PATIENCE {
                    std::thread::yield_now();
                }
            }
            Ok((sink.seen()?.packets - begin, start.elapsed()))
        })?
    }

    /// Sends this number of packets a second for this time; what the machine's pauses delayed is made good, [`WINDOW`] under way at most.
    pub fn trickle(&mut self, per_second: u32, time: Duration) -> Result<()> {
        let (start, mut sent) = (Instant::now(), 0);
        while start.elapsed() < time {
            let due = (start.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
            self.carry(due - sent)?;
            sent = due;
            interrupt::pause(PATIENCE)?;
        }
        Ok(())
    }

    /// Sends as fast as possible for this time.
    pub fn measure(&self, time: Duration) -> Result<Rate> {
        self.flood(time / 10)?;
        std::thread::sleep(Duration::from_millis(5));
        let (before, process, receiving) = (self.seen()?, self.process_cpu()?, receiving_cpu()?);
        let (took, sender) = self.flood(time)?;
        let arrived = self.seen()?.packets - before.packets;
        if arrived == 0 {
            return Err(Failure::Unexpected(format!("{}: no packet arrived", self.name)));
        }
        let process = self.process_cpu()?.saturating_sub(process);
        let spent = sender + process + receiving_cpu()?.saturating_sub(receiving);
        let each = |time: Duration| time.as_nanos() as f64 / arrived as f64;
        let per_second = arrived as f64 / took.as_secs_f64();
        self.verify()?;
        Ok(Rate { per_second, ns: each(spent), process_ns: each(process) })
    }

    fn flood(&self, time: Duration) -> Result<(Duration, Duration)> {
        let frames = &self.frames;
        self.scene.network.host(self.from)?.enter(|| {
            pin_thread(0)?;
            let before = thread_cpu();
            let took = frames.flood(time)?;
            Ok((took, thread_cpu().saturating_sub(before)))
        })?
    }

    /// CPU time that the gateway's process has spent; none if it is the kernel.
    pub fn process_cpu(&self) -> Result<Duration> {
        self.scene.process.map_or(Ok(Duration::ZERO), process_cpu)
    }

    /// What arrived at the other end.
    pub fn seen(&self) -> Result<SinkCounts> {
        self.sink().seen()
    }

    fn sink(&self) -> &Sink {
        if self.from == "client" { &self.scene.server } else { &self.scene.client }
    }
}
