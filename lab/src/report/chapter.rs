//! What a report has of each experiment, next to the results.

use crate::analyse::{About, Finding};

/// An experiment's part of a report.
#[derive(Clone, Debug)]
pub struct Chapter<'a> {
    /// What it is about.
    pub about: &'a About,
    /// The paper's statements and whether they hold.
    pub findings: Vec<Finding>,
}
