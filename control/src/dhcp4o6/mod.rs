//! DHCPv4 over DHCPv6 (RFC 7341): a server that leases IPv4 addresses to hosts by their IPv6 addresses, and a client. RFC 2131 has the states, RFC
//! 8539 the option by which a client names the address of its tunnel.
//!
//! ```text
//!     DHCPv6:  DHCPV4-QUERY (20), flags ─ option 87 ─┐          ┌─ DHCPV4-RESPONSE (21)
//!     DHCPv4:                      DISCOVER, REQUEST, …         OFFER, ACK, NAK
//! ```

mod client;
mod dhcpv4;
mod envelope;
mod lease;
mod leases;
mod malformed;
mod query_rate;
mod reservations;
mod server;
mod server_addresses;

pub use client::{Client, ClientEvent, ClientSettings, ClientState, Held, Ignored};
pub use dhcpv4::{Dhcpv4, HARDWARE_TYPE, MessageKind};
pub use envelope::{ALL_SERVERS, CLIENT_PORT, Envelope, RelayHop, SERVER_PORT};
pub use lease::{Change, Lease, LeaseState};
pub use malformed::Malformed;
pub use reservations::Asker;
pub use server::{Refusal, Reply, Server, ServerCounters, ServerSettings};
pub use server_addresses::{is_on_link, may_answer, servers_in};
