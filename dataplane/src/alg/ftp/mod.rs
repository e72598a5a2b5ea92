//! FTP's control connection (RFC 959, RFC 2428, RFC 6384).

mod answer;
mod dialogue;
mod line;

pub(super) use answer::Answer;
pub(super) use dialogue::{Asked, Dialogue};

/// The port of FTP servers (RFC 959 §8, RFC 6384 §5).
pub(crate) const CONTROL_PORT: u16 = 21;
