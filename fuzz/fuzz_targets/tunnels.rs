//! libFuzzer's entry point; the target is in `targets/tunnels.rs`.
#![no_main]

#[path = "../targets/tunnels.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
