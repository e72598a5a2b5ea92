//! libFuzzer's entry point; the target is in `targets/admin_request.rs`.
#![no_main]

#[path = "../targets/admin_request.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
