//! libFuzzer's way in; what is tried stands in `targets/tunnels.rs`.
#![no_main]

#[path = "../targets/tunnels.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
