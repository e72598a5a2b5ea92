//! libFuzzer's entry point; the target is in `targets/option_6rd.rs`.
#![no_main]

#[path = "../targets/option_6rd.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
