//! A link that is bad in a known way: a process between two hosts that loses, doubles, delays and reorders packets, and keeps a ledger of what it did. The
//! lab measures it to measure itself.

mod delay_line;
mod impairment;
mod ledger;
mod process;
mod program;
mod wire;

pub use delay_line::DelayLine;
pub use impairment::Impairment;
pub use ledger::Ledger;
pub use process::{Options, run};
pub use program::program;
pub use wire::ImpairedWire;
