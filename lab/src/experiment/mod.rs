//! Experiments, most of them published papers replayed: each is a folder, and a line in [`all`].

mod contract;
mod list;
mod relay_2013;
mod sheet;

pub use contract::{Entry, Experiment, Line, Stage};
pub use list::{all, find};
pub use relay_2013::Relay2013;
pub use sheet::Sheet;
