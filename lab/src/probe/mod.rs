//! What is measured from one host to another, with the tools that operators use.

mod iperf;
mod ping;
mod web;

pub use iperf::{Bulk, Direction, bulk_tcp, serve_bulk};
pub use ping::{RoundTrips, ping};
pub use web::{Page, fetch, serve_page};
