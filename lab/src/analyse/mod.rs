//! From samples to statements. It is pure: no clock, no files, no namespaces.

mod about;
mod compare;
mod conditions;
mod drawing;
mod figure;
mod finding;
mod headline;
mod noise;
mod published;
mod ratio;
mod series;
mod statistics;
#[cfg(test)]
mod tests;
mod view;

pub use about::{About, Column, Table};
pub use compare::{Change, Comparison, Direction, compare};
pub use conditions::Difference;
pub use drawing::{Drawing, Node, Part, Wire};
pub use figure::{Figure, Kind, figures_of};
pub use finding::{Finding, Outcome};
pub use headline::{Headline, Place, Today};
pub use noise::noise;
pub use published::Published;
pub use ratio::{Bearing, Ratio, short};
pub use series::{Group, greatest, groups, points};
pub use statistics::{Estimate, Middle, estimate, middle};
pub use view::{View, not_comparable};
