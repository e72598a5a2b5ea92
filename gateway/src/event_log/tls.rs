//! Syslog over TLS (RFC 5425): the server's certificate is verified, and has its name.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The common configuration of connections to a server.
pub(super) struct Tls {
    name: String,
    ca: Option<PathBuf>,
    client: Option<Client>,
}

/// A client's configuration, and the name of the server.
pub(super) type Client = (Arc<ClientConfig>, ServerName<'static>);

/// A connection.
pub(super) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl Tls {
    /// For a server of this name. `ca`: certificates of trusted authorities as PEM; `None`: the system's. An unreadable file is tried again
    /// when it is needed.
    pub(super) fn new(name: &str, ca: Option<&Path>) -> Self {
        let client = client(name, ca).ok();
        Self { name: name.to_owned(), ca: ca.map(Path::to_owned), client }
    }

    /// Reads the certificates of authorities, if that was not possible before.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn prepare(&mut self) -> io::Result<&Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => client(&self.name, self.ca.as_deref())?,
        };
        Ok(self.client.insert(client))
    }

    /// Begins TLS over a connection.
    ///
    /// # Errors
    /// The certificates of authorities cannot be read.
    pub(super) fn begin(&mut self, stream: TcpStream) -> io::Result<TlsStream> {
        let (config, name) = self.prepare()?.clone();
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}

/// A client that trusts these authorities.
///
/// # Errors
/// They cannot be read, or the file contains no certificate.
pub(super) fn client(name: &str, ca: Option<&Path>) -> io::Result<Client> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let named = |error| io::Error::other(format!("{}: {error}", path.display()));
            for certificate in CertificateDer::pem_file_iter(path).map_err(named)? {
                let added = certificate.map_err(named).map(|it| roots.add(it));
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
    Ok((Arc::new(config), name))
}
