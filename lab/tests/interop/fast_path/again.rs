//! The tests of the mechanisms once more, with the fast path at either hook.

use crate::Interop;
use sixway_lab::fast_path::Hook;

/// Which tests, and how many packets the fast path carries in them at least: zero where all that passes is for the engine (errors,
/// fragments, ICMP sessions), and what matters is that it still does.
const AGAIN: &[(&str, u64)] = &[
    ("sixway_nat64_translates_between_client_and_server", 1_000),
    ("sixway_siit_translates_between_client_and_server", 1_000),
    ("sixway_shows_what_it_did", 0),
    ("sixway_leaves_the_host_as_it_was", 0),
    ("sixway_starts_again_after_a_crash", 0),
    ("nat64_pings_of_every_size_come_back", 0),
    ("nat64_datagrams_arrive_whole_both_ways", 1),
    ("nat64_tells_the_server_what_is_too_big", 0),
    ("nat64_keeps_one_outside_endpoint_towards_all", 0),
    ("nat64_computes_missing_udp_checksums", 0),
    ("nat64_static_binding_serves_the_outside", 0),
    ("nat64_hairpins_between_two_inside_hosts", 0),
    ("siit_pings_of_every_size_come_back_both_ways", 20),
    ("siit_pages_open_both_ways", 4),
    ("siit_datagrams_keep_their_ports", 3),
    ("siit_and_tayga_understand_each_other", 1_000),
    ("tcp_passes_a_narrow_ipv4_link_behind_nat64", 1_000),
    ("tcp_passes_a_narrow_ipv4_link_behind_siit", 1_000),
    ("tcp_passes_a_narrow_ipv6_link_before_nat64", 1_000),
    ("tcpdump_finds_every_checksum_right_with_nat64", 10),
    ("tcpdump_finds_every_checksum_right_with_siit", 10),
    ("a_linux_6to4_host_reaches_native_ipv6_through_our_relay", 1_000),
    ("an_unreachable_tunnel_end_is_told_to_the_inner_host", 0),
    ("a_spoofed_embedded_address_is_dropped_and_counted", 1),
];

/// Of super-frames, which XDP never has; and what takes long and differs little between the hooks.
const AGAIN_AT_TC: &[(&str, u64)] = &[
    ("sixway_with_tunnels_leaves_the_host_as_it_was", 0),
    ("siit_missing_udp_checksums_are_computed_or_dropped", 0),
    ("siit_dynamic_pool_gives_each_host_an_address", 0),
    ("tracepath_finds_the_path_mtu_and_the_gateway", 0),
    ("a_linux_6rd_customer_edge_reaches_native_ipv6_through_our_border_relay", 1_000),
    ("a_linux_isatap_host_gets_its_address_and_its_way_from_our_router", 1_000),
    ("tcp_through_a_tunnel_goes_on_after_fragmentation_needed", 100),
    ("udp_super_frames_arrive_whole_through_nat64", 10),
    ("udp_super_frames_arrive_whole_through_siit", 10),
    ("tcp_without_df_arrives_through_nat64", 100),
    ("tcp_without_df_arrives_through_siit", 100),
    ("super_frames_of_tunnel_packets_arrive_whole_by_steering", 1_000),
];

/// The same for the other hook.
const AGAIN_IN_XDP: &[(&str, u64)] = &[
    ("nat64_filters_by_address_when_told_to", 0),
    ("a_linux_kernel_is_the_other_end_of_a_configured_tunnel", 1_000),
    ("our_6rd_customer_edge_reaches_native_ipv6_through_a_linux_border_relay", 1_000),
];

/// Those of `tests` that are done again.
pub fn again(tests: &[Interop]) -> Vec<Interop> {
    let at = |list: &'static [(&str, u64)], hooks: &'static [Hook]| {
        list.iter().flat_map(move |(name, carries)| {
            let test = tests.iter().find(|test| test.name == *name);
            let test = test.unwrap_or_else(|| panic!("no test is called {name}"));
            hooks.iter().map(|hook| test.again(*hook, *carries))
        })
    };
    let once = at(AGAIN_AT_TC, &[Hook::Tc]).chain(at(AGAIN_IN_XDP, &[Hook::Xdp]));
    at(AGAIN, &Hook::ALL).chain(once).collect()
}
