//! The running gateway: what it is made of, from start to end.

mod backend;
mod edits;
mod engines;
mod log;
mod pool_file;
mod pool_keeper;
mod rates;
mod run;
mod serve;
mod setup;
mod threads;
mod words;

pub use backend::{Facts, Gateway, Mechanism};
pub use run::{RunError, run};
