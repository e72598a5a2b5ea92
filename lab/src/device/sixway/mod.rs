//! Sixway, by each of its data paths.

mod configuration;
mod device;
mod stateless;

pub use configuration::configuration;
pub use device::{AT_TC, AT_XDP, ON_TUN};
pub use stateless::StatelessAndMasquerade;
