//! libFuzzer's way in; what is tried stands in `targets/upstream_reply.rs`.
#![no_main]

#[path = "../targets/upstream_reply.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
