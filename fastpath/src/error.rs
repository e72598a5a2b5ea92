//! Why there is no fast path, and what can be done about it.

use crate::kernel_error::{in_full, os_error};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why packets are not carried on in the kernel. Whatever it is, the engine carries them.
#[derive(Debug)]
pub enum FastPathError {
    /// The programs were left out when this was built.
    NotBuilt,
    /// There is no interface of that name.
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
        /// What was said.
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
        /// What it said.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg_attr(not(feature = "ebpf"), allow(dead_code, reason = "nothing is called then"))]
impl FastPathError {
    /// Sorts what a call to the kernel said.
    pub(crate) fn new(
        doing: impl Into<String>,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        let doing = doing.into();
        // EACCES, which `io::ErrorKind` takes for the same, is the verifier's: what it said is to be read.
        match os_error(&error).and_then(io::Error::raw_os_error) {
            Some(libc::EPERM) => Self::NotPermitted { doing },
            _ => Self::Refused { doing, error: Box::new(error) },
        }
    }

    /// For `map_err`: sorts what was said when this was tried.
    pub(crate) fn when<E: std::error::Error + Send + Sync + 'static>(
        doing: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::new(doing, error)
    }

    /// The kernel's number, if it said one.
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
            Self::NoInterface(name) => write!(f, "there is no interface {name}"),
            Self::PinPath { path, why } => write!(f, "{}: {why}", path.display()),
            Self::NoDriver { interface, why } => {
                write!(
                    f,
                    "{interface}: its driver runs no XDP program ({why}); mode = \"tc\" or \"auto\" needs none"
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
