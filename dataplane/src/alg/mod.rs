//! Application-level gateways: what a translator changes behind the TCP header, for protocols that carry addresses and ports there.
//!
//! ```text
//!     a packet of a control connection ─▶ connections ─▶ connection ─▶ stream: which octets are new, and what was changed in the earlier ones
//!                                                            │
//!                                                            └─ each new line ─▶ ftp: changes it or not; asks [`Openings`] for a mapping
//! ```
//!
//! Nothing here knows of bindings or writes to a packet: a change is a [`crate::verdict::TcpRewrite`].

mod connection;
mod connections;
mod ftp;
mod openings;
mod segment;
mod stream;

pub(crate) use connections::{Connections, Ends, may_be_of_control_connection};
pub(crate) use ftp::CONTROL_PORT;
pub(crate) use openings::{Opening, Openings};
pub(crate) use segment::TcpSegment;
