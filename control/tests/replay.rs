//! The fuzzer's corpora and blind mutations of them, for a short time in every test run; `fuzz/run` goes on from there.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test reads files and the clock"
)]

#[path = "../../fuzz/targets/dhcp4o6.rs"]
mod dhcp4o6;
#[path = "../../fuzz/targets/dns64_answer.rs"]
mod dns64_answer;
#[path = "../../fuzz/targets/dns64_kept.rs"]
mod dns64_kept;
#[path = "../../fuzz/targets/dns64_resolver.rs"]
mod dns64_resolver;
#[path = "../../fuzz/targets/hosts_file.rs"]
mod hosts_file;
#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;
#[path = "../../fuzz/targets/neighbour_discovery.rs"]
mod neighbour_discovery;
#[path = "../../fuzz/targets/option_6rd.rs"]
mod option_6rd;
#[path = "../../fuzz/targets/pcp.rs"]
mod pcp;
#[path = "../../fuzz/targets/pcp_kept.rs"]
mod pcp_kept;
#[path = "../../fuzz/targets/teredo.rs"]
mod teredo;
#[path = "../../fuzz/targets/teredo_client.rs"]
mod teredo_client;
#[path = "../../fuzz/targets/upstream_reply.rs"]
mod upstream_reply;

use std::path::Path;

#[test]
fn any_octets_are_neighbour_discovery_or_none_and_provoke_nothing_bad() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/neighbour_discovery");
    mutation::replay(Path::new(corpus), 30_000, neighbour_discovery::run);
}

#[test]
fn any_octets_are_dhcpv4_over_dhcpv6_or_none_and_no_two_hosts_have_one_address() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/dhcp4o6");
    mutation::replay(Path::new(corpus), 20_000, dhcp4o6::run);
}

#[test]
fn any_octets_are_requests_of_pcp_or_none_and_nobody_has_more_than_its_share() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/pcp");
    mutation::replay(Path::new(corpus), 20_000, pcp::run);
}

#[test]
fn any_text_is_a_file_of_mappings_or_none() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/pcp_kept");
    mutation::replay(Path::new(corpus), 20_000, pcp_kept::run);
}

#[test]
fn any_octets_are_a_lease_with_a_6rd_domain_or_none() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/option_6rd");
    mutation::replay(Path::new(corpus), 20_000, option_6rd::run);
}

#[test]
fn any_text_is_a_hosts_file_and_what_is_not_used_is_told() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/hosts_file");
    mutation::replay(Path::new(corpus), 20_000, hosts_file::run);
}

#[test]
fn any_octets_are_teredo_datagrams_or_none_and_a_server_sends_little_and_to_nobody_it_must_not() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/teredo");
    mutation::replay(Path::new(corpus), 30_000, teredo::run);
}

#[test]
fn a_teredo_client_believes_nothing_without_its_nonce_and_sends_little_and_to_nobody_it_must_not() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/teredo_client");
    mutation::replay(Path::new(corpus), 10_000, teredo_client::run);
}

#[test]
fn any_octets_are_an_upstreams_reply_or_none_and_no_question_is_lost() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/upstream_reply");
    mutation::replay(Path::new(corpus), 30_000, upstream_reply::run);
}

#[test]
fn any_octets_are_queries_and_replies_or_none_and_what_is_served_can_be_read() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/dns64_answer");
    mutation::replay(Path::new(corpus), 20_000, dns64_answer::run);
}

#[test]
fn any_octets_are_queries_and_replies_at_any_time_and_each_query_has_one_answer() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/dns64_resolver");
    mutation::replay(Path::new(corpus), 10_000, dns64_resolver::run);
}

#[test]
fn any_octets_are_the_cache_of_a_previous_process_or_none_and_what_is_believed_can_be_kept() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/dns64_kept");
    mutation::replay(Path::new(corpus), 3_000, dns64_kept::run);
}
