//! The benchmarks of RFC 8219 for translators: throughput by binary search, frame loss rate, latency and delay variation.

mod burst;
mod concurrent;
mod cores;
mod delay;
mod dns64;
mod double;
mod dual;
mod findings;
mod frame_sizes;
mod frames;
mod longest;
mod mixed;
mod plan;
mod recovery;
mod reset;
mod rules;
pub(super) mod search;
mod stage;
mod stateful;
mod tables;
mod tcp;
mod topology;

pub use plan::Rfc8219;
