//! Errors of the fast path, and how to fix them.

use crate::kernel_error::{in_full, os_error};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why packets are not forwarded in the kernel. In every case the engine forwards them.
#[derive(Debug)]
pub enum FastPathError {
    /// The programs were left out when this was built.
    NotBuilt,
    /// No interface has this name.
    NoInterface(String),
    /// The folder of the pins cannot be used.
    PinPath {
        /// It.
        path: PathBuf,
        /// Why not, and what can be done.
        why: String,
    },
    /// The interface's driver does not run programs, which was demanded.
    NoDriver {
        /// It.
        interface: String,
        /// The error.
        why: String,
    },
    /// The kernel does not let this process load or attach programs.
    NotPermitted {
        /// What was tried.
        doing: String,
    },
    /// The kernel refused, for another reason.
    Refused {
        /// What was tried.
        doing: String,
        /// Its error.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg_attr(not(feature = "ebpf"), allow(dead_code, reason = "nothing is called then"))]
impl FastPathError {
    /// Classifies an error of the kernel.
    pub(crate) fn new(
        doing: impl Into<String>,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        let doing = doing.into();
        // EPERM only: EACCES, which `io::ErrorKind` also maps to PermissionDenied, comes from the verifier, whose message must be shown.
        match os_error(&error).and_then(io::Error::raw_os_error) {
            Some(libc::EPERM) => Self::NotPermitted { doing },
            _ => Self::Refused { doing, error: Box::new(error) },
        }
    }

    /// For `map_err`: classifies the error of this operation.
    pub(crate) fn when<E: std::error::Error + Send + Sync + 'static>(
        doing: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::new(doing, error)
    }

    /// The errno, if there is one.
    pub(crate) fn number(&self) -> Option<i32> {
        match self {
            Self::Refused { error, .. } => os_error(error.as_ref()).and_then(io::Error::raw_os_error),
            _ => None,
        }
    }
}

impl fmt::Display for FastPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => {
                f.write_str("built without eBPF; build with clang installed and the feature \"ebpf\" on")
            }
            Self::NoInterface(name) => write!(f, "interface {name} does not exist"),
            Self::PinPath { path, why } => write!(f, "{}: {why}", path.display()),
            Self::NoDriver { interface, why } => {
                write!(
                    f,
                    "{interface}: its driver does not run XDP programs ({why}); set mode = \"tc\" or \"auto\""
                )
            }
            Self::NotPermitted { doing } => write!(
                f,
                "{doing}: not permitted; run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and not in a container that \
                 forbids bpf(2)"
            ),
            Self::Refused { doing, error } => f.write_str(&in_full(doing, error.as_ref())),
        }
    }
}

impl std::error::Error for FastPathError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { error, .. } => Some(error.as_ref()),
            _ => None,
        }
    }
}
