//! An upstream that is asked by streams.

use hyper::Uri;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// How an upstream is asked.
#[derive(Clone, Debug)]
pub enum UpstreamTransport {
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
    pub transport: UpstreamTransport,
}
