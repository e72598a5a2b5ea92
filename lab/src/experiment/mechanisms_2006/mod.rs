//! Six mechanisms against native IPv4 and IPv6 (Shin, Kim, Santay, Montgomery 2006): tunnels and translators in one network, and what their headers
//! cost.

mod control;
mod farther;
mod findings;
mod ipsec;
mod narrow;
mod overhead;
mod plan;
mod published;
mod stage;

pub use plan::Mechanisms2006;
