//! The fast path of a running gateway: begun before the workers, kept as the host and the tunnels change, ended or left behind.
//!
//! Changed: an entry is gone before what it stands for is. So is a rule: programs that would do what is wrong by now forward nothing until
//! others are in their place, for which nobody waits.

mod choice;
mod exchange;
mod keep;
mod offered;
mod retry_timer;
mod start;

pub(super) use keep::{Offload, keep};
pub use offered::left_to_the_engine;
pub(super) use start::{FastPathStart, begin, leave_ahead, load_ahead};
