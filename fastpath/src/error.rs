//! Why steering is not possible, and what can be done about it.

use crate::{ADDRESSES, RANGES};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;

/// Why packets are not steered. Whatever it is, tunnel packets still come through raw sockets.
#[derive(Debug)]
pub enum SteeringError {
    /// The program was left out when this was built.
    NotBuilt,
    /// There is no interface of that name.
    NoInterface(String),
    /// More local addresses than [`ADDRESSES`].
    TooManyAddresses(usize),
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
        /// What it said.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SteeringError {
    /// Sorts what a call to the kernel said.
    #[cfg_attr(not(feature = "ebpf"), allow(dead_code, reason = "nothing is called then"))]
    pub(crate) fn new(doing: String, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        match os_error(&error).map(|error| error.kind()) {
            Some(io::ErrorKind::PermissionDenied) => Self::NotPermitted { doing },
            _ => Self::Refused { doing, error: Box::new(error) },
        }
    }
}

/// What was tried and everything that was said about it.
pub(crate) fn in_full(doing: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = format!("{doing}: {error}");
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        // Some errors repeat their cause, some leave it to the reader.
        if !message.contains(&said) {
            message += &format!(": {said}");
        }
        cause = next.source();
    }
    message
}

/// The kernel's own word at the end of the chain.
pub(crate) fn os_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl fmt::Display for SteeringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => {
                write!(f, "built without eBPF; build with clang installed and the feature \"ebpf\" on")
            }
            Self::NoInterface(name) => write!(f, "there is no interface {name}"),
            Self::TooManyAddresses(count) => write!(f, "{count} local addresses; at most {ADDRESSES}"),
            Self::TooManyRanges(address) => {
                write!(f, "the ports of {address} are in too many ranges; at most {RANGES}")
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
