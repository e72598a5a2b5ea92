//! The lab measures itself: what its loads can do on a bare link, and whether they find what an impaired link is known to do.

mod compared;
mod findings;
mod impairments;
mod plan;
mod stage;
mod topology;

pub use compared::{Compared, compare};
pub use impairments::Kind;
pub use plan::Tester;
pub use stage::{Injection, inject};
pub use topology::network;
