//! Devices and hosts on other machines, each driven by a recipe: a shell script that runs there.
//!
//! ```text
//! namespace of the host:   in0 ── bridge ── an interface of this machine ─── cable ─── inside interface of the device
//!                          out0 ── bridge ── another one ─────────────────── cable ─── outside interface
//! ```

mod device;
mod environment;
mod host;
mod interfaces;
mod recipe;
mod request;
#[cfg(test)]
mod shipped;

pub use device::Remote;
pub use host::{Host, HostRequest, RemoteHost};
pub use recipe::{ACTIONS, HOST_ACTIONS, Recipe};
pub use request::Request;
