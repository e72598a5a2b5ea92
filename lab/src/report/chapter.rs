//! The parts of a report for each experiment, next to the results.

use crate::analyse::{About, Drawing, Figure, Finding, Headline};

/// An experiment's part of a report.
#[derive(Clone, Debug)]
pub struct Chapter<'a> {
    /// What it is about.
    pub about: &'a About,
    /// Its network; without it, the text of [`About::topology`] is shown.
    pub drawing: Option<&'a Drawing>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// The paper's ratios.
    pub headlines: &'a [Headline],
    /// The paper's statements and whether they hold.
    pub findings: Vec<Finding>,
}
