//! PEM files. A certificate or key that TLS could not use is reported when the configuration is read.

use std::io;
use std::path::{Path, PathBuf};

use rustls::crypto::ring;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{self, RootCertStore};

use crate::fault::{Place, Report};

/// The line that certificates begin with.
pub(super) const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The end of the line that private keys begin with.
pub(super) const KEY: &str = "PRIVATE KEY-----";

/// The message about a file that ends within a certificate or key, or is not base64 there.
const DAMAGED: &str = "is truncated or damaged; replace the file";

/// A file that was named.
#[derive(Debug)]
pub(super) struct Pem {
    /// Where it is.
    pub path: PathBuf,
    /// Where it was named.
    pub place: Place,
    /// Its contents; `None`: it was not needed, or a fault was reported.
    pub text: Option<String>,
}

/// The text of a file with such a line; else the fault is reported.
pub(super) fn read(
    path: &Path,
    mark: &str,
    place: &Place,
    read_file: &mut dyn FnMut(&Path) -> io::Result<String>,
    report: &mut Report,
) -> Option<String> {
    let what = match read_file(path) {
        Ok(text) if text.contains(mark) => return Some(text),
        Ok(_) => {
            let block = mark.trim_matches('-').trim_start_matches("BEGIN ");
            format!("contains no PEM block \"{block}\"; write the path of a PEM file")
        }
        Err(error) => format!("cannot be read: {error}"),
    };
    report.fault(place, what);
    None
}

/// Reports a key that is not that of the certificate, and what neither is.
pub(super) fn check_pair(certificate: &Pem, key: &Pem, report: &mut Report) {
    let (Some(chain), Some(secret)) = (&certificate.text, &key.text) else { return };
    let chain = certificates(chain, &certificate.place, report);
    let secret = PrivateKeyDer::from_pem_slice(secret.as_bytes()).map_err(|error| match error {
        Error::NoItemsFound => {
            "contains no private key without a passphrase; write one as BEGIN PRIVATE KEY".to_owned()
        }
        _ => DAMAGED.to_owned(),
    });
    match (chain, secret) {
        (_, Err(what)) => report.fault(&key.place, what),
        (None, Ok(_)) => {}
        (Some(chain), Ok(secret)) => match CertifiedKey::from_der(chain, secret, &ring::default_provider()) {
            Ok(_) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let path = certificate.path.display();
                report.fault(
                    &key.place,
                    format!("does not match the first certificate in {path}; use the matching key"),
                );
            }
            Err(error) => report.fault(&key.place, format!("cannot be used with the certificate: {error}")),
        },
    }
}

/// Reports certificates of authorities that cannot be used.
pub(super) fn check_authorities(text: &str, place: &Place, report: &mut Report) {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text, place, report).into_iter().flatten() {
        if let Err(error) = roots.add(certificate) {
            report.fault(place, format!("contains an invalid certificate: {error}"));
        }
    }
}

/// Those of a file; else the fault is reported.
fn certificates(text: &str, place: &Place, report: &mut Report) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let what = match found {
        Ok(found) if !found.is_empty() => return Some(found),
        Ok(_) => "contains no certificate; write a PEM file",
        Err(_) => DAMAGED,
    };
    report.fault(place, what);
    None
}
