//! What is measured from one host to another, with the tools that operators use.

pub mod cpu;
mod dnsperf;
mod iperf;
pub mod numbered;
mod ping;
mod ping_pong;
mod small_udp;
mod web;

pub use dnsperf::{Answers, Questions, dnsperf};
pub use iperf::{Bulk, BulkServer, Direction, serve_bulk};
pub use ping::{RoundTrips, ping};
pub use ping_pong::ping_pong;
pub use small_udp::{PAYLOAD, SmallUdp, flooded, flooded_counting, open, small_udp};
pub use web::{Page, fetch, fetch_from, serve_page};
