//! The integration tests, one program: each file is a module, and `cargo test -p sixway --test all life::` runs one of them.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::duplicate_mod, reason = "each fuzz target brings what it needs")]

#[macro_use]
extern crate sixway_trial;

mod admin;
mod blocks;
mod configuration_page;
mod dns64;
mod life;
mod operations_page;
mod replay;
mod show;
mod worker;

fn main() {
    // They wait for programs and clocks more than they compute.
    sixway_trial::main_with(2);
}
