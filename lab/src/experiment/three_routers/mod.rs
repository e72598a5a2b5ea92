//! Three routers in a row between two hosts, with native IPv4 and IPv6 on the whole way, and a mechanism between its ends: the network of two papers.

mod at_work;
mod bad_path;
mod renewal;
mod timers;
mod topology;
mod way;

pub use at_work::{AtWork, Stream, any, bits_per_second};
pub use bad_path::BadPath;
pub use renewal::Renewal;
pub use timers::{Interval, Timers};
pub use topology::{DRAWING, DRAWN, Terrain};
pub use way::{NATIVE4, NATIVE6, Target, Way};
