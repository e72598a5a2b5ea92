//! Upstreams that are asked by streams: TCP, TLS, HTTPS. Connections are kept and reused; each takes up questions as it has room.
//!
//! ```text
//!   UpstreamQuery ─▶ Keeper (one for each upstream) ─▶ Desk ─▶ connection: pipeline, or https
//!                       │ opens connections, at most CONNECTIONS ──▲
//! ```

mod connect;
mod desk;
mod https;
mod keeper;
mod pipeline;
mod trust;

pub use connect::Fault;
pub use keeper::Keeper;
pub use trust::{TrustFault, client};

use desk::Waiting;
use hyper::Uri;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// Connections to one upstream.
const CONNECTIONS: usize = 4;
/// Questions under way on one connection at most; some servers end one that has more.
const IN_FLIGHT: usize = 100;
/// A connection without a question is closed after this time (RFC 7766 §6.2.3).
const IDLE: Duration = Duration::from_secs(10);
/// A connection that yields nothing for so long, while questions wait for replies, is of no use.
const SILENCE: Duration = Duration::from_secs(4);

/// How an upstream is asked.
#[derive(Clone, Debug)]
pub enum Spoken {
    /// DNS over TCP.
    Tcp,
    /// DNS over TLS, with whoever can prove to be `name`.
    Tls {
        /// A host name or an address.
        name: ServerName<'static>,
        /// Whom we believe.
        config: Arc<ClientConfig>,
    },
    /// DNS over HTTPS.
    Https {
        /// A host name or an address.
        name: ServerName<'static>,
        /// Whom we believe.
        config: Arc<ClientConfig>,
        /// Where it takes queries.
        uri: Uri,
    },
}

/// An upstream.
#[derive(Clone, Debug)]
pub struct StreamUpstream {
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked.
    pub spoken: Spoken,
}

/// A connection's end.
#[derive(Debug)]
struct Ended {
    /// Questions that it took up and did not answer.
    unanswered: Vec<Waiting>,
    /// How many it answered.
    answered: usize,
    /// What was wrong.
    fault: Option<Fault>,
    /// Whether there was a connection at all.
    was_open: bool,
}

impl Ended {
    fn before_use(fault: Fault) -> Self {
        Self { unanswered: Vec::new(), answered: 0, fault: Some(fault), was_open: false }
    }
}
