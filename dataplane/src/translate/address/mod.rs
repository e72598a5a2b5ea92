//! Which IPv6 address represents which IPv4 address: by algorithm (RFC 6052) and by table (RFC 7757).

pub mod eam;
pub mod eam_file;
pub(crate) mod free_addresses;
pub mod non_global;
pub mod rfc6052;

pub use eam::{EamError, EamErrorKind, EamTable};
pub use eam_file::{EamLineError, parse_eam_file};
pub use rfc6052::{Rfc6052, Rfc6052Error};
