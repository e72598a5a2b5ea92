//! libFuzzer's entry point; the target is in `targets/configuration.rs`.
#![no_main]

#[path = "../targets/configuration.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
