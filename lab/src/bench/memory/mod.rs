//! The engine alone, in memory: from the packet as a link hands it over to the finished packet, on one core.
//!
//! Packets are written into the frames before each run of 256, as a link would have just read them; only the engine's own work (`process` and
//! `tick`, for each batch) is timed. Every packet of a pass must be forwarded, and one pass of each kind is checked against a slow,
//! independent computation of every checksum. Targets are multiples of yardsticks that are measured after each pass.

mod concentrator;
mod cpu_time;
mod ds_lite;
mod engine_bench;
mod established;
mod measure;
mod nat44;
mod nat46;
mod nat64;
mod packets;
mod siit;
mod softwire;
mod ten_million;
mod teredo;
mod tunnel;
mod yardstick;

pub use measure::run;
