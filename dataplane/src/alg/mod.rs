//! Application-level gateways: changes of a translator behind the TCP header, for protocols that carry addresses and ports there.
//!
//! ```text
//!     a SYN ─────────▶ connections ─▶ handshakes: the client's waits for the server's
//!     another segment of a control connection ─▶ connections ─▶ connection ─▶ half ─▶ stream: which octets are new, and what was changed before
//!                                                                             ├─ octets ─▶ telnet: removes options
//!                                                                             └─ each line ─▶ ftp: changes it or not; requests a mapping from [`Openings`]
//! ```
//!
//! Nothing here knows of bindings or writes to a packet: a change is a [`crate::verdict::TcpRewrite`].

mod connection;
mod connections;
mod ends;
mod ftp;
mod half;
mod handshakes;
mod openings;
mod segment;
mod shares;
mod stream;
mod telnet;

pub(crate) use connections::{Connections, may_be_of_control_connection};
pub(crate) use ends::Ends;
pub(crate) use ftp::CONTROL_PORT;
pub(crate) use openings::{Opening, Openings};
pub(crate) use segment::TcpSegment;
pub(crate) use shares::{Sharer, Shares};
