//! Errors of steering, and how to fix them.

use super::own_address::{ADDRESSES, INNER_INTERFACES, RANGES};
use crate::kernel_error::{in_full, os_error};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;

/// Why packets are not steered. In every case tunnel packets still arrive through raw sockets.
#[derive(Debug)]
pub enum SteeringError {
    /// The program was left out when this was built.
    NotBuilt,
    /// No interface has this name.
    NoInterface(String),
    /// More local addresses than [`ADDRESSES`].
    TooManyAddresses(usize),
    /// More interfaces to inside hosts than [`INNER_INTERFACES`].
    TooManyInterfaces(usize),
    /// More ranges of ports of this address than [`RANGES`].
    TooManyRanges(Ipv4Addr),
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

impl SteeringError {
    /// Classifies an error of the kernel.
    #[cfg_attr(not(feature = "ebpf"), allow(dead_code, reason = "nothing is called then"))]
    pub(crate) fn new(doing: String, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        match os_error(&error).map(|error| error.kind()) {
            Some(io::ErrorKind::PermissionDenied) => Self::NotPermitted { doing },
            _ => Self::Refused { doing, error: Box::new(error) },
        }
    }
}

impl fmt::Display for SteeringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => {
                write!(f, "built without eBPF; build with clang installed and the feature \"ebpf\" on")
            }
            Self::NoInterface(name) => write!(f, "interface {name} does not exist"),
            Self::TooManyAddresses(count) => write!(f, "{count} local addresses; at most {ADDRESSES}"),
            Self::TooManyInterfaces(count) => {
                write!(f, "{count} interfaces lead to inside hosts; at most {INNER_INTERFACES}")
            }
            Self::TooManyRanges(address) => {
                write!(f, "too many port ranges for {address}; at most {RANGES}")
            }
            Self::NotPermitted { doing } => write!(
                f,
                "{doing}: not permitted; run as root, or with CAP_BPF and CAP_NET_ADMIN (before Linux 5.8 CAP_SYS_ADMIN), and not in \
                 a container that forbids bpf(2)"
            ),
            Self::Refused { doing, error } => f.write_str(&in_full(doing, error.as_ref())),
        }
    }
}

impl std::error::Error for SteeringError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { error, .. } => Some(error.as_ref()),
            Self::NotBuilt
            | Self::NoInterface(_)
            | Self::TooManyAddresses(_)
            | Self::TooManyInterfaces(_)
            | Self::TooManyRanges(_)
            | Self::NotPermitted { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_how_to_mend() {
        let denied = SteeringError::new("load".into(), io::Error::from_raw_os_error(1));
        assert!(denied.to_string().contains("CAP_BPF"), "{denied}");
        let refused = SteeringError::new("attach".into(), io::Error::from_raw_os_error(22));
        assert!(refused.to_string().starts_with("attach: Invalid argument"), "{refused}");
        assert!(SteeringError::NotBuilt.to_string().contains("clang"));
    }
}
