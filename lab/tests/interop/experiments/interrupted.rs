//! A run that is killed, and goes on.

use crate::Interop;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt::wait_until;
use sixway_lab::results::{Cell, read};
use sixway_lab::topology::{self, Network};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Interop] =
    &[Interop::new("a_run_that_is_killed_goes_on_where_it_ended", &["sixway"], a_run_goes_on)];

/// The lab with a run of four cells in one network.
fn lab(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sixway-lab"));
    command.args([
        "run",
        "relay-2013",
        "--quick",
        "--scale",
        "0.01",
        "--repeats",
        "1",
        "--set",
        "hosts=1,2,3,4",
    ]);
    command.args(["--devices", "sixway", "--out"]).arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn measured(out: &Path) -> Vec<String> {
    let samples = read(out).map(|results| results.samples).unwrap_or_default();
    samples.iter().map(|sample| sample.cell.key()).collect()
}

fn a_run_goes_on() -> Result<()> {
    let folder = Network::new(&[])?;
    let out = folder.folder().join("results");
    let mut first = lab(&out).spawn().asking(|| "starting the lab".to_owned())?;
    let some = wait_until(Duration::from_secs(120), "the first sample", || Ok(!measured(&out).is_empty()));
    // SIGKILL: nothing is cleaned up.
    first.kill().asking(|| "killing the lab".to_owned())?;
    let died_with = first.wait().asking(|| "waiting for the lab".to_owned())?;
    let left: Vec<_> = topology::stale().into_iter().filter(|stale| stale.owner == first.id()).collect();
    let mut namespaces = 0;
    for network in &left {
        namespaces += topology::remove(&network.suffix)?;
    }
    some?;
    assert!(died_with.code().is_none(), "{died_with} before it was killed");
    assert!(namespaces > 0, "what a killed lab leaves is found by its owner: {left:?}");
    assert!(left.iter().all(|network| topology::left_over(&network.suffix).is_empty()), "{left:?}");

    let before = measured(&out);
    let second = lab(&out).status().asking(|| "starting the lab again".to_owned())?;
    if !second.success() {
        return Err(Failure::Unexpected(format!("the resumed run ended with {second}")));
    }
    let text = std::fs::read_to_string(out.join("samples.jsonl")).unwrap_or_default();
    let keys: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|sample| serde_json::from_value::<Cell>(sample["cell"].clone()).ok())
        .map(|cell| cell.key())
        .collect();
    let once: BTreeSet<_> = keys.iter().collect();
    assert_eq!(keys.len(), 4, "four loads: {keys:?}");
    assert_eq!(once.len(), keys.len(), "none is measured twice: {keys:?}");
    assert!(keys.starts_with(&before), "{before:?} {keys:?}");
    assert!(out.join("report.html").is_file());
    Ok(())
}
