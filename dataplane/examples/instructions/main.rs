//! Runs one case for a program that counts instructions: `instructions CASE BATCH PACKETS`.
//!
//! Only what `drive` calls is to be counted: `process` for each batch, and `tick`. All sessions are open before it is called. `compare` runs
//! every case under callgrind, for one revision or two.
#![allow(clippy::unwrap_used, reason = "a tool for developers may stop at the first surprise")]

mod cases;
mod packets;

use cases::{Case, NAMES};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::{Frame, Instant, Offload, Outbox};

/// Frames that are filled before the engine is called: the largest batch.
const RUN: usize = 256;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, batch, packets] = arguments.as_slice() else {
        NAMES.iter().for_each(|name| println!("{name}"));
        return;
    };
    let (Some(case), Ok(batch), Ok(packets)) = (Case::named(name), batch.parse(), packets.parse()) else {
        eprintln!("usage: instructions CASE BATCH PACKETS; without arguments: the names of the cases");
        std::process::exit(2);
    };
    run(case, batch, packets);
}

/// Two passes over all flows that are not counted, then so many packets.
fn run(case: Case, batch: usize, packets: usize) {
    let Case { mut engine, packets: flows, length } = case;
    let mut out = Outbox::new(RUN);
    let mut frames: Vec<Frame> = (0..RUN).map(|_| Frame::with_capacity(2_048)).collect();
    let mut now = Instant::from_secs(1_001);
    // 401 and the number of flows have no common divisor: every flow has its turn, and neighbours do not follow each other.
    let mut flow = (0..flows.len()).cycle().step_by(401);
    let warming = 2 * flows.len().next_multiple_of(RUN);
    for from in (0..warming + packets).step_by(RUN) {
        let frames = &mut frames[..RUN.min(warming + packets - from)];
        for frame in frames.iter_mut() {
            frame.fill(&flows[flow.next().unwrap()], Offload::default());
        }
        now.0 += 20_000;
        if from < warming {
            engine.process(frames, now, &mut out);
            engine.tick(now, &mut out);
        } else {
            drive(&mut engine, frames, batch, now, &mut out);
        }
        out.clear();
        for frame in frames {
            assert!(frame.verdict.leaves(), "not forwarded: {:?}", frame.verdict);
            assert_eq!(frame.len(), length, "octets of a packet after translation");
        }
    }
}

/// What is counted.
#[inline(never)]
fn drive(engine: &mut Engine, frames: &mut [Frame], batch: usize, now: Instant, out: &mut Outbox) {
    for frames in frames.chunks_mut(batch) {
        engine.process(frames, now, out);
        engine.tick(now, out);
    }
}
