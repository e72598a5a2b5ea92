//! Devices under test: each is a file, and a line in [`all`].

mod card;
mod contract;
mod kernel;
mod list;
mod needs;
mod place;
mod reading;
mod sixway;
mod task;

pub use card::{Card, Realm};
pub use contract::{Device, Running};
pub use list::{all, find};
pub use needs::Needs;
pub use place::Place;
pub use reading::{Change, CpuReading, CpuSource, MemoryReading};
pub use task::{Forward, Relay6to4, Task, TaskKind};
