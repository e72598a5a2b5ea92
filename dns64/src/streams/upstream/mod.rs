//! Upstreams queried over TCP, TLS and HTTPS. Connections are kept and reused; each takes queries as it has room.
//!
//! ```text
//!   UpstreamQuery ─▶ Keeper (one for each upstream) ─▶ Backlog ─▶ connection: pipeline, or https
//!                       │ opens connections, at most CONNECTIONS ──▲
//! ```

mod backlog;
mod connect;
mod connection_end;
mod https;
mod keeper;
mod limits;
mod pipeline;
mod quarantine;
mod slots;
mod stream_upstream;
mod trust;

pub use keeper::Keeper;
pub use stream_upstream::{StreamUpstream, UpstreamTransport};
pub use trust::{TrustFault, client};
