//! `make demo`: a site behind `sixway up`. Hosts of each kind reach servers of each kind, nobody outside reaches them unasked, and nothing is left.
//! After it, further ways in networks of their own.

mod demonstration;
mod end;
mod faults;
mod kept_out;
mod mapping;
mod pairs;
mod ways;

pub use demonstration::{Options, run};
