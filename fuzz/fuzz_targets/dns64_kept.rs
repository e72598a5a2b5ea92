//! libFuzzer's entry point; the target is in `targets/dns64_kept.rs`.
#![no_main]

#[path = "../targets/dns64_kept.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
