//! libFuzzer's way in; what is tried stands in `targets/quoted.rs`.
#![no_main]

#[path = "../targets/quoted.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
