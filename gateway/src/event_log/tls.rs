//! Syslog over TLS (RFC 5425): the server's certificate is verified, and has its name.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

/// What connections to a server have in common.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A connection.
pub(super) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl Tls {
    /// For a server of this name. `ca`: certificates of trusted authorities as PEM; `None`: the system's.
    ///
    /// # Errors
    /// They cannot be read, or there are none.
    pub(super) fn new(name: &str, ca: Option<&Path>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        match ca {
            Some(path) => {
                for certificate in CertificateDer::pem_file_iter(path).map_err(io::Error::other)? {
                    let added = certificate.map_err(io::Error::other).map(|it| roots.add(it));
                    added?.map_err(io::Error::other)?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there are no certificates of authorities"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// Shakes hands over a connection.
    ///
    /// # Errors
    /// The kernel's, or the server does not prove who it is.
    pub(super) fn connect(&self, mut stream: TcpStream) -> io::Result<TlsStream> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(connection, stream))
    }
}
