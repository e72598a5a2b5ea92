//! The fuzzer's corpus of pcap files and blind mutations of it, for a short time in every test run.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test may stop at the first surprise"
)]

#[path = "../../fuzz/targets/pcap.rs"]
mod pcap;

use crate::mutation;
use std::path::Path;

#[test]
fn any_octets_are_a_pcap_file_or_none() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/pcap");
    mutation::replay(Path::new(corpus), 20_000, pcap::run);
}
