//! The integration tests, one program: each file is a module, and `cargo test -p sixway-fastpath --test all verifier::` runs one of them.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::duplicate_mod, reason = "each fuzz target brings what it needs")]

#[macro_use]
extern crate sixway_trial;

mod differential;
mod fast_path;
mod flows;
mod layout;
mod replay;
mod rules;
mod steering;
#[path = "../../link/tests/support/mod.rs"]
mod support;
mod verifier;

fn main() {
    sixway_trial::main();
}
