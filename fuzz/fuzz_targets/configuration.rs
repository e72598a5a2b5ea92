//! libFuzzer's way in; what is tried stands in `targets/configuration.rs`.
#![no_main]

#[path = "../targets/configuration.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
