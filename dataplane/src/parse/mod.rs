//! From octets to a [`Packet`]: offsets and the few fields that decide. Every length is checked here, once.
//!
//! A `Packet` does not borrow the frame's buffer, so mechanisms can decide without touching octets.

mod ip;
mod ipv4;
mod ipv6;
mod packet;
pub mod quoted;
mod transport;

pub use ip::{parse, parse_into};
pub(crate) use ipv4::parse as parse4_into;
pub(crate) use ipv6::{last_next_header, parse as parse6_into};
pub use packet::{Addresses, Fragment, Packet, Transport};
pub use quoted::{QuotedPacket, QuotedTuple, quoted, quoted_stateless};
pub use sixway_wire::tcp::{ACK, FIN, RST, SYN};
pub use sixway_wire::{FRAGMENT_HEADER, ICMP_HEADER, IPV4_HEADER, IPV6_HEADER, TCP_HEADER, UDP_HEADER};
