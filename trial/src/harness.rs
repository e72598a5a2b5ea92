//! Runs the tests of a program, and the third outcome of a test: ignored, with the reason.

use crate::clock::timed;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::any::Any;
use std::fmt::Display;
use std::panic::resume_unwind;

/// A test that its attribute has registered.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Its path, beginning with the binary's name.
    pub name: &'static str,
    /// It passes if it returns.
    pub run: fn(),
}

inventory::collect!(Test);

/// Why a test cannot run: what [`ignore`] unwinds with.
struct Ignored(String);

/// Ends a test that cannot run here. A thread that a test starts and joins passes it on as any panic, with
/// [`resume_unwind`].
pub fn ignore(why: impl Display) -> ! {
    resume_unwind(Box::new(Ignored(why.to_string())))
}

/// Why a thread that ended in this way could not do what it was to do, if that is how it ended.
pub fn why_ignored(end: &(dyn Any + Send)) -> Option<&str> {
    end.downcast_ref::<Ignored>().map(|Ignored(why)| why.as_str())
}

/// Runs this binary's tests, with the command line and the output of the standard harness.
///
/// # Panics
///
/// If the binary has no test: its `#[test]` is then the standard one, which is never run.
pub fn main() {
    main_with(1);
}

/// The same for tests that wait more than they compute: `on_each` of them for each CPU in parallel, if the command line does not say how many.
///
/// # Panics
///
/// As [`main`].
pub fn main_with(on_each: usize) {
    let mut tests: Vec<Test> = inventory::iter::<Test>.into_iter().copied().collect();
    assert!(!tests.is_empty(), "no test: `#[macro_use] extern crate sixway_trial;` is missing");
    tests.sort_by_key(|test| test.name);
    let trials = tests.into_iter().map(|test| {
        let name = title(test.name);
        Trial::ignorable_test(name, move || timed(name, || outcome(test)))
    });
    let mut arguments = Arguments::from_args();
    arguments
        .test_threads
        .get_or_insert_with(|| std::thread::available_parallelism().map_or(1, usize::from) * on_each);
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// The path within the binary.
fn title(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, within)| within)
}

/// Runs a test in a thread of its own, so that what a test does to its thread ends with it.
fn outcome(test: Test) -> Result<Completion, Failed> {
    let thread = std::thread::Builder::new().name(title(test.name).to_owned()).spawn(test.run)?;
    match thread.join() {
        Ok(()) => Ok(Completion::Completed),
        Err(end) => match why_ignored(end.as_ref()) {
            Some(why) => Ok(Completion::ignored_with(why)),
            None => resume_unwind(end),
        },
    }
}
