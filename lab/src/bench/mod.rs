//! `make bench`: what was measured, beside what is to be reached.

use crate::failure::Result;

/// How the benchmark runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Runs it.
pub fn run(_options: &Options) -> Result<()> {
    Ok(())
}
