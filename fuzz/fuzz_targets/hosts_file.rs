//! libFuzzer's entry point; the target is in `targets/hosts_file.rs`.
#![no_main]

#[path = "../targets/hosts_file.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
