//! Echo requests as load.

mod flow;
mod link;
mod sweep;

pub use link::From;
pub use sweep::EchoSweep;
