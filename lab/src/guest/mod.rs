//! Emulated machines with a Linux kernel of their own, each in the place of a host of a network; and computers that boot an image.

mod computer;
mod qemu;

pub use computer::{Computer, Start};
pub use qemu::{Accelerator, boot, has_module, image_folder, image_version, module_files, why_not};
