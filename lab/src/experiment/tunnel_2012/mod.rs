//! "6to4 router to router against native IPv4 and IPv6" (Bahaman, Hamid, Prabuwono 2012): three routers in a row, and a tunnel between the
//! outer ones.

mod breakdown;
mod connectivity;
mod findings;
mod flow;
mod hosts;
mod plan;
mod programs;
mod published;
mod smoothing;
mod stage;

pub use plan::Tunnel2012;
