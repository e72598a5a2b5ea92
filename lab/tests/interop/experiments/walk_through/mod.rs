//! The device and the experiment of the walk-through in docs/lab-extending.md, which are these files: they are compiled and run.

mod device;
mod experiment;

use super::tiny::run_with;
use crate::Interop;
use device::Filtered;
use experiment::Pings;
use sixway_lab::analyse::Outcome;
use sixway_lab::device::find;
use sixway_lab::experiment::Experiment as _;
use sixway_lab::failure::{Failure, Result};

pub const TESTS: &[Interop] =
    &[Interop::new("the_walk_through_measures", &["ping", "nft"], the_walk_through_measures)];

fn the_walk_through_measures() -> Result<()> {
    let kernel = find("kernel").ok_or_else(|| Failure::Unexpected("no kernel".to_owned()))?;
    let results = run_with(
        &Pings,
        &[&Filtered, kernel],
        &["kernel", "kernel-filtered"],
        &[("octets", "64,1400")],
        None,
    )?;
    assert_eq!(results.samples.len(), 4, "two devices, two sizes");
    for sample in &results.samples {
        assert_eq!(sample.failed, None);
        assert!(sample.values["response"].value > 0.0, "{sample:#?}");
    }
    assert_eq!(Pings.findings(&results)[0].outcome, Outcome::Holds, "{results:#?}");
    Ok(())
}
