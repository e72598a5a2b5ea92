//! An upstream queried over TCP, TLS or HTTPS.

use hyper::Uri;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// The transport of an upstream.
#[derive(Clone, Debug)]
pub enum UpstreamTransport {
    /// DNS over TCP.
    Tcp,
    /// DNS over TLS; the certificate must be for `name`.
    Tls {
        /// A host name or an address.
        name: ServerName<'static>,
        /// The trusted authorities.
        config: Arc<ClientConfig>,
    },
    /// DNS over HTTPS.
    Https {
        /// A host name or an address.
        name: ServerName<'static>,
        /// The trusted authorities.
        config: Arc<ClientConfig>,
        /// The URI for queries.
        uri: Uri,
    },
}

/// An upstream.
#[derive(Clone, Debug)]
pub struct StreamUpstream {
    /// Where it is.
    pub address: SocketAddr,
    /// Its transport.
    pub transport: UpstreamTransport,
}
