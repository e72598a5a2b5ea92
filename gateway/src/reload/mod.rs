//! The effects of a reload: which keys change, and which sessions end. Nothing is changed.

mod changes;
mod effect;

pub use changes::{Change, changes};
pub use effect::Effect;
