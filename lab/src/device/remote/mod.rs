//! Devices on other machines, each driven by a recipe: a shell script that runs there.
//!
//! ```text
//! namespace of the host:   in0 ── bridge ── an interface of this machine ─── cable ─── inside interface of the device
//!                          out0 ── bridge ── another one ─────────────────── cable ─── outside interface
//! ```

mod device;
mod environment;
mod interfaces;
mod recipe;
mod request;
#[cfg(test)]
mod shipped;

pub use device::Remote;
pub use recipe::{ACTIONS, Recipe};
pub use request::Request;
