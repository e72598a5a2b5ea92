//! Sixway, by each of its data paths.

mod configuration;
mod tun;

pub use tun::SixwayOnTun;
