//! Response codes (RFC 1035 §4.1.1).

/// RCODE 0.
pub const NOERROR: u16 = 0;
/// RCODE 1.
pub(super) const FORMERR: u16 = 1;
/// RCODE 2.
pub const SERVFAIL: u16 = 2;
/// RCODE 3: the name does not exist.
pub const NXDOMAIN: u16 = 3;
/// RCODE 4.
pub(super) const NOTIMP: u16 = 4;
/// RCODE 5.
pub const REFUSED: u16 = 5;
