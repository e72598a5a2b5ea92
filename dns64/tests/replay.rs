//! The fuzzer's corpus of streams and blind mutations of them, for a short time in every test run.

#[path = "../../fuzz/targets/dns64_stream.rs"]
mod dns64_stream;
#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;

use std::path::Path;

#[test]
fn any_octets_by_a_stream_are_messages_and_requests_or_refused() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/dns64_stream");
    mutation::replay(Path::new(corpus), 20_000, dns64_stream::run);
}
