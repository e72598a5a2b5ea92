//! libFuzzer's way in; what is tried stands in `targets/fast_path.rs`.
#![no_main]

#[path = "../targets/fast_path.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
