//! The cost of a measurement, and disturbances.

mod capture;
mod control;
mod core_time;
mod environment;
mod idle;
mod meter;
mod skew;
mod threaded;
mod timeline;

pub use capture::{Capture, Captured, exchanges, handshakes};
pub use control::fixed_work;
pub use core_time::{CoreTime, Cores, core_time};
pub use environment::{Environment, QUIET};
pub use idle::{Soak, Soaked};
pub use meter::{Meter, Reading};
pub use skew::{ClockOffset, Exchange, clock_offset};
pub use threaded::ReceivingThreads;
pub use timeline::{CpuOverTime, Timeline};
