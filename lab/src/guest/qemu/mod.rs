//! QEMU with Debian's kernel for virtual machines, which is unpacked and not installed (`make guest`).
//!
//! ```text
//! namespace of the host:   up0 (veth) ── bridge-up0 ── tap-up0 ── qemu ── guest: eth0 (virtio)
//!                          virtiofsd, which shows the machine's files to the guest
//! ```
//!
//! The guest sees the machine's files, read-only, so every program that is installed runs in it; the network's folder it may write. A command
//! goes in as a script in that folder and a line on the guest's console, and comes back as files, as in
//! [`kernel_peer`](crate::kernel_peer).

mod ability;
mod archive;
mod files;
mod machine;

pub use ability::why_not;
pub use files::{has_module, image_folder, image_version, module_files};
pub use machine::{Accelerator, boot};
