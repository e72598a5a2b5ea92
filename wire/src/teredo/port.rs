//! The service port.

/// UDP port of Teredo servers (RFC 4380 §2.7).
pub const TEREDO_PORT: u16 = 3544;
