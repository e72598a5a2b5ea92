//! IPv4 addresses inside IPv6 ones, as automatic tunnels write them, and which of them may be believed.

pub mod embedded;
pub mod isatap;
pub mod own;
pub mod six_rd;
pub mod six_to_four;

pub use embedded::{Acceptable, Scope};
pub use own::OwnAddresses;
pub use six_rd::{Domain, DomainFault};
