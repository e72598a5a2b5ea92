//! The question of an experiment, and the tables with its answer.

use super::published::Published;

/// What an experiment is about.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, such as `relay-2013`.
    pub name: &'static str,
    /// What it asks, in one sentence.
    pub question: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its network, drawn in text.
    pub topology: &'static str,
    /// What its rows mean, and how the replay differs from the original.
    pub notes: &'static [&'static str],
    /// Its tables.
    pub tables: &'static [Table],
    /// What was published.
    pub published: &'static [Published],
}

/// A table: a row for each device at each point.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its title.
    pub title: &'static str,
    /// The series of cells that it shows.
    pub series: &'static str,
    /// The axes whose values begin a row.
    pub axes: &'static [&'static str],
    /// What follows.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name of the value in samples.
    pub value: &'static str,
    /// The head of the column, without its unit.
    pub title: &'static str,
}
