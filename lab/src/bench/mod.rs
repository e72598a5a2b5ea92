//! `make bench`: measured figures with their targets. A benchmark prints tables; it is not a timed test, and a missed target is not a
//! failure.

mod dns64;
mod fastpath;
mod figure;
mod memory;
mod options;
mod relay;
mod softwires;
mod suite;
mod teredo;
mod wire;

pub use figure::{Figure, Section, Target};
pub use options::{FastPathTable, Options, Part};
pub use suite::run;
