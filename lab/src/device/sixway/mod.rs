//! Sixway, by each of its data paths.

mod configuration;
mod device;
mod stateless;

pub use configuration::configuration;
pub use device::{AT_TC, AT_TC_POLLING, AT_XDP, AT_XDP_POLLING, ON_TUN, POLLING};
pub use stateless::StatelessAndMasquerade;
