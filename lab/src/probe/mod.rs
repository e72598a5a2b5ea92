//! Measurements from one host to another, with the tools that operators use.

pub mod cpu;
mod ditg;
mod dnsperf;
mod ftp;
mod iperf;
mod mgen;
pub mod numbered;
mod openvpn;
mod ping;
mod ping_pong;
mod sipp;
mod small_udp;
mod tool;
mod web;
mod wget;

pub use ditg::{DitgLoad, DitgReport, ditg};
pub use dnsperf::{Answers, Paced, Questions, dnsperf, dnsperf_at};
pub use ftp::{fetch_file, serve_file};
pub use iperf::{Bulk, BulkServer, Direction, serve_bulk, udp_by_iperf};
pub use mgen::{MgenReport, mgen};
pub use openvpn::{VPN_FAR, openvpn, openvpns, vpn_ends};
pub use ping::{RoundTrips, answered, ping};
pub use ping_pong::ping_pong;
pub use sipp::{SIPP_PORT, SippReport, sipp};
pub use small_udp::{PAYLOAD, SmallUdp, flooded, flooded_counting, open, small_udp};
pub use tool::Tool;
pub use web::{Page, fetch, fetch_from, serve_page};
pub use wget::{wget, wget_beside};
