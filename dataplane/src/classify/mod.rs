//! Which mechanism owns a packet, and whether its addresses may be forwarded.

mod destinations4;
pub mod ownership;
mod steering;

pub use destinations4::Destinations4;
pub use steering::{Owner, Steering, TunnelAddress};
