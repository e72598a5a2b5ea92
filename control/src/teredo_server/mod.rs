//! A Teredo server (RFC 4380 §5.3): it reports their mapped addresses to clients, and forwards bubbles and echo messages, by which clients and relays
//! find one another. It has no state for clients.
//!
//! ```text
//!     router solicitation      ─▶ router advertisement with the sender's endpoint; from the other address if the cone bit is set
//!     bubble, ICMPv6 message   ─▶ to a client: by UDP, with the sender's endpoint; an echo message to a native host: to IPv6
//! ```
//!
//! It must not serve as a reflector (RFC 6169): an answer is hardly longer than its solicitation, the addresses inside a datagram must match those
//! that it came from, nothing is sent to addresses of private networks, and each source has a rate limit.

mod advertisement;
mod authentication;
mod counts;
mod packet;
mod refusal;
mod sent;
mod server;

pub(crate) use authentication::Protected;
pub use authentication::{ClientKey, Clients};
pub use counts::Counts;
pub use refusal::Refusal;
pub use sent::Sent;
pub use server::{Datagram, OwnAddresses, Server, Settings};
pub use sixway_dataplane::rates::Rate;
