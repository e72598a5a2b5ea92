//! Teredo (RFC 4380): IPv6 in UDP, and what may stand in front of and behind the IPv6 packet.
//!
//! ```text
//! | Authentication | Origin indication | IPv6 packet | Trailers (RFC 6081) |
//! ```
//!
//! Only the packet must be there. The first octet tells what follows: 0 before one of the two encapsulations, 0x6_ before the packet.

mod address;
mod authentication;
mod bubble;
mod destination;
mod origin;
mod port;
mod prologue;
mod trailer;

pub use address::{TEREDO_PREFIX, TeredoAddress, TeredoInterface};
pub use authentication::Authentication;
pub use bubble::{BUBBLE, bubble, is_bubble};
pub use destination::is_global_unicast;
pub use origin::{ORIGIN_INDICATION, Origin};
pub use port::TEREDO_PORT;
pub use prologue::Prologue;
pub use trailer::{BadTrailer, Trailer, Trailers, alternate};
