//! The fuzzer's corpus of configurations and blind mutations of it, for a short time in every test run.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../../fuzz/targets/configuration.rs"]
mod configuration;
#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;

use std::path::Path;

#[test]
fn any_text_is_a_configuration_or_a_list_of_faults() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/configuration");
    mutation::replay(Path::new(corpus), 5_000, configuration::run);
}
