//! The server certificate and its key: PEM files, reloaded when they change. If the new ones are invalid, the old ones stay in use.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// What is wrong with a file of certificates or keys, and how to mend it.
#[derive(Debug)]
pub enum CertificateFault {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// Not a PEM file.
    NotPem(PathBuf, pem::Error),
    /// It holds no certificate.
    NoCertificate(PathBuf),
    /// It holds no private key.
    NoKey(PathBuf),
    /// The key is not the certificate's, or of a kind that is not transport here.
    Unusable(PathBuf, PathBuf, Box<rustls::Error>),
    /// The cryptography refuses to start.
    Cryptography(Box<rustls::Error>),
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => write!(f, "{} cannot be read: {error}", path.display()),
            Self::NotPem(path, error) => write!(f, "{} is not a PEM file: {error}", path.display()),
            Self::NoCertificate(path) => {
                write!(
                    f,
                    "{} holds no certificate (a part that begins with BEGIN CERTIFICATE)",
                    path.display()
                )
            }
            Self::NoKey(path) => {
                write!(
                    f,
                    "{} holds no private key without a passphrase (a part that begins with BEGIN PRIVATE KEY)",
                    path.display()
                )
            }
            Self::Unusable(_, key, error) if matches!(**error, rustls::Error::InconsistentKeys(_)) => {
                write!(f, "the key in {} does not match the first certificate", key.display())
            }
            Self::Unusable(certificate, key, error) => {
                write!(f, "{} with the key in {}: {error}", certificate.display(), key.display())
            }
            Self::Cryptography(error) => write!(f, "TLS is not available: {error}"),
        }
    }
}

impl std::error::Error for CertificateFault {}

impl CertificateFault {
    fn cryptography(error: rustls::Error) -> Self {
        Self::Cryptography(error.into())
    }
}

/// What tells a changed file.
pub(super) type FileTrace = (u64, u64, i64, i64);

/// A certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    served: RwLock<Arc<CertifiedKey>>,
    files: RwLock<Files>,
}

/// Its files, and their states when they were read.
#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    traces: [Option<FileTrace>; 2],
}

impl Files {
    fn of(certificate: &Path, key: &Path) -> Self {
        let traces = [trace(certificate), trace(key)];
        Self { certificate: certificate.to_owned(), key: key.to_owned(), traces }
    }
}

impl Certificate {
    /// Reads both files: the server's certificate first, then those that lead to its authority.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(certificate: &Path, key: &Path) -> Result<Arc<Self>, CertificateFault> {
        let files = Files::of(certificate, key);
        let served = certified_key(certificate, key)?;
        Ok(Arc::new(Self { served: RwLock::new(Arc::new(served)), files: RwLock::new(files) }))
    }

    /// Reads other files, which are examined from now on.
    ///
    /// # Errors
    /// What is wrong with them. The old ones serve on.
    pub fn replace(&self, certificate: &Path, key: &Path) -> Result<(), CertificateFault> {
        let files = Files::of(certificate, key);
        let served = certified_key(certificate, key)?;
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
        Ok(())
    }

    /// Reads the files again if they changed since the last time; returns whether new ones are in use. An invalid state is reported once.
    ///
    /// # Errors
    /// What is wrong with them. The old ones serve on.
    pub fn look_again(&self) -> Result<bool, CertificateFault> {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let now = Files::of(&files.certificate, &files.key);
        if files.traces == now.traces {
            return Ok(false);
        }
        *files = now;
        let served = certified_key(&files.certificate, &files.key)?;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
        Ok(true)
    }

    /// TLS for a server with this certificate that speaks one of `protocols` (RFC 7301).
    ///
    /// # Errors
    /// The cryptography refuses to start.
    pub fn server(self: &Arc<Self>, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, CertificateFault> {
        let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(CertificateFault::cryptography)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Served(Arc::clone(self))));
        // Sessions are resumed by tickets (RFC 8446 §2.2): nothing is remembered of clients that may never come back.
        server.ticketer = ring::Ticketer::new().map_err(CertificateFault::cryptography)?;
        server.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(server))
    }
}

#[derive(Debug)]
struct Served(Arc<Certificate>);

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.served.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Certificates of a PEM file, one at least.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateFault> {
    let octets = contents(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&octets).collect();
    let certificates = certificates.map_err(|error| CertificateFault::NotPem(path.to_owned(), error))?;
    if certificates.is_empty() {
        return Err(CertificateFault::NoCertificate(path.to_owned()));
    }
    Ok(certificates)
}

fn certified_key(certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateFault> {
    let chain = certificates(certificate)?;
    let octets = contents(key)?;
    let secret = PrivateKeyDer::from_pem_slice(&octets).map_err(|error| match error {
        pem::Error::NoItemsFound => CertificateFault::NoKey(key.to_owned()),
        error => CertificateFault::NotPem(key.to_owned(), error),
    })?;
    CertifiedKey::from_der(chain, secret, &ring::default_provider())
        .map_err(|error| CertificateFault::Unusable(certificate.to_owned(), key.to_owned(), error.into()))
}

fn contents(path: &Path) -> Result<Vec<u8>, CertificateFault> {
    fs::read(path).map_err(|error| CertificateFault::Unreadable(path.to_owned(), error))
}

/// The file's state; `None`: it is not there.
pub(super) fn trace(path: &Path) -> Option<FileTrace> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}
