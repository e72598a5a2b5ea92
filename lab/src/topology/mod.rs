//! Networks of namespaces: hosts, links, links of limited rate, and their owners.

mod network;
mod owner;
mod shaped;

pub use network::{Network, client_gateway_server, client_router_server, left_over, remove, two_clients};
pub use owner::{Stale, stale};
pub use shaped::Shape;
