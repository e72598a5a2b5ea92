//! The experiments at their smallest scale: that they run, that their counts add up, and that each row says whose limit it met. An experiment's file
//! here has its test, and a line in [`tests`].

mod devices;
mod failed;
mod gateway_2012;
mod hooks_cpu;
mod injected;
mod interrupted;
mod mechanisms_2006;
mod nat64_2014;
mod overload;
mod relay_2013;
mod remote;
mod rfc8219;
mod rfc8219_connections;
mod rfc8219_under_stress;
mod rootless;
mod scenes;
mod shaped;
mod tester;
mod tiny;
mod tools;
mod tunnel_2012;
mod walk_through;

use crate::Interop;
pub use tiny::say_how_long;

/// All tests of experiments; each has a CPU for its load.
pub fn tests() -> Vec<Interop> {
    [
        devices::TESTS,
        hooks_cpu::TESTS,
        failed::TESTS,
        gateway_2012::TESTS,
        injected::TESTS,
        interrupted::TESTS,
        mechanisms_2006::TESTS,
        nat64_2014::TESTS,
        overload::TESTS,
        relay_2013::TESTS,
        remote::TESTS,
        rfc8219::TESTS,
        rfc8219_connections::TESTS,
        rfc8219_under_stress::TESTS,
        rootless::TESTS,
        shaped::TESTS,
        tester::TESTS,
        tiny::TESTS,
        tools::TESTS,
        tunnel_2012::TESTS,
        walk_through::TESTS,
    ]
    .concat()
}
