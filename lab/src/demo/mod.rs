//! `make demo`: a site behind `sixway up`. Hosts of each kind reach servers of each kind, hosts outside cannot open connections to them, and the
//! host is as before at the end. Then other mechanisms follow, in separate networks.

mod demonstration;
mod end;
mod faults;
mod kept_out;
mod mapping;
mod pairs;
mod ways;

pub use demonstration::{Options, run};
