//! Teredo's relay and client (RFC 4380 §5.2, §5.4, with RFC 5991 and RFC 6081): IPv6 in UDP over IPv4, through NATs.
//!
//! ```text
//!     IPv6 host ─── relay ═══ UDP, IPv4 ═══ NAT ═══ client 2001:0:server:flags:port:address
//!                     └── bubble ── server ── bubble ──┘
//! ```
//!
//! Neither sends data to an address and port only because an IPv6 address contains them: a peer is trusted once a packet has come from there. A bubble,
//! sent through the peer's server, causes the peer to send one. Packets wait meanwhile, a few for each peer.

mod bubbles;
mod client;
mod config;
mod contacts;
mod datagram;
mod echo;
mod peers;
mod predicts;
mod rates;
mod relay;
mod row;
mod shares;
mod spares;
mod trailers;
mod tunnel;
mod waiting;

pub use config::{PortRule, Prediction, RelayConfig, TeredoChange, TeredoConfig, TeredoRole};
pub use row::{PeerRow, PeerState, SpareRow, TeredoRow};
pub use tunnel::Teredo;
