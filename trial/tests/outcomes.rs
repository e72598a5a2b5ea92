//! What becomes of tests that pass, fail and cannot run: the binary runs itself again with the tests of [`sample`].
#![allow(clippy::unwrap_used, reason = "tests")]

#[macro_use]
extern crate sixway_trial;

use std::path::Path;
use std::process::Command;

/// Set for the run that is looked at; the tests below do nothing without.
const LOOKED_AT: &str = "SIXWAY_TRIAL_SAMPLE";

mod sample {
    use super::LOOKED_AT;

    fn is_looked_at() -> bool {
        std::env::var_os(LOOKED_AT).is_some()
    }

    #[test]
    fn one_that_passes() {}

    #[test]
    fn one_that_cannot_run() {
        if is_looked_at() {
            let thread = std::thread::spawn(|| sixway_trial::ignore("needs the moon"));
            thread.join().unwrap_or_else(|end| std::panic::resume_unwind(end));
        }
    }

    #[test]
    fn one_that_fails() {
        assert!(!is_looked_at(), "as it should");
    }
}

/// What it says, and whether it ends well.
fn run(words: &[&str]) -> (String, bool) {
    run_with_times(words, Path::new("/dev/null"))
}

/// The same; the times of its tests go there.
fn run_with_times(words: &[&str], times: &Path) -> (String, bool) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(words).env(LOOKED_AT, "1").env("SIXWAY_TIMES", times).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

#[test]
fn the_time_of_each_test_is_told_however_it_ends() {
    let path = std::env::temp_dir().join(format!("sixway-outcomes-{}", std::process::id()));
    std::fs::write(&path, "").unwrap();
    run_with_times(&["sample::"], &path);
    let told = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut names: Vec<_> = told.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert!(names.iter().all(|(seconds, _)| seconds.parse::<f64>().is_ok()), "{told}");
    names.sort_unstable_by_key(|(_, name)| *name);
    let names: Vec<_> = names.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["sample::one_that_cannot_run", "sample::one_that_fails", "sample::one_that_passes"]);
}

#[test]
fn a_test_that_cannot_run_is_ignored_with_its_reason() {
    let (said, well) = run(&["sample::one_that_cannot"]);
    assert!(said.contains("test sample::one_that_cannot_run ... ignored (needs the moon)"), "{said}");
    assert!(said.contains("test result: ok. 0 passed; 0 failed; 1 ignored"), "{said}");
    assert!(well);
}

#[test]
fn a_test_that_fails_fails_its_binary() {
    let (said, well) = run(&["sample::"]);
    assert!(said.contains("test result: FAILED. 1 passed; 1 failed; 1 ignored"), "{said}");
    assert!(said.contains("as it should") && !well, "{said}");
}

#[test]
fn a_test_is_found_by_its_name() {
    let (said, well) = run(&["--exact", "sample::one_that_passes"]);
    assert!(said.contains("test sample::one_that_passes ... ok") && well, "{said}");
    assert!(said.contains("1 passed; 0 failed; 0 ignored"), "{said}");
}

fn main() {
    sixway_trial::main();
}
