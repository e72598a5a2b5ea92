//! TUN devices: the gateway's own link to the host's network stack.
//!
//! Every packet carries a virtio_net header beside it, so that GSO packets pass whole in both directions: the kernel
//! neither cuts them before we see them nor need we cut them on the way back.

mod abilities;
mod device;
mod queue;
pub mod steering;
pub mod virtio;

pub use abilities::Abilities;
pub use device::{Persistence, Tun, TunConfig};
pub use queue::TunQueue;
pub use steering::{BlockMap, Steering};
