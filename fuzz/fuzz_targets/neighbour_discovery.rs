//! libFuzzer's entry point; the target is in `targets/neighbour_discovery.rs`.
#![no_main]

#[path = "../targets/neighbour_discovery.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
