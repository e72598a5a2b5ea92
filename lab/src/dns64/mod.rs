//! A DNS64 between a client and an authority: Sixway or one of its peers, each in a network of its own, all in front of the same generated zones.

mod authority;
pub mod cause;
mod configuration;
pub mod difference;
pub mod document;
pub mod facet;
pub mod likeness;
mod query;
mod sample;
mod server;
mod signing;
pub mod table;
mod tree;
pub mod trickster;
mod zone;

pub use authority::start as start_authority;
pub use query::{Asker, Flags, Reply, Row};
pub use sample::{Right, Sample, Trust};
pub use server::{PREFIX, Running, Server};
pub use tree::{Tree, cached_name, large_name};
pub use zone::{Expected, Kind, embedded};
