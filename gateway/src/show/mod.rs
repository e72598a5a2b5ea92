//! What `sixway show` prints: tables for people from what the admin API answers.

mod counters;
mod dns64;
mod fast_path;
mod quantity;
mod sessions;
mod summary;
mod table;
mod tunnels;

pub use counters::{counters, drops};
pub use dns64::dns64;
pub use fast_path::fast_path;
pub(crate) use quantity::{count, duration};
pub use sessions::{bindings, sessions};
pub(crate) use summary::plural;
pub use summary::summary;
pub use tunnels::{router_advertisements, six_rd};

/// Whether a table may be coloured: only on a terminal that was not told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Ansi,
}
