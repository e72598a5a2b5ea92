//! libFuzzer's entry point; the target is in `targets/validation.rs`.
#![no_main]

#[path = "../targets/validation.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
