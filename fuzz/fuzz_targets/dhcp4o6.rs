//! libFuzzer's entry point; the target is in `targets/dhcp4o6.rs`.
#![no_main]

#[path = "../targets/dhcp4o6.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
