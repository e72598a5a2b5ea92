//! gateway-2012: a site's 6to4 gateway with NAT on one box against two boxes in a row.

mod compared;
mod findings;
mod form;
mod goals;
mod measures;
mod mostly;
mod pairings;
mod plan;
mod published;
mod scene;
mod stage;
mod topology;

pub use plan::Gateway2012;
