//! A connection to an upstream: TCP, with TLS if configured. Any failure is detected within [`PATIENCE`].

use sixway_control::dns64::Failure;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, OtherError};

/// A connection is established within this time, TLS included.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// A connection that could not be made, or that ended; and what is said of it in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The failure for the resolver.
    pub failure: Failure,
    /// The message for the operator.
    pub why: String,
}

impl Fault {
    /// A fault.
    pub fn new(failure: Failure, why: impl Into<String>) -> Self {
        Self { failure, why: why.into() }
    }
}

/// Connects by TCP.
///
/// # Errors
/// There is no server, or no route to it.
pub async fn tcp(address: SocketAddr) -> Result<TcpStream, Fault> {
    let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
    let stream = connected
        .map_err(|_| Fault::new(Failure::Unreachable, "no answer to a TCP connection"))?
        .map_err(|error| Fault::new(Failure::Unreachable, error.to_string()))?;
    // Queries are written whole.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Connects by TLS, to a server that can prove to be `name`.
///
/// # Errors
/// There is no server, or another one.
pub async fn tls(
    address: SocketAddr,
    name: &ServerName<'static>,
    config: &Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, Fault> {
    let agreed = async {
        let stream = tcp(address).await?;
        let connector = TlsConnector::from(Arc::clone(config));
        connector.connect(name.clone(), stream).await.map_err(|error| not_agreed(&error))
    };
    timeout(PATIENCE, agreed)
        .await
        .map_err(|_| Fault::new(Failure::Unreachable, "the TLS handshake timed out"))?
}

fn not_agreed(error: &io::Error) -> Fault {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(tls) => Fault::new(Failure::Untrusted, untrusted(tls)),
        None => Fault::new(Failure::Closed, format!("closed during the TLS handshake: {error}")),
    }
}

/// Why its certificate is not trusted, and how to resolve that.
fn untrusted(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is not signed by a trusted authority; set `ca` to a file with the authority's certificate".to_owned()
        }
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(why)))
            if format!("{why:?}") == "CaUsedAsEndEntity" =>
        {
            "its certificate is that of an authority (CA:TRUE), which a server must not present (RFC 5280 §4.2.1.9); reissue it with -addext basicConstraints=critical,CA:FALSE"
                .to_owned()
        }
        error => error.to_string(),
    }
}
