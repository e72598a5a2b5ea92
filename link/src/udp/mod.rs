//! UDP for servers that answer many small datagrams, and for clients that use a new port for each query.
//!
//! - A [`UdpServer`] receives and sends up to [`BATCH`] datagrams with one system call, and an answer leaves from the address that was queried.
//! - A [`UdpExchange`] is a socket for one question to one peer: its port is random, and the kernel accepts datagrams of this peer only.
//! - A [`UdpTunnel`] is a link: its datagrams are frames.

mod address;
mod batch;
mod control;
mod dealing;
mod departing;
mod exchange;
mod joined;
mod server;
mod tunnel;

pub use batch::{Arrivals, BATCH, Departures, Path};
pub use dealing::place_of;
pub use exchange::UdpExchange;
pub use server::UdpServer;
pub use tunnel::{UdpTunnel, UdpTunnelSender};
