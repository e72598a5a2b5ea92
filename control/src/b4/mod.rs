//! The B4 of DS-Lite (RFC 6333 §5): which AFTR it uses.
//!
//! ```text
//!     lease        what a DHCPv6 client wrote ─▶ the AFTR's name (RFC 6334)
//!     aftr_query   the name ─▶ a DNS query; a reply ─▶ addresses and their TTL
//!     aftr_choice  the addresses, and whether anything comes back ─▶ the one in use
//! ```

mod aftr_choice;
mod aftr_query;
mod lease;

pub use aftr_choice::{AftrChoice, GIVEN_UP_AFTER, Observed};
pub use aftr_query::{AftrAddresses, AftrQuery, ReplyFault};
pub use lease::aftr_in;
