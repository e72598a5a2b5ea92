//! NPTv6 (RFC 6296): outbound, the prefix of a site's addresses is replaced by another one; inbound, the reverse.
//!
//! ```text
//!     fd01:203:405:1::1234 ─── site ─── [npt66] ─── Internet ─── 2001:db8:1:d550::1234
//!              inside fd01:203:405::/48      outside 2001:db8:1::/48
//! ```
//!
//! The remote address stays as it is. Ports do too (§6), and so does every checksum: one word of the address compensates for the prefix.

mod prefixes;
mod translator;

pub use prefixes::{Prefixes, PrefixesFault};
pub use translator::{Npt66, Npt66Config};
