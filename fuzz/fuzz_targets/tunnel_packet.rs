//! libFuzzer's way in; what is tried stands in `targets/tunnel_packet.rs`.
#![no_main]

#[path = "../targets/tunnel_packet.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| target::run(octets));
