//! The fast path of a running gateway: started before the workers, updated as the host and the tunnels change, removed or left behind.
//! On a change, an entry or a rule is removed before what it represents. Programs with wrong rules forward nothing until others replace
//! them; nothing waits for that.

mod choice;
mod exchange;
mod keep;
mod offered;
mod retry_timer;
mod start;

pub(super) use keep::{Offload, keep};
pub use offered::left_to_the_engine;
pub(super) use start::{Begun, FastPathStart, begin, leave_ahead, load_ahead};
