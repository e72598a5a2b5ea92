//! libFuzzer's way in; what is tried stands in `targets/trust_anchor.rs`.
#![no_main]

#[path = "../targets/trust_anchor.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
