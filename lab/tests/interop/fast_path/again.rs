//! The tests of the mechanisms once more, with the fast path at either hook.

use crate::Demand::{self, Carries, Hangs, Leaves, Sees};
use crate::Interop;
use sixway_lab::fast_path::Hook;

/// Which tests, and what the fast path has to do in them. Where all that passes is for the engine (errors, fragments, short flows), what matters is
/// that it still does though the programs look at it.
const AGAIN: &[(&str, Demand)] = &[
    ("sixway_nat64_translates_between_client_and_server", Carries(1_000)),
    ("sixway_siit_translates_between_client_and_server", Carries(1_000)),
    ("nat44_translates_for_a_lan_on_a_host_with_strict_reverse_path_filters", Leaves(8)),
    ("nat44_lets_hosts_of_the_lan_reach_one_another_by_outside_addresses", Leaves(8)),
    ("nat44_passes_bulk_tcp_over_a_narrow_link", Carries(1_000)),
    ("nat44_shares_the_only_address_of_its_host", Leaves(8)),
    ("sixway_shows_what_it_did", Sees(10)),
    ("sixway_leaves_the_host_as_it_was", Sees(10)),
    ("sixway_starts_again_after_a_crash", Sees(10)),
    ("nat64_pings_of_every_size_come_back", Leaves(30)),
    ("nat64_datagrams_arrive_whole_both_ways", Carries(1)),
    ("nat64_tells_the_server_what_is_too_big", Leaves(1)),
    ("nat64_keeps_one_outside_endpoint_towards_all", Leaves(1)),
    ("nat64_computes_missing_udp_checksums", Leaves(1)),
    ("nat64_static_binding_serves_the_outside", Leaves(1)),
    ("nat64_hairpins_between_two_inside_hosts", Leaves(8)),
    ("siit_pings_of_every_size_come_back_both_ways", Carries(20)),
    ("siit_pages_open_both_ways", Carries(4)),
    ("siit_datagrams_keep_their_ports", Carries(3)),
    ("siit_and_tayga_understand_each_other", Carries(1_000)),
    ("tcp_passes_a_narrow_ipv4_link_behind_nat64", Carries(1_000)),
    ("tcp_passes_a_narrow_ipv4_link_behind_siit", Carries(1_000)),
    ("tcp_passes_a_narrow_ipv6_link_before_nat64", Carries(1_000)),
    ("tcpdump_finds_every_checksum_right_with_nat64", Carries(10)),
    ("tcpdump_finds_every_checksum_right_with_siit", Carries(10)),
    ("a_linux_6to4_host_reaches_native_ipv6_through_our_relay", Carries(1_000)),
    ("an_unreachable_tunnel_end_is_told_to_the_inner_host", Carries(1)),
    ("a_spoofed_embedded_address_is_dropped_and_counted", Carries(1)),
];

/// Of GSO packets, which XDP never has; and what takes long and differs little between the hooks.
const AGAIN_AT_TC: &[(&str, Demand)] = &[
    ("sixway_with_tunnels_leaves_the_host_as_it_was", Hangs),
    ("siit_missing_udp_checksums_are_computed_or_dropped", Leaves(4)),
    ("siit_dynamic_pool_gives_each_host_an_address", Leaves(1)),
    ("tracepath_finds_the_path_mtu_and_the_gateway", Leaves(1)),
    ("nat44_is_seen_by_tracepath", Leaves(1)),
    ("nat44_passes_a_stateful_firewall_although_its_packets_are_not_tracked", Leaves(8)),
    ("nat44_leaks_no_inside_address_after_a_crash", Sees(1)),
    ("nat44_survives_its_device_going_down_and_up", Sees(1)),
    ("a_linux_6rd_customer_edge_reaches_native_ipv6_through_our_border_relay", Carries(1_000)),
    ("a_linux_isatap_host_gets_its_address_and_its_way_from_our_router", Carries(1_000)),
    ("tcp_through_a_tunnel_goes_on_after_fragmentation_needed", Carries(100)),
    ("udp_super_frames_arrive_whole_through_nat64", Carries(10)),
    ("udp_super_frames_arrive_whole_through_siit", Carries(10)),
    ("tcp_without_df_arrives_through_nat64", Carries(100)),
    ("tcp_without_df_arrives_through_siit", Carries(100)),
    ("super_frames_of_tunnel_packets_arrive_whole_by_steering", Carries(1_000)),
    ("a_linux_kernel_is_the_other_end_of_tunnels_of_ip_in_ip", Leaves(1_000)),
];

/// The same for the other hook.
const AGAIN_IN_XDP: &[(&str, Demand)] = &[
    ("nat64_filters_by_address_when_told_to", Leaves(1)),
    ("a_linux_kernel_is_the_other_end_of_a_configured_tunnel", Carries(1_000)),
    ("a_tunnel_of_linux_goes_through_ip_in_ip_as_far_as_its_limit_says", Leaves(10)),
    ("our_6rd_customer_edge_reaches_native_ipv6_through_a_linux_border_relay", Carries(1_000)),
];

/// Those of `tests` that are done again.
pub fn again(tests: &[Interop]) -> Vec<Interop> {
    let at = |list: &'static [(&str, Demand)], hooks: &'static [Hook]| {
        list.iter().flat_map(move |(name, demand)| {
            let test = tests.iter().find(|test| test.name == *name);
            let test = test.unwrap_or_else(|| panic!("no test is called {name}"));
            hooks.iter().map(|hook| test.again(*hook, *demand))
        })
    };
    let once = at(AGAIN_AT_TC, &[Hook::Tc]).chain(at(AGAIN_IN_XDP, &[Hook::Xdp]));
    at(AGAIN, &Hook::ALL).chain(once).collect()
}
