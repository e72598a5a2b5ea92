//! Echo requests as load.

mod flow;
mod link;
mod open_loop;
mod sweep;
mod targets;

pub use link::From;
pub use targets::EchoSweep;
