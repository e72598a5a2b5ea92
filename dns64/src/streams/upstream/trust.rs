//! Trusted certificate authorities for TLS: the system's, or those of a file.

use super::super::certificate::{CertificateFault, certificates};
use super::super::listener::{DOT, HTTP2};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why no authority can be trusted.
#[derive(Debug)]
pub enum TrustFault {
    /// The file of authorities is faulty.
    File(CertificateFault),
    /// The file holds nothing that could be an authority.
    Unusable(PathBuf, Box<rustls::Error>),
    /// The system has none.
    NoneHere,
    /// The cryptography refuses to start.
    Cryptography(Box<rustls::Error>),
}

impl fmt::Display for TrustFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(fault) => fault.fmt(f),
            Self::Unusable(path, error) => write!(f, "{} holds a certificate that cannot be used: {error}", path.display()),
            Self::NoneHere => f.write_str("this system has no certificate authorities; install them (Debian: package ca-certificates), or set `ca` to a file of them"),
            Self::Cryptography(error) => write!(f, "TLS is not available: {error}"),
        }
    }
}

impl std::error::Error for TrustFault {}

/// TLS as a client for DNS over TLS, or over HTTPS. Sessions are remembered and resumed (RFC 8446 §2.2).
///
/// # Errors
/// No authority can be trusted.
pub fn client(ca: Option<&Path>, is_https: bool) -> Result<Arc<ClientConfig>, TrustFault> {
    let roots = match ca {
        Some(path) => roots_of_file(path)?,
        None => roots_of_system()?,
    };
    let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TrustFault::Cryptography(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![if is_https { HTTP2 } else { DOT }.to_vec()];
    Ok(Arc::new(client))
}

fn roots_of_file(path: &Path) -> Result<RootCertStore, TrustFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path).map_err(TrustFault::File)? {
        roots.add(certificate).map_err(|error| TrustFault::Unusable(path.to_owned(), error.into()))?;
    }
    Ok(roots)
}

/// The readable ones: a bad one among hundreds must not make all unusable.
fn roots_of_system() -> Result<RootCertStore, TrustFault> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 { Err(TrustFault::NoneHere) } else { Ok(roots) }
}
