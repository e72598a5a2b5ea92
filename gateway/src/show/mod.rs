//! The output of `sixway show`: tables made from responses of the admin API.

mod colour;
mod counters;
mod dns64;
mod event_log;
mod fast_path;
mod pcp;
mod problems;
mod quantity;
mod sessions;
mod summary;
mod table;
mod teredo;
mod teredo_server;
mod tunnels;

pub use colour::Colour;
pub use counters::{counters, drops};
pub use dns64::dns64;
pub use fast_path::fast_path;
pub use pcp::pcp;
pub use problems::{draining, pool_blocks, pools};
pub(crate) use quantity::{count, plural};
pub use sessions::{bindings, sessions, subscribers};
pub use summary::summary;
pub use teredo::teredo;
pub use teredo_server::teredo_server;
pub use tunnels::{leases, router_advertisements, six_rd};
