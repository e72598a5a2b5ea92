//! FTP's control connection (RFC 959, RFC 2428, RFC 6384).

mod answer;
mod dialogue;
mod line;
mod verb;

pub(super) use answer::Answer;
pub(crate) use dialogue::CONTROL_PORT;
pub(super) use dialogue::{Asked, Dialogue};
pub(super) use verb::HEAD;
