//! libFuzzer's entry point; the target is in `targets/teredo_client.rs`.
#![no_main]

#[path = "../targets/teredo_client.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
