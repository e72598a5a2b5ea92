//! PREF64 and rules: hosts learn the prefix that their addresses are made with.

use super::dns64::{DNS64, ELSEWHERE, good};
use super::*;
use sixway_control::Instant;
use sixway_control::dns64::{Access, Asker, Resolver, Transport};
use sixway_wire::Prefix6;
use std::net::Ipv6Addr;

const OTHER: &str = "2001:db8:65::/96";
const OWN_PREFIX: &str = "64:ff9b::/96";

/// A DNS64 with rules, and a link whose hosts have addresses within these prefixes.
fn text(rules: &str, prefixes: &[&str], line: &str) -> String {
    let rows: Vec<String> = prefixes.iter().map(|it| format!("{{ prefix = \"{it}\" }}")).collect();
    format!(
        "[router_advertisement]\ninterface = \"eth0\"\nprefixes = [{}]\n{line}{DNS64}{ELSEWHERE}{rules}",
        rows.join(", ")
    )
}

fn rule(clients: &str, more: &str) -> String {
    format!("[[dns64.rule]]\n{clients}{more}prefix = \"{OTHER}\"\n")
}

fn advertised(config: &Config) -> Vec<Prefix6> {
    let now = Surroundings::of(&host().addresses);
    let told = config.advertised(&config.router_advertisements[0], &now);
    told.pref64.iter().map(|row| row.prefix).collect()
}

/// Whether `ipv4only.arpa` has an address with this prefix, for this client.
fn is_found(config: &Config, client: Ipv6Addr, prefix: &str) -> bool {
    let access = Access { v6: vec!["::/0".parse().unwrap()], ..Access::default() };
    let settings = config.dns64_settings(access, Vec::new()).unwrap();
    let mut resolver = Resolver::new(settings, [7; 32], Instant::from_secs(1));
    let query = [&b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x08ipv4only\x04arpa\0"[..], &[0, 28, 0, 1]].concat();
    let (asker, mut answer) =
        (Asker { address: client.into(), transport: Transport::Udp, ticket: 1 }, Vec::new());
    resolver.handle_query(Instant::from_secs(1), &asker, &query, &mut answer);
    let prefix: Prefix6 = prefix.parse().unwrap();
    let found = [&prefix.address().octets()[..12], &[192, 0, 0, 170]].concat();
    answer.windows(16).any(|octets| octets == found)
}

#[test]
fn hosts_are_told_the_prefix_that_ipv4only_arpa_gives_them() {
    let west = "clients = [\"2001:db8:80::/41\", \"10.0.0.0/8\"]\n";
    let never = "[[dns64.rule]]\nclients = \"2001:db8:80::/48\"\nsynthesis = \"never\"\n";
    for (rules, link, expected) in [
        (rule(west, ""), "2001:db8:80::/64", OTHER),
        (rule(west, ""), "2001:db8:1::/64", OWN_PREFIX),
        (rule("", ""), "2001:db8:1::/64", OTHER),
        (rule("", "names = \"corp.example\"\n"), "2001:db8:1::/64", OWN_PREFIX),
        (rule("", "addresses = \"10.0.0.0/8\"\n"), "2001:db8:1::/64", OWN_PREFIX),
        (format!("{never}{}", rule(west, "")), "2001:db8:80::/64", OWN_PREFIX),
        (format!("{never}{}", rule(west, "")), "2001:db8:81::/64", OTHER),
    ] {
        let config = good(&text(&rules, &[link], ""));
        let client = Ipv6Addr::from_bits(link.parse::<Prefix6>().unwrap().address().to_bits() | 2);
        assert_eq!(advertised(&config), [expected.parse().unwrap()], "{link}\n{rules}");
        for prefix in [OWN_PREFIX, OTHER] {
            assert_eq!(is_found(&config, client, prefix), prefix == expected, "{link} {prefix}\n{rules}");
        }
        warnings(&text(&rules, &[link], ""), &[]);
    }
    let beside = rule("clients = \"2001:db8:ffff::/48\"\n", "");
    let config = good(&text(&beside, &[], ""));
    assert_eq!(
        advertised(&config),
        [OTHER.parse().unwrap()],
        "hosts without a prefix are beside the gateway"
    );
}

#[test]
fn where_hosts_of_a_link_get_different_prefixes_the_operator_is_asked_which_to_tell() {
    let said = "sixway.toml:1  router_advertisement.pref64  a [[dns64.rule]] holds for some hosts of this link only: addresses are made with 64:ff9b::/96 or 2001:db8:65::/96, and one advertisement tells all the same; write the one that is meant, or \"none\"";
    let half = rule("clients = \"2001:db8:1::/65\"\n", "");
    let first = rule("clients = \"2001:db8:2::/64\"\n", "");
    let two = ["2001:db8:1::/64", "2001:db8:2::/64"];
    for (rules, prefixes) in [(&half, &two[..1]), (&first, &two[..])] {
        warnings(&text(rules, prefixes, ""), &[said]);
        let config = good(&text(rules, prefixes, ""));
        assert_eq!(advertised(&config), [OWN_PREFIX.parse().unwrap()], "the settings'");
        for written in ["none", OTHER, OWN_PREFIX] {
            warnings(&text(rules, prefixes, &format!("pref64 = \"{written}\"\n")), &[]);
        }
        let neither = text(rules, prefixes, "pref64 = \"2001:db8:66::/96\"\n");
        warnings(
            &neither,
            &[
                "sixway.toml:4  router_advertisement.pref64 = \"2001:db8:66::/96\"  [dns64] synthesises with 64:ff9b::/96 or 2001:db8:65::/96, and hosts would use a different prefix; write one of these",
            ],
        );
    }
}

#[test]
fn a_prefix_that_is_another_links_is_warned_of() {
    let west = rule("clients = \"2001:db8:2::/64\"\n", "");
    warnings(
        &text(&west, &["2001:db8:1::/64"], &format!("pref64 = \"{OTHER}\"\n")),
        &[
            "sixway.toml:4  router_advertisement.pref64 = \"2001:db8:65::/96\"  [dns64] synthesises with 64:ff9b::/96, and hosts would use a different prefix; remove pref64, or write the same prefix in both",
        ],
    );
    warnings(&text(&west, &["2001:db8:2::/64"], &format!("pref64 = \"{OTHER}\"\n")), &[]);
}
