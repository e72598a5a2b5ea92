//! A DNS64 between a client and an authority: Sixway or one of its peers, each in a network of its own, all in front of the same generated zones.

mod authority;
pub mod cause;
mod configuration;
pub mod crowding;
pub mod difference;
pub mod document;
mod expected;
pub mod facet;
mod flags;
mod half_silent;
mod kind;
pub mod likeness;
pub mod private;
mod query;
mod running;
mod sample;
mod server;
mod signing;
pub mod table;
mod tree;
pub mod trickster;
mod zone;

pub use authority::start as start_authority;
pub use expected::{Expected, embedded};
pub use flags::Flags;
pub use kind::Kind;
pub use query::{Asker, Reply, Row};
use running::vm_rss;
pub use running::{PREFIX, Position, Running};
pub use sample::{Right, Sample, Trust};
pub use server::Server;
pub use tree::{Tree, cached_name, large_name};
