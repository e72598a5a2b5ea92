//! The benchmarks of RFC 8219 for translators: throughput by binary search, frame loss rate, latency and delay variation.

mod delay;
mod dns64;
mod dual;
mod findings;
mod frame_sizes;
mod frames;
mod mixed;
mod plan;
mod rules;
mod search;
mod stage;
mod stateful;
mod topology;

pub use plan::Rfc8219;
