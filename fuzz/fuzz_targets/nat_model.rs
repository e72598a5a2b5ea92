//! libFuzzer's entry point; the target is in `targets/nat_model.rs`.
#![no_main]

#[path = "../targets/nat_model.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
