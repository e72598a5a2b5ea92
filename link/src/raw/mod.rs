//! Raw IPv4 sockets: tunnel packets (protocol 41) for the host's own addresses, as the local stack hands them over.

mod gso;
mod receive;
mod sender;
mod sender6;
mod shared_port;
mod tunnel;

pub use gso::{Reading, reading};
pub(crate) use receive::Inbox;
pub use sender::PacketSender;
pub use sender6::PacketSender6;
pub use shared_port::SharedPort;
pub use tunnel::{RawTunnel, TunnelSender};
