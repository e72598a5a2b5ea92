//! Answers to clients, written into the caller's buffer: nothing is allocated as long as it has room.
//!
//! Each function writes one whole message. [`ResponseOptions`] has everything in it that is not a record.

mod copy;
mod message;
mod options;
mod responses;
mod synthesis;

pub use options::{Embedded, LocalRecord, ResponseOptions};
pub use responses::{empty, filtered, forwarded, local, renamed, rewritten, unreadable, withheld};
pub use synthesis::{mapped, synthesised};
