//! What a measurement costs, and what disturbs it.

mod control;
mod core_time;

pub use control::fixed_work;
pub use core_time::{CoreTime, Cores, core_time};
