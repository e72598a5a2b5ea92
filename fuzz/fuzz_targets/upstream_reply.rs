//! libFuzzer's entry point; the target is in `targets/upstream_reply.rs`.
#![no_main]

#[path = "../targets/upstream_reply.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
