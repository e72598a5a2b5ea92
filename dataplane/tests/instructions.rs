//! The engine's instructions per packet do not exceed the recorded ones (`dataplane/examples/instructions/recorded`). It is a test of its own,
//! because it may have to be ignored: without valgrind, with another compiler, or without the optimised example, which `make test` builds.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test runs a program")]

#[macro_use]
extern crate sixway_trial;

use std::process::Command;

/// Says where the example is.
const VARIABLE: &str = "SIXWAY_INSTRUCTIONS";

#[test]
fn no_main_path_takes_2_percent_more_instructions_than_were_recorded() {
    let Ok(program) = std::env::var(VARIABLE) else {
        sixway_trial::ignore(format!("needs {VARIABLE}, the optimised example: make test"));
    };
    let compare = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/instructions/compare");
    let run = Command::new(compare).args(["--recorded", "--binary", &program]).output();
    let output = run.unwrap_or_else(|error| sixway_trial::ignore(format!("needs python3: {error}")));
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(3) {
        sixway_trial::ignore(said.lines().last().unwrap_or_default());
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

fn main() {
    sixway_trial::main();
}
