//! tools: whether the papers' own tools and the lab's loads agree at the same pace.

mod findings;
mod pair;
mod plan;
mod stage;

pub use plan::Tools;
