//! Restores what other programs change or remove of the host's configuration while the gateway runs: a network manager that takes the
//! device down, removes routes it does not know or resets sysctls, a reload of the packet filter, a removed queueing discipline.

mod events;
mod guarded;
mod restored;
mod restraint;
mod tc_filters;

pub use events::RuleEvents;
pub use guarded::Suspicion;
pub(super) use guarded::{Guard, HostParts};
pub use restored::{Restored, Watched};
pub use tc_filters::TcFilters;
