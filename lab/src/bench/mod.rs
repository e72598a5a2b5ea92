//! `make bench`: what was measured, beside what is to be reached. A benchmark prints a table; it is no timed test, and a missed
//! target is no failure.

mod dns64;
mod fastpath;
mod figure;
mod memory;
mod options;
mod relay;
mod suite;
mod wire;

pub use figure::{Figure, Section, Target};
pub use options::{FastPathTable, Options, Part};
pub use suite::run;
