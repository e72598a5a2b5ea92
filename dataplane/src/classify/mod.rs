//! Which mechanism owns a packet, and whether its addresses may be forwarded.

mod destinations4;
pub mod ownership;
mod port_owners;
mod steering;

pub use destinations4::Destinations4;
pub use port_owners::{DividedAddresses, PortClaim, PortOwners, Ports4};
pub use steering::{Owner, Steering, TunnelAddress};
