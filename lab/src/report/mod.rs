//! What a run has measured, for people. It is pure: results in, text out.

mod chapter;
mod figure;
mod markdown;

pub use chapter::Chapter;
pub use markdown::markdown;
