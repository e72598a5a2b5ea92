//! Raw IPv4 sockets: tunnel packets (protocol 41) for the host's own addresses, as the local stack hands them over.

mod receive;
mod super_frame;
mod tunnel;

pub(crate) use receive::Inbox;
pub use super_frame::{Reading, reading};
pub use tunnel::{RawTunnel, TunnelSender};
