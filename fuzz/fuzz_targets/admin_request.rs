//! libFuzzer's way in; what is tried stands in `targets/admin_request.rs`.
#![no_main]

#[path = "../targets/admin_request.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
