//! A link with known impairments: a process between two hosts that loses, duplicates, delays and reorders packets, and counts them in a
//! ledger. The lab uses it to test its own measurements.

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
