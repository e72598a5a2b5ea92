//! TUN devices: the gateway's own link to the host's network stack.
//!
//! Every packet has a virtio_net header in front of it, so that GSO packets are passed unsegmented in both directions.

mod abilities;
mod device;
pub mod ebpf;
pub mod overload_filter;
mod queue;
pub mod steering;
pub mod virtio;

pub use abilities::Abilities;
pub use device::{Persistence, Tun, TunConfig};
pub use overload_filter::OverloadFilter;
pub use queue::TunQueue;
pub use steering::{BlockMap, Steering};
