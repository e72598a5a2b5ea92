//! libFuzzer's entry point; the target is in `targets/pcp_kept.rs`.
#![no_main]

#[path = "../targets/pcp_kept.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
