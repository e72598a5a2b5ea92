//! The fuzzer's corpus of tunnel packets and blind mutations of it, for a short time in every test run.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test may stop at the first surprise"
)]

#[path = "../../fuzz/targets/tunnel_packet.rs"]
mod tunnel_packet;

use crate::mutation;
use std::path::Path;

#[test]
fn any_octets_are_a_tunnel_packet_that_can_be_cut_or_none() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/tunnel_packet");
    mutation::replay(Path::new(corpus), 50_000, tunnel_packet::run);
}
