//! DNS64 over TCP (RFC 7766), TLS (RFC 7858) and HTTPS (RFC 8484), for clients and upstreams.
//!
//! ```text
//!   clients ─▶ listener ─▶ admission ─▶ TLS ─▶ connection (TCP, TLS) ─▶ Posts::ask ─▶ a resolver's thread
//!                                          └─▶ https ─▶ request ─────▲
//!   a resolver's thread ─▶ UpstreamQuery ─▶ dealing ─▶ upstream::Keeper ─▶ connections ─▶ upstreams
//! ```
//! All resources that a client can use are limited by [`Bounds`].

mod admission;
pub mod base64url;
mod bounds;
mod certificate;
mod connection;
mod counters;
mod crowd;
mod dealing;
pub mod framing;
pub mod freshness;
mod gate;
mod handshakes;
mod https;
mod listener;
pub mod request;
mod runtime;
mod service;
mod settings;
#[cfg(test)]
mod tests;
mod upstream;

pub use bounds::{Bounds, LONGEST_QUERY};
pub use certificate::CertificateFault;
pub use counters::{Event, StreamCounters};
pub use service::{StreamContext, StreamView, Streams};
pub use settings::{StreamFault, StreamSettings, TransportSettings, UpstreamSettings};
pub use upstream::TrustFault;
