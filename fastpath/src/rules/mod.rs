//! Compiles the engine's configuration into the programs' constants: the rules of the stateless mechanisms, as arrays.
//!
//! Arrays are bounded. A mechanism that does not fit is left to the engine, and so is every mechanism whose packets could be confused with
//! its own; [`Unoffered`] names them with the reason.

mod compile;
mod eam;
mod header_form;
mod lists;
mod offer;
mod sources;
mod surroundings;
mod translators;
mod tunnels;
mod unoffered;

pub use eam::EAM_ROWS;
pub use offer::Offer;
pub use surroundings::Surroundings;
pub use unoffered::{Mechanism, Unoffered, UnofferedReason};

#[cfg(test)]
mod tests;
