//! From the engine's configuration to the programs' constants: what the stateless mechanisms decide by, said in arrays.
//!
//! Arrays end. A mechanism that they do not hold is left to the engine, and whatever might be mistaken for it, too; [`Unoffered`]
//! says which, and why.

mod compile;
mod eam;
mod header_form;
mod lists;
mod offer;
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
