//! A server of the Port Control Protocol (RFC 6887), and of NAT-PMP on the same port (RFC 6886): inside hosts ask for the outside endpoints of
//! theirs, for a time.
//!
//! ```text
//!     datagram ─▶ handle ─▶ request ─▶ map, peer, announce, NAT-PMP ─▶ ControlledNat
//!                                          │ mappings, with nonces and lifetimes
//!                                          ▼
//!                                      responses
//!     time     ─▶ handle_timeout ─▶ mappings that end ─▶ ControlledNat;  poll_transmit: announcements, mapping updates
//! ```
//!
//! It does not trust a client with more than its own address: a client makes mappings to itself alone, unless it may use THIRD_PARTY (§13.1), and
//! changes only those whose nonce it knows (§18.1).

mod announce;
mod client_rates;
mod counts;
mod filter;
pub mod kept;
mod map;
mod mapping;
mod mappings;
mod message;
mod nat;
mod nat_pmp;
mod nat_pmp_message;
mod option;
mod peer;
mod peers;
mod quota;
mod recovery;
mod request;
mod response;
mod result_code;
mod server;
mod settings;
mod updates;

pub use announce::{Announced, Transmit};
pub use counts::{Counts, Ignored};
pub use filter::{Filter, MOST_FILTERS};
pub use mapping::{AskedAt, Internal, Mapping, Nonce, Transport};
pub use message::{CLIENT_PORT, MAX_PAYLOAD, SERVER_PORT};
pub use nat::{Closed, ControlledNat, Existing, ExistingKind, Opened, Refusal, Wanted, WantedPeer};
pub use recovery::{Kept, KeptMapping, KeptPeer, Restored};
pub use request::{MapRequest, PeerRequest, PortSet, Request};
pub use result_code::ResultCode;
pub use server::{Arrival, Server};
pub use settings::{Lifetimes, Settings};
