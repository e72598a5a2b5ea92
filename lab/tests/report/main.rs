//! The report: what its page has, and how it looks in a browser.

#[macro_use]
extern crate sixway_trial;

mod browser;
mod page;
mod published;
mod sample;
mod screenshot;
mod walk_through;

fn main() {
    sixway_trial::main();
}
