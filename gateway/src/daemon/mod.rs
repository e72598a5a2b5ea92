//! The running gateway.

mod backend;
mod rates;
mod words;

pub use backend::{Facts, Gateway, Mechanism};
