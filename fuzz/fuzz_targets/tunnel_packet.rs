//! libFuzzer's entry point; the target is in `targets/tunnel_packet.rs`.
#![no_main]

#[path = "../targets/tunnel_packet.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
