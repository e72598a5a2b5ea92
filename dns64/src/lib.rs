//! DNS64: the resolver's threads and the sockets around them.
//!
//! ```text
//!   clients, UDP ─────▶ ┌────────────────────┐ ──▶ upstreams, UDP
//!                       │ thread: a Resolver │
//!   clients, TCP,       └──▲──────────────┬──┘     upstreams, TCP,
//!   TLS, HTTPS ── Posts::ask              UpstreamQuery ──▶ TLS, HTTPS
//! ```
//!
//! - A thread owns its [`Resolver`](sixway_control::dns64::Resolver), its server sockets and the sockets to upstreams; nothing is shared between threads.
//! - Queries over TCP, TLS and HTTPS reach a thread through [`Posts`]; queries to upstreams over these leave as an [`UpstreamQuery`].

mod events;
mod exchanges;
mod post;
mod query_log;
mod rates;
mod report;
mod same_places;
mod seed;
mod servers;
mod service;
pub mod streams;
mod thread;
mod ticket;
mod watch;

pub use post::{
    Cancelled, Mailbox, Post, Posts, Reconfiguration, ReplyTo, StreamQuery, ThreadMessage, Unanswered,
    UpstreamQuery, Waiting, mailbox,
};
pub use rates::Rates;
pub use report::{Report, SocketCounters};
pub use same_places::same_places;
pub use service::{Inherited, Left, Service, ServiceError, ServiceSettings, stream_queries};
pub use thread::{Thread, ThreadParts};
pub use ticket::{Ticket, Way};
