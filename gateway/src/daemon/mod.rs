//! The running gateway.

mod backend;
mod pool_file;
mod pool_keeper;
mod rates;
mod words;

pub use backend::{Facts, Gateway, Mechanism};
