//! The fuzzer's corpora and blind mutations of them, for a short time in every test run; `fuzz/run` goes on from there.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test reads files and the clock"
)]

#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;
#[path = "../../fuzz/targets/trust_anchor.rs"]
mod trust_anchor;
#[path = "../../fuzz/targets/validation.rs"]
mod validation;

use std::path::Path;

#[test]
fn any_octets_are_trust_anchors_and_keys_or_none_and_only_signatures_count() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/trust_anchor");
    mutation::replay(Path::new(corpus), 3_000, trust_anchor::run);
}

#[test]
fn any_octets_are_answers_to_validate_or_none_and_each_gets_one_verdict() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/validation");
    mutation::replay(Path::new(corpus), 10_000, validation::run);
}
