//! A test harness with a third outcome: a test that lacks a privilege, a program or a kernel feature is *ignored* at run time, with the
//! reason. The standard harness cannot do that.
//!
//! A test program uses it with `harness = false` in its `Cargo.toml` and these lines; its tests look like any others:
//!
//! ```ignore
//! #[macro_use]
//! extern crate sixway_trial;
//!
//! #[test]
//! fn root_may_do_it() {
//!     if !is_root() {
//!         sixway_trial::ignore("needs root");
//!     }
//! }
//!
//! fn main() {
//!     sixway_trial::main();
//! }
//! ```

mod budget;
mod clock;
mod harness;
mod second_try;

pub use budget::budget;
pub use clock::timed;
pub use harness::{Test, ignore, main, main_with, why_ignored};
pub use inventory;
pub use second_try::{SecondTries, attempt};
pub use sixway_trial_attribute::test;
