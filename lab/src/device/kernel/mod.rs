//! This machine's own kernel.

mod forward;

pub use forward::KernelForwarding;
