//! This machine's own kernel.

mod connections;
mod forward;
mod masquerade;

pub use connections::{delete_connections, memory_of_connections};
pub use forward::KernelForwarding;
pub use masquerade::{KernelMasquerade, Masquerade, connections};
