//! libFuzzer's way in; what is tried stands in `targets/eam_file.rs`.
#![no_main]

#[path = "../targets/eam_file.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
