//! Answers to clients, written into a buffer that is there already: nothing is allocated as long as it has room.
//!
//! Each function writes one whole message. What goes into it beside records says [`ResponseOptions`].

mod copy;
mod message;
mod options;
mod responses;
mod synthesis;

pub use options::{Embedded, LocalRecord, ResponseOptions};
pub use responses::{empty, filtered, local, passed_on, renamed, rewritten, unreadable};
pub use synthesis::synthesised;
