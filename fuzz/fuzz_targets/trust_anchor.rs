//! libFuzzer's entry point; the target is in `targets/trust_anchor.rs`.
#![no_main]

#[path = "../targets/trust_anchor.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
