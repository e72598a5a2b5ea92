//! From samples to statements. It is pure: no clock, no files, no namespaces.

mod about;
mod finding;
mod published;
mod series;
mod statistics;

pub use about::{About, Column, Table};
pub use finding::{Finding, Outcome};
pub use published::Published;
pub use series::{Group, groups, points};
pub use statistics::{Estimate, estimate};
