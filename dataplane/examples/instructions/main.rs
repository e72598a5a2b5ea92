//! Runs one case, for a program that counts instructions or with a look at the clock: `instructions CASE BATCH PACKETS [time]`.
//!
//! Only what `drive` calls counts: `process` for each batch, and `tick`. All sessions are open before it is called. `compare` runs every case
//! under callgrind, or by the clock, for one revision or two.
#![allow(clippy::unwrap_used, reason = "a tool for developers may stop at the first surprise")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it reads the clock if asked to")]

mod cases;
mod packets;

use cases::{COUNTED, Case, TIMED};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::{Frame, Instant, Offload, Outbox};

/// Frames that are filled before the engine is called: the largest batch.
const RUN: usize = 256;
/// Step from one packet's flow to the next one's: no divisor of any number of flows, so that each has its turn, and neighbours do not follow
/// each other.
const STRIDE: usize = 618_401;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, batch, packets, by_clock) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    {
        [name, batch, packets] => (name, batch, packets, false),
        [name, batch, packets, "time"] => (name, batch, packets, true),
        ["time"] => return COUNTED.iter().chain(&TIMED).for_each(|name| println!("{name}")),
        _ => return COUNTED.iter().for_each(|name| println!("{name}")),
    };
    let (Some(case), Ok(batch), Ok(packets)) = (Case::named(name), batch.parse(), packets.parse()) else {
        eprintln!("usage: instructions CASE BATCH PACKETS [time]; without arguments: the names of the cases");
        std::process::exit(2);
    };
    let times = run(case, batch, packets);
    if by_clock {
        println!("{:.3}", median(times));
    }
}

/// Sends what warms, which does not count, then this number of packets; nanoseconds of a packet in each run of 256.
fn run(case: Case, batch: usize, packets: usize) -> Vec<f64> {
    let Case { mut engine, packets: flows, length, warming } = case;
    let mut out = Outbox::new(RUN);
    let mut frames: Vec<Frame> = (0..RUN).map(|_| Frame::with_capacity(2_048)).collect();
    let mut now = Instant::from_secs(1_001);
    let mut flow = 0;
    let mut times = Vec::new();
    for from in (0..warming + packets).step_by(RUN) {
        let frames = &mut frames[..RUN.min(warming + packets - from)];
        for frame in frames.iter_mut() {
            frame.fill(&flows[flow], Offload::default());
            flow = (flow + STRIDE) % flows.len();
        }
        now.0 += 20_000;
        if from < warming {
            engine.process(frames, now, &mut out);
            engine.tick(now, &mut out);
        } else {
            let start = std::time::Instant::now();
            drive(&mut engine, frames, batch, now, &mut out);
            times.push(start.elapsed().as_nanos() as f64 / frames.len() as f64);
        }
        out.clear();
        for frame in frames {
            assert_eq!(frame.verdict.leaves(), length.is_some(), "not as expected: {:?}", frame.verdict);
            let octets = length.unwrap_or(frame.len());
            assert_eq!(frame.len(), octets, "octets of a packet after translation");
        }
    }
    times
}

/// What is counted.
#[inline(never)]
fn drive(engine: &mut Engine, frames: &mut [Frame], batch: usize, now: Instant, out: &mut Outbox) {
    for frames in frames.chunks_mut(batch) {
        engine.process(frames, now, out);
        engine.tick(now, out);
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    f64::midpoint(figures[(figures.len() - 1) / 2], figures[figures.len() / 2])
}
