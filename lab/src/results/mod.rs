//! The contents of a run's folder: a header (`run.json`), one line for each measured cell (`samples.jsonl`), and raw files; of a published one, a table of all values
//! (`data.csv`) in place of both. It knows no
//! namespace, device or experiment.

mod cell;
mod commands;
mod file;
mod header;
mod machine;
mod sample;
mod store;
mod table;
mod timestamp;
mod unit;

pub use cell::{Cell, Name, key_of_group};
pub use commands::{COMMANDS, Commands, commands};
pub use file::{open_to_append, write_whole};
pub use header::{Asked, DeviceEntry, Header, SCHEMA, shifted};
pub use machine::{Machine, governors};
pub use sample::{CLOCK, QUANTILES, Sample, TesterCost, Value, Verdict};
pub use store::{Results, Store, has_samples, read};
pub use timestamp::{Timestamp, timestamp};
pub use unit::{Better, Unit};
