//! The fuzzers' corpora of configurations and requests and blind mutations of them, for a short time in every test run.

#[path = "../../fuzz/targets/admin_request.rs"]
mod admin_request;
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

#[test]
fn any_request_is_understood_or_refused_by_name() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/admin_request");
    mutation::replay(Path::new(corpus), 20_000, admin_request::run);
}
