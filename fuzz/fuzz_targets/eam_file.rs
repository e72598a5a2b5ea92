//! libFuzzer's entry point; the target is in `targets/eam_file.rs`.
#![no_main]

#[path = "../targets/eam_file.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
