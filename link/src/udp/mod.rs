//! UDP for servers that answer many small datagrams, and for clients that ask from a new port each time.
//!
//! - A [`UdpServer`] receives and sends up to [`BATCH`] datagrams with a system call, and an answer leaves from the address that was asked.
//! - A [`UdpExchange`] is a socket for one question to one peer: its port is a random one, and the kernel lets nobody else's datagrams in.

mod address;
mod batch;
mod control;
mod exchange;
mod server;

pub use batch::{Arrivals, BATCH, Departures, Path};
pub use exchange::UdpExchange;
pub use server::UdpServer;
