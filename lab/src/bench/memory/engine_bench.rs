//! An engine, with its input frames and its clock.

use super::cpu_time::undisturbed;
use super::yardstick::{Round, Yardstick};
use crate::failure::{Failure, Result};
use crate::interrupt;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::{DropReason, Frame, Instant, Offload, Outbox, Verdict};
use std::time::Duration;

/// Frames that are filled before the clock runs: the largest batch.
pub const RUN: usize = 256;

/// Runs between two measurements of the yardsticks.
const RUNS: usize = 4;

/// An engine under test.
pub struct EngineBench {
    engine: Engine,
    outbox: Outbox,
    frames: Vec<Frame>,
    now: Instant,
}

impl EngineBench {
    /// An engine in a world whose time begins.
    pub fn new(engine: Engine) -> Self {
        let frames = (0..RUN).map(|_| Frame::with_capacity(2_048)).collect();
        Self { engine, outbox: Outbox::new(RUN), frames, now: Instant::from_secs(1_000) }
    }

    /// The engine.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Advances the clock by this time, without work.
    pub fn advance(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// One call of the engine that ends what has expired; how long it took, and whether it had the CPU all the while.
    pub fn tick(&mut self) -> Result<(Duration, bool)> {
        self.now = self.now + Duration::from_millis(1);
        let taken = undisturbed(|| self.engine.tick(self.now, &mut self.outbox))?;
        self.outbox.clear();
        Ok(taken)
    }

    /// The time of the engine's world.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Advances the clock by this time without packets, and expires what is due.
    pub fn rest(&mut self, time: Duration, ended: impl Fn(&mut Engine) -> bool) -> Result<()> {
        self.now = self.now + time;
        while !ended(&mut self.engine) {
            interrupt::check()?;
            self.now = self.now + Duration::from_millis(1);
            self.engine.tick(self.now, &mut self.outbox);
            self.outbox.clear();
        }
        Ok(())
    }

    /// One packet for each number of `order`, made by `write`, in batches of 256, whose time is not taken. Each must be forwarded; `inspect` sees
    /// what it became.
    pub fn pass<const ROOM: usize>(
        &mut self,
        order: &[u32],
        write: impl Fn(u32, &mut [u8; ROOM]) -> usize,
        mut inspect: impl FnMut(u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        order.chunks(RUN).try_for_each(|numbers| {
            self.run(numbers, RUN, &write, &mut |number, frame| {
                forwarded(number, frame)?;
                inspect(number, frame.bytes())
            })
            .map(drop)
        })
    }

    /// The same in batches of `batch`, with a look at the clock around the engine's work on each run of 256, and at the yardsticks in between. Runs during
    /// which the kernel preempted this thread are not counted.
    pub fn measure<const ROOM: usize>(
        &mut self,
        order: &[u32],
        batch: usize,
        write: impl Fn(u32, &mut [u8; ROOM]) -> usize,
        yardstick: &mut Yardstick,
    ) -> Result<Round> {
        self.measure_checked(order, batch, write, yardstick, forwarded)
    }

    /// The same, of packets that must all be dropped for this reason.
    pub fn measure_dropped<const ROOM: usize>(
        &mut self,
        order: &[u32],
        reason: DropReason,
        write: impl Fn(u32, &mut [u8; ROOM]) -> usize,
        yardstick: &mut Yardstick,
    ) -> Result<Round> {
        self.measure_checked(order, RUN, write, yardstick, |number, frame| match frame.verdict {
            Verdict::Dropped(why) if why == reason => Ok(()),
            verdict => Err(Failure::Unexpected(format!("packet {number} was not dropped: {verdict:?}"))),
        })
    }

    fn measure_checked<const ROOM: usize>(
        &mut self,
        order: &[u32],
        batch: usize,
        write: impl Fn(u32, &mut [u8; ROOM]) -> usize,
        yardstick: &mut Yardstick,
        mut check: impl FnMut(u32, &Frame) -> Result<()>,
    ) -> Result<Round> {
        let mut round = Round::default();
        for numbers in order.chunks(RUN * RUNS) {
            let (mut spent, mut counted) = (Duration::ZERO, 0);
            for numbers in numbers.chunks(RUN) {
                if let (elapsed, true) = self.run(numbers, batch, &write, &mut check)? {
                    spent += elapsed;
                    counted += numbers.len();
                }
            }
            round.push(spent, counted, yardstick)?;
        }
        match round.is_empty() {
            true => Err(Failure::Unexpected("the CPU is so busy that not one run was left alone".to_owned())),
            false => Ok(round),
        }
    }

    /// One run: how long the engine took, and whether it had the CPU all the while.
    fn run<const ROOM: usize>(
        &mut self,
        numbers: &[u32],
        batch: usize,
        write: &impl Fn(u32, &mut [u8; ROOM]) -> usize,
        inspect: &mut impl FnMut(u32, &Frame) -> Result<()>,
    ) -> Result<(Duration, bool)> {
        interrupt::check()?;
        let mut octets = [0; ROOM];
        let frames = &mut self.frames[..numbers.len()];
        for (number, frame) in numbers.iter().zip(frames.iter_mut()) {
            let length = write(*number, &mut octets);
            frame.fill(&octets[..length], Offload::default());
        }
        self.now = self.now + Duration::from_micros(20);
        let taken = undisturbed(|| {
            for frames in frames.chunks_mut(batch) {
                self.engine.process(frames, self.now, &mut self.outbox);
                self.engine.tick(self.now, &mut self.outbox);
            }
        })?;
        self.outbox.clear();
        for (number, frame) in numbers.iter().zip(&self.frames) {
            inspect(*number, frame)?;
        }
        Ok(taken)
    }
}

fn forwarded(number: u32, frame: &Frame) -> Result<()> {
    if frame.verdict.leaves() {
        return Ok(());
    }
    Err(Failure::Unexpected(format!("packet {number} was not forwarded: {:?}", frame.verdict)))
}

/// The numbers below `count` in an order that no prefetcher guesses, the same each time; another one for each `which`.
pub fn shuffled(count: u32, which: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut state = (which + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for at in (1..numbers.len()).rev() {
        // xorshift64: good enough to scatter, and needs nothing.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        numbers.swap(at, (state % (at as u64 + 1)) as usize);
    }
    numbers
}

/// What a packet should have become, and did not.
pub fn wrong(number: u32, octets: &[u8]) -> Failure {
    Failure::Unexpected(format!("packet {number} became what it should not: {octets:02x?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffled_list_holds_every_number_once_and_not_in_order() {
        let mut numbers = shuffled(1_000, 0);
        assert!(numbers.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < 20);
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..1_000));
    }

    #[test]
    fn another_shuffled_list_does_not_follow_the_first() {
        let mut after = vec![0; 1_000];
        shuffled(1_000, 0).windows(2).for_each(|pair| after[pair[0] as usize] = pair[1]);
        let second = shuffled(1_000, 1);
        assert!(second.windows(2).filter(|pair| after[pair[0] as usize] == pair[1]).count() < 20);
    }
}
