//! Protocols without ports: GRE, ESP, IPv6 in IPv4 and IPv4 in IPv4. A session is an inside host and a remote host, and the field that the
//! packets have instead of ports:
//!
//! ```text
//!     inside                        outside
//!     X ─▶ Z, protocol, id    ──▶   T ─▶ Z, protocol, id        the id of what goes out, and of what comes in:
//!     X ◀─ Z, protocol, id    ◀──   T ◀─ Z, protocol, id          GRE's key: the same; ESP's SPI: one for each direction
//! ```
//!
//! Nothing of the packet but its addresses can be changed. So two inside hosts cannot share an outside address towards the same remote host,
//! unless their ids differ, and mapping and filtering are address-dependent: a packet comes in only from where an inside host has sent to.

mod config;
mod first_answer;
mod outside_addresses;
mod protocol;
mod received_ids;
mod sessions;
mod table;
mod tuple;

pub use config::{PORTLESS_DEFAULT, PORTLESS_MIN, PortlessBinding, PortlessConfig};
pub use protocol::PortlessProtocol;
pub(super) use sessions::{Passing, PortlessSessions};
