//! Emulated machines with a Linux kernel of their own, each in the place of a host of a network.

mod qemu;

pub use qemu::{Accelerator, boot, has_module, image_version, why_not};
