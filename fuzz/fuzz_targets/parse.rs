//! libFuzzer's entry point; the target is in `targets/parse.rs`.
#![no_main]

#[path = "../targets/parse.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
