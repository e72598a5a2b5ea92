//! libFuzzer's entry point; the target is in `targets/pcap.rs`.
#![no_main]

#[path = "../targets/pcap.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
