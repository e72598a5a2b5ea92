//! libFuzzer's entry point; the target is in `targets/quoted.rs`.
#![no_main]

#[path = "../targets/quoted.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
