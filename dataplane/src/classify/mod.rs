//! Which mechanism owns a packet, and whether its addresses are fit to be forwarded at all.

mod destinations4;
pub mod ownership;
mod steering;

pub use destinations4::Destinations4;
pub use steering::{Owner, Steering, TunnelAddress};
