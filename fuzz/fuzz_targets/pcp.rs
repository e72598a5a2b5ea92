//! libFuzzer's entry point; the target is in `targets/pcp.rs`.
#![no_main]

#[path = "../targets/pcp.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
