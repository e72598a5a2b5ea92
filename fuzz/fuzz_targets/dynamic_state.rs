//! libFuzzer's entry point; the target is in `targets/dynamic_state.rs`.
#![no_main]

#[path = "../targets/dynamic_state.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
