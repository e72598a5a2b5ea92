//! A real Linux kernel as a host of a network: User-Mode Linux (Debian's `user-mode-linux`) runs as an ordinary process in a namespace, needs
//! no rights on the machine beyond those of the lab, and brings the tunnels that the machine's own kernel may not have.
//!
//! ```text
//! namespace of the host:   up0 (veth) ── bridge-up0 ── tap-up0 ── guest: eth0
//! ```
//!
//! The guest sees the machine's files, read-only, so every program that is installed runs in it; the network's folder it may write. A command
//! goes in as a script in that folder and a line on the guest's console, and comes back as files. The guest ends with the network.

mod ability;
mod console;
mod guest;
mod linux_uml;
mod module_files;
mod plug;

pub use ability::why_not;
pub use console::Console;
pub use guest::{Features, INIT, KernelPeer, NEEDS, boot};
pub use module_files::with_six_rd;
pub use plug::{Tap, plug};
