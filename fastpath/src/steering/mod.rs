//! Steering: packets for this host's own addresses are redirected to the TUN device at tc ingress (`bpf/steer.bpf.c`).

#[cfg(feature = "ebpf")]
mod attachment;
mod error;
#[cfg(feature = "ebpf")]
mod filter;
mod hook;
mod own_address;

#[cfg(feature = "ebpf")]
pub use attachment::Steering;
pub use error::SteeringError;
pub use hook::{Hook, STEERING_PROGRAM, Taken};
pub use own_address::{ADDRESSES, INNER_INTERFACES, InsideHosts, OwnAddress, RANGES};
