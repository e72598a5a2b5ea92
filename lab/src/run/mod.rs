//! A run: which cells in which order, measured one after the other, and resumed where it ended.

mod catalogue;
mod execute;
mod options;
mod plan;
mod session;
mod start;
#[cfg(test)]
mod tests;

pub use catalogue::list;
pub use execute::{Laboratory, Progress, execute};
pub use options::Options;
pub use plan::{participants, plan};
pub use start::{report, run};
