//! The papers' experiments at their smallest count: that they run, and that what is praised holds.

use crate::Interop;
use sixway_lab::experiment::relay_2013::{LOSS, QUICK, Relay, run};
use sixway_lab::failure::Result;

pub const TESTS: &[Interop] =
    &[Interop::new("ten_6to4_hosts_lose_nothing_and_wait_in_proportion", &["sixway"], relay_2013)];

fn relay_2013() -> Result<()> {
    let steps = run(Relay::Sixway, &QUICK, |_| ())?;
    assert!(steps.iter().all(|step| step.loss < LOSS), "{steps:#?}");
    // What else the machine does bends the line; that it is straight is judged where the experiment runs alone.
    let each: Vec<_> = steps.iter().map(|step| step.response.0 / step.hosts as f64).collect();
    assert!(each.iter().all(|milliseconds| *milliseconds < 3.0 * each[0]), "{steps:#?}");
    Ok(())
}
