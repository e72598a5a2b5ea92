//! A run: which cells in which order, measured one after the other, and resumed where it ended.

mod catalogue;
mod commit;
mod comparison;
mod duration;
mod ending;
#[cfg(test)]
mod estimates;
mod execute;
mod failure_kit;
mod left_out;
mod options;
mod pacing;
mod plan;
mod progress;
mod recorder;
mod same_program;
mod session;
mod start;
mod surroundings;
#[cfg(test)]
mod tests;

pub use catalogue::{list, list_as_json};
pub use comparison::{Outcome, comparison};
pub use ending::interrupted;
pub use execute::{Laboratory, execute, execute_within};
pub use options::Options;
pub use plan::{participants, plan};
pub use progress::Progress;
pub use start::{chapter, chapters, report, run};
