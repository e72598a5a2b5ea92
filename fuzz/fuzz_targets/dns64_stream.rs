//! libFuzzer's way in; what is tried stands in `targets/dns64_stream.rs`.
#![no_main]

#[path = "../targets/dns64_stream.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
