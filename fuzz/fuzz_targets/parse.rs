//! libFuzzer's way in; what is tried stands in `targets/parse.rs`.
#![no_main]

#[path = "../targets/parse.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
