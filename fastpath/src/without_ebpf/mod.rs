//! The same API without eBPF: nothing can be attached or loaded.

mod fast_path;
mod steering;

pub use fast_path::{Ahead, FastPath, Loaded, Opened, Prepared, gateways, remove_all, slots, unusable};
pub use steering::Steering;
