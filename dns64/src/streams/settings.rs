//! The settings for TCP, TLS and HTTPS, and their errors.

use super::bounds::Bounds;
use super::certificate::CertificateFault;
use super::upstream::{self, StreamUpstream, TrustFault, UpstreamTransport};
use hyper::Uri;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio_rustls::rustls::pki_types::ServerName;

/// Servers and upstreams.
#[derive(Clone, Debug, Default)]
pub struct StreamSettings {
    /// Where clients connect by TCP.
    pub tcp: Vec<SocketAddr>,
    /// Where clients connect by TLS.
    pub tls: Vec<SocketAddr>,
    /// Where clients connect by HTTPS.
    pub https: Vec<SocketAddr>,
    /// The certificate chain and its key, PEM files; for TLS and HTTPS.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Upstreams, all of them, in the order of the configuration.
    pub upstreams: Vec<UpstreamSettings>,
    /// Bounds.
    pub bounds: Bounds,
}

/// An upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// Where packets go.
    pub address: SocketAddr,
    /// Its transport.
    pub way: TransportSettings,
}

/// The transport of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportSettings {
    /// TCP; also for an upstream queried over UDP whose reply was truncated.
    Tcp,
    /// By TLS.
    Tls {
        /// The certificate's name, or address.
        name: String,
        /// Authorities, a PEM file; `None`: the system's.
        ca: Option<PathBuf>,
    },
    /// By HTTPS.
    Https {
        /// The certificate's name, or address.
        name: String,
        /// Authorities, a PEM file; `None`: the system's.
        ca: Option<PathBuf>,
        /// Begins with a slash.
        path: String,
    },
}

/// Why TCP, TLS or HTTPS cannot be set up.
#[derive(Debug)]
pub enum StreamFault {
    /// The thread cannot be started.
    Thread(io::Error),
    /// Listening on an address failed.
    Listen(SocketAddr, io::Error),
    /// TLS or HTTPS without a certificate.
    NoCertificate,
    /// The certificate or its key.
    Certificate(CertificateFault),
    /// An upstream's authorities.
    Trust(SocketAddr, TrustFault),
    /// An upstream's name.
    Name(SocketAddr, String),
    /// An upstream's path.
    Path(SocketAddr, String),
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(error) => {
                write!(f, "the thread for DNS over TCP, TLS and HTTPS cannot be started: {error}")
            }
            Self::Listen(address, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "cannot listen on {address} (TCP): ports below 1024 need the capability CAP_NET_BIND_SERVICE"
                )
            }
            Self::Listen(address, error) if error.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "{address} (TCP) is already in use; find the process with `ss -ltnp` and stop it, or set another port"
                )
            }
            Self::Listen(address, error) => write!(f, "cannot listen on {address} (TCP): {error}"),
            Self::NoCertificate => f.write_str("TLS and HTTPS need a certificate and its key"),
            Self::Certificate(fault) => fault.fmt(f),
            Self::Trust(address, fault) => write!(f, "upstream {address}: {fault}"),
            Self::Name(address, name) => write!(f, "upstream {address}: {name:?} is not a valid server name"),
            Self::Path(address, path) => write!(f, "upstream {address}: {path:?} is not a valid path"),
        }
    }
}

impl std::error::Error for StreamFault {}

impl UpstreamSettings {
    /// The upstream, with its authorities read.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn prepare(&self) -> Result<StreamUpstream, StreamFault> {
        let address = self.address;
        let client = |ca: &Option<PathBuf>, is_https| {
            upstream::client(ca.as_deref(), is_https).map_err(|fault| StreamFault::Trust(address, fault))
        };
        let server = |name: &String| {
            ServerName::try_from(name.clone()).map_err(|_| StreamFault::Name(address, name.clone()))
        };
        let transport = match &self.way {
            TransportSettings::Tcp => UpstreamTransport::Tcp,
            TransportSettings::Tls { name, ca } => {
                UpstreamTransport::Tls { name: server(name)?, config: client(ca, false)? }
            }
            TransportSettings::Https { name, ca, path } => UpstreamTransport::Https {
                name: server(name)?,
                config: client(ca, true)?,
                uri: self.uri(name, path)?,
            },
        };
        Ok(StreamUpstream { address, transport })
    }

    fn uri(&self, name: &str, path: &str) -> Result<Uri, StreamFault> {
        let host = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
        let authority = match self.address.port() {
            443 => host,
            port => format!("{host}:{port}"),
        };
        let uri = Uri::builder().scheme("https").authority(authority).path_and_query(path).build();
        uri.map_err(|_| StreamFault::Path(self.address, path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(address: &str, name: &str, path: &str) -> String {
        let way = TransportSettings::Tcp;
        let upstream = UpstreamSettings { address: address.parse().unwrap(), way };
        upstream.uri(name, path).map_or_else(|fault| fault.to_string(), |uri| uri.to_string())
    }

    #[test]
    fn the_uri_of_an_upstream_has_its_name_and_its_unusual_port() {
        assert_eq!(uri("192.0.2.1:443", "dns.example", "/dns-query"), "https://dns.example/dns-query");
        assert_eq!(uri("192.0.2.1:8443", "dns.example", "/x?y"), "https://dns.example:8443/x?y");
        assert_eq!(uri("192.0.2.1:443", "2001:db8::1", "/q"), "https://[2001:db8::1]/q");
        assert_eq!(
            uri("192.0.2.1:443", "dns.example", "/a b"),
            "upstream 192.0.2.1:443: \"/a b\" is not a valid path"
        );
    }
}
