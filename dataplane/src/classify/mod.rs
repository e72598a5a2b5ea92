//! Which mechanism owns a packet, and whether its addresses are fit to be forwarded at all.

pub mod ownership;
pub mod source_check;
mod steering;

pub use steering::{Owner, Steering};
