//! The fuzzers' corpora and blind mutations of them, for a short time in every test run; `fuzz/run` goes on from there.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test reads files and the clock"
)]

#[path = "../../fuzz/targets/dynamic_state.rs"]
mod dynamic_state;
#[path = "../../fuzz/targets/eam_file.rs"]
mod eam_file;
#[path = "../../fuzz/targets/engine.rs"]
mod engine;
#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;
#[path = "../../fuzz/targets/parse.rs"]
mod parse;
#[path = "../../fuzz/targets/quoted.rs"]
mod quoted;
#[path = "../../fuzz/targets/teredo_ends.rs"]
mod teredo_ends;
#[path = "../../fuzz/targets/tunnels.rs"]
mod tunnels;

use std::path::Path;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");

#[test]
fn any_octets_are_a_packet_or_none() {
    mutation::replay(&Path::new(CORPUS).join("parse"), 2_000_000, parse::run);
}

#[test]
fn any_octets_are_a_quoted_packet_or_none() {
    mutation::replay(&Path::new(CORPUS).join("quoted"), 1_000_000, quoted::run);
}

#[test]
fn any_packets_in_any_order_are_accounted_for() {
    mutation::replay(&Path::new(CORPUS).join("engine"), 30_000, engine::run);
}

#[test]
fn any_packets_into_tunnels_and_out_of_them_are_accounted_for() {
    mutation::replay(&Path::new(CORPUS).join("tunnels"), 20_000, tunnels::run);
}

#[test]
fn any_datagrams_to_a_teredo_relay_or_client_are_accounted_for() {
    mutation::replay(&Path::new(CORPUS).join("teredo_ends"), 20_000, teredo_ends::run);
}

#[test]
fn any_text_is_a_table_of_mappings_or_a_list_of_bad_lines() {
    mutation::replay(&Path::new(CORPUS).join("eam_file"), 5_000, eam_file::run);
}

#[test]
fn any_text_is_a_dynamic_pools_file() {
    mutation::replay(&Path::new(CORPUS).join("dynamic_state"), 5_000, dynamic_state::run);
}

#[test]
fn any_steps_are_those_of_the_slow_model() {
    mutation::replay(&Path::new(CORPUS).join("nat_model"), 3_000, crate::nat_model::target::run);
}

#[test]
fn a_seed_repeats_its_mutations() {
    let inputs = [b"something to change".to_vec(), b"something else".to_vec()];
    let some = |seed| mutation::mutations(&inputs, seed).take(100).collect::<Vec<_>>();
    assert_eq!(some(1), some(1));
    assert_ne!(some(1), some(2));
}
