//! The report of a run. It is pure: results in, text out.

mod chapter;
mod data;
mod escaped;
mod facts;
mod figure;
mod grid;
mod html;
mod markdown;
mod native;
mod palette;
mod plots;
mod svg;

pub use chapter::Chapter;
pub use data::{csv, data};
pub use figure::figure;
pub use html::html;
pub use markdown::markdown;
