//! libFuzzer's entry point; the target is in `targets/engine.rs`.
#![no_main]

#[path = "../targets/engine.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
