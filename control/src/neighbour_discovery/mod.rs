//! The messages of Neighbor Discovery (RFC 4861 §4): octets to values and back, and the checks that a message must pass (§6.1, §7.1).
//!
//! A message that fails a check is refused whole. An option that is unknown, or whose own length or contents are wrong, is skipped as
//! if it were not there, as RFC 4861 §6.1 and the options' own RFCs ask.

mod address;
mod domain_name;
mod malformed;
mod message;
mod option;
mod packet;
mod pref64;
mod preference;

pub(crate) use address::link_local_locator_of;
pub use address::{ALL_NODES, ALL_ROUTERS, is_link_local};
pub use domain_name::{DomainName, DomainNameError};
pub use malformed::Malformed;
pub use message::{
    Message, NeighbourAdvertisement, NeighbourSolicitation, RouterAdvertisement, RouterSolicitation,
};
pub use option::{INFINITY, NdOption, PrefixInformation, RouteInformation};
pub use packet::{HOP_LIMIT, Received, Transmission};
pub use pref64::{Pref64, Pref64Error, ScaledLifetime};
pub use preference::Preference;
