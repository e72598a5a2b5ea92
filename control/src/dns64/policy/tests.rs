//! Rules against queries: scenarios, and the whole against a slow reading of the same rules.

use super::ruling::MOST_PREFIXES;
use super::*;
use crate::dns64::settings::*;
use arrayvec::ArrayVec;
use proptest::prelude::*;
use sixway_dataplane::translate::address::rfc6052::{Rfc6052, WELL_KNOWN_PREFIX};
use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// A name in wire form.
pub(in crate::dns64) fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).chain([0]).collect()
}

/// Settings with one prefix, 2001:db8:64::/96, and nothing else.
pub(in crate::dns64) fn settings() -> Settings {
    Settings {
        upstreams: vec![Upstream { names: Vec::new(), datagrams: true }],
        upstream_labels: Vec::new(),
        prefixes: vec![embedding("2001:db8:64::/96")],
        rules: Vec::new(),
        access: Access::default(),
        exclude: Vec::new(),
        exclude4: Vec::new(),
        exclude_private: false,
        synthesise_reserved: false,
        synthesised_ttl: SynthesisedTtl::Negative,
        reverse: Reverse::Off,
        local_ipv4only: true,
        special_names: SpecialNames::Upstream,
        hosts: Arc::default(),
        designated: Vec::new(),
        cookie_secrets: Vec::new(),
        stream_idle: None,
        parallel: true,
        dnssec: Dnssec::default(),
        stale: None,
        prefetch: false,
        minimal_any: false,
        limits: Limits {
            cache: 1 << 20,
            waiting: 100,
            per_client: None,
            udp_payload: 1_232,
            longest_ttl: 86_400,
            longest_negative_ttl: 10_800,
            upstream_questions: 4_096,
            client_prefix_length: 64,
            deadline: Duration::from_secs(5),
        },
    }
}

fn embedding(prefix: &str) -> Rfc6052 {
    Rfc6052::new(prefix.parse().unwrap(), false).unwrap()
}

fn names(names: &[&str]) -> Vec<Wire> {
    names.iter().map(|name| Wire(wire(name).into())).collect()
}

fn with(rules: Vec<Rule>) -> Policy {
    Policy::new(&Settings { rules, ..settings() })
}

fn client(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// What becomes of an A record, asked for by 2001:db8:1::1.
fn made(policy: &Policy, name: &str, address: &str) -> (Embedded, Vec<String>) {
    let mut into = ArrayVec::new();
    let name = wire(name);
    let ruling = policy.for_query(client("2001:db8:1::1"), &name);
    let embedded = ruling.embed(address.parse().unwrap(), &mut into);
    (embedded, into.iter().map(ToString::to_string).collect())
}

fn one(address: &str) -> (Embedded, Vec<String>) {
    (Embedded::Some, vec![address.parse::<Ipv6Addr>().unwrap().to_string()])
}

fn none(why: Embedded) -> (Embedded, Vec<String>) {
    (why, Vec::new())
}

#[test]
fn without_rules_the_settings_prefix_is_used() {
    let policy = with(Vec::new());
    assert_eq!(made(&policy, "a.example", "192.0.2.1"), one("2001:db8:64::192.0.2.1"));
    let ruling = policy.for_query(client("192.0.2.9"), &wire("a.example"));
    assert_eq!((ruling.synthesis(), ruling.hide_a(), ruling.hides_some()), (Synthesis::Normal, false, false));
}

#[test]
fn each_prefix_makes_a_record_up_to_eight() {
    let many = |count: u8| (0..count).map(|n| embedding(&format!("2001:db8:{n}::/96"))).collect();
    let policy = Policy::new(&Settings { prefixes: many(2), ..settings() });
    let both = vec!["2001:db8::c000:201".to_owned(), "2001:db8:1::c000:201".to_owned()];
    assert_eq!(made(&policy, "a.example", "192.0.2.1"), (Embedded::Some, both));
    let policy = Policy::new(&Settings { prefixes: many(9), ..settings() });
    assert_eq!(made(&policy, "a.example", "192.0.2.1").1.len(), MOST_PREFIXES);
}

#[test]
fn nothing_is_made_of_addresses_that_no_host_has_whatever_the_prefix() {
    let always = Rule { synthesis: Synthesis::Always, ..Rule::default() };
    for policy in [with(Vec::new()), with(vec![always])] {
        for address in
            ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.251", "239.1.1.1", "240.0.0.1", "255.255.255.255"]
        {
            assert_eq!(made(&policy, "a.example", address), none(Embedded::NoHost), "{address}");
        }
        assert_eq!(made(&policy, "a.example", "126.255.255.255"), one("2001:db8:64::126.255.255.255"));
        assert_eq!(made(&policy, "a.example", "223.255.255.255"), one("2001:db8:64::223.255.255.255"));
    }
}

#[test]
fn the_well_known_prefix_stands_for_global_addresses_only_unless_that_is_lifted() {
    let well_known = |lifted| vec![Rfc6052::new(WELL_KNOWN_PREFIX, lifted).unwrap()];
    let policy = Policy::new(&Settings { prefixes: well_known(false), ..settings() });
    assert_eq!(made(&policy, "a.example", "10.0.0.1"), none(Embedded::NotGlobal));
    assert_eq!(made(&policy, "a.example", "8.8.8.8"), one("64:ff9b::8.8.8.8"));
    let policy = Policy::new(&Settings { prefixes: well_known(true), ..settings() });
    assert_eq!(made(&policy, "a.example", "10.0.0.1"), one("64:ff9b::10.0.0.1"));
    assert_eq!(made(&policy, "a.example", "127.0.0.1"), none(Embedded::NoHost));
}

#[test]
fn the_well_known_prefix_stands_for_the_addresses_that_hosts_find_it_by() {
    let prefixes = vec![Rfc6052::new(WELL_KNOWN_PREFIX, false).unwrap()];
    let policy = Policy::new(&Settings { prefixes, ..settings() });
    for address in ["192.0.0.170", "192.0.0.171"] {
        assert_eq!(made(&policy, "ipv4only.arpa", address), one(&format!("64:ff9b::{address}")));
    }
    assert_eq!(made(&policy, "ipv4only.arpa", "192.0.0.169"), none(Embedded::NotGlobal));
}

#[test]
fn ranges_of_ipv4_addresses_have_prefixes_of_their_own() {
    let site = Rule {
        addresses: vec!["10.0.0.0/8".parse().unwrap()],
        prefixes: vec![embedding("2001:db8:10::/96")],
        ..Rule::default()
    };
    let no = Rule {
        addresses: vec!["172.16.0.0/12".parse().unwrap()],
        synthesis: Synthesis::Never,
        ..Rule::default()
    };
    let policy = with(vec![site, no]);
    assert_eq!(made(&policy, "a.example", "10.1.1.1"), one("2001:db8:10::10.1.1.1"));
    assert_eq!(made(&policy, "a.example", "172.16.0.1"), none(Embedded::ExcludedByRule));
    assert_eq!(made(&policy, "a.example", "192.0.2.1"), one("2001:db8:64::192.0.2.1"));
    assert_eq!(policy.for_query(client("::1"), &wire("a.example")).synthesis(), Synthesis::Normal);
}

#[test]
fn the_first_rule_that_matches_decides() {
    let never = Rule {
        names: names(&["corp.example"]),
        synthesis: Synthesis::Never,
        hide_a: true,
        ..Rule::default()
    };
    let always = Rule { names: names(&["example"]), synthesis: Synthesis::Always, ..Rule::default() };
    let both = with(vec![never.clone(), always.clone()]);
    let synthesis = |policy: &Policy, name| policy.for_query(client("::1"), &wire(name)).synthesis();
    assert_eq!(synthesis(&both, "a.corp.example"), Synthesis::Never);
    assert_eq!(synthesis(&both, "a.example"), Synthesis::Always);
    assert_eq!(synthesis(&both, "example.test"), Synthesis::Normal);
    assert!(both.for_query(client("::1"), &wire("corp.example")).hide_a());
    assert_eq!(synthesis(&with(vec![always, never]), "a.corp.example"), Synthesis::Always);
}

#[test]
fn a_rule_for_clients_is_for_no_others() {
    let rule = Rule {
        clients6: vec!["2001:db8:1::/48".parse().unwrap()],
        clients4: vec!["192.0.2.0/24".parse().unwrap()],
        synthesis: Synthesis::Never,
        ..Rule::default()
    };
    let policy = with(vec![rule]);
    let synthesis = |from| policy.for_query(client(from), &wire("a.example")).synthesis();
    for from in ["2001:db8:1::1", "192.0.2.1", "::ffff:192.0.2.1"] {
        assert_eq!(synthesis(from), Synthesis::Never, "{from}");
    }
    for from in ["2001:db8:2::1", "198.51.100.1"] {
        assert_eq!(synthesis(from), Synthesis::Normal, "{from}");
    }
}

#[test]
fn never_with_an_exception_for_some_addresses_still_looks_for_them() {
    let exception = Rule { addresses: vec!["203.0.113.0/24".parse().unwrap()], ..Rule::default() };
    let never = Rule { synthesis: Synthesis::Never, hide_a: true, ..Rule::default() };
    let policy = with(vec![exception.clone(), never.clone()]);
    let ruling = policy.for_query(client("::1"), &[0]);
    assert_eq!(ruling.synthesis(), Synthesis::Normal);
    assert!(!ruling.hide_a() && ruling.hides_some());
    assert!(ruling.hides(Ipv4Addr::new(192, 0, 2, 1)) && !ruling.hides(Ipv4Addr::new(203, 0, 113, 1)));
    assert_eq!(made(&policy, "", "203.0.113.1"), one("2001:db8:64::203.0.113.1"));
    assert_eq!(made(&policy, "", "192.0.2.1"), none(Embedded::ExcludedByRule));
    let ruling_after = with(vec![never, exception]);
    assert_eq!(ruling_after.for_query(client("::1"), &[0]).synthesis(), Synthesis::Never);
}

#[test]
fn who_may_ask_is_in_the_list_and_the_list_can_change() {
    let access = Access { v4: Vec::new(), v6: vec!["2001:db8:1::/64".parse().unwrap()], ..Access::default() };
    let mut policy = Policy::new(&Settings { access, ..settings() });
    assert!(policy.admits(client("2001:db8:1::5")));
    assert!(!policy.admits(client("2001:db8:2::5")) && !policy.admits(client("192.0.2.1")));
    policy.set_access(&Access { v4: vec!["192.0.2.0/24".parse().unwrap()], ..Access::default() });
    assert!(policy.admits(client("::ffff:192.0.2.1")) && !policy.admits(client("2001:db8:1::5")));
}

#[test]
fn excluded_addresses_are_known() {
    let exclude = vec!["::ffff:0:0/96".parse().unwrap(), "2001:db8:bad::/48".parse().unwrap()];
    let policy = Policy::new(&Settings { exclude, ..settings() });
    assert!(policy.excluded("::ffff:192.0.2.1".parse().unwrap()));
    assert!(policy.excluded("2001:db8:bad::1".parse().unwrap()));
    assert!(!policy.excluded("2001:db8::1".parse().unwrap()));
    assert!(!policy.excludes_nothing() && with(Vec::new()).excludes_nothing());
}

#[test]
fn all_prefixes_are_the_settings_the_rules_and_the_well_known_one_longest_first() {
    let prefixes = vec![embedding("2001:db8:32::/48"), embedding("2001:db8:64::/96")];
    let policy = with(vec![Rule { prefixes, ..Rule::default() }]);
    let all: Vec<_> = policy.all_prefixes().iter().map(|prefix| prefix.prefix().to_string()).collect();
    assert_eq!(all, ["2001:db8:64::/96", "64:ff9b::/96", "2001:db8:32::/48"]);
}

#[test]
fn ten_thousand_names_are_one_list_and_one_look_up() {
    let many: Vec<_> = (0..10_000).map(|n| Wire(wire(&format!("h{n}.example")).into())).collect();
    let policy = with(vec![Rule { names: many, synthesis: Synthesis::Never, ..Rule::default() }]);
    assert_eq!(policy.rules.lists(), 1);
    assert_eq!(policy.for_query(client("::1"), &wire("a.h9999.example")).synthesis(), Synthesis::Never);
    assert_eq!(policy.for_query(client("::1"), &wire("h10000.example")).synthesis(), Synthesis::Normal);
}

#[test]
fn a_thousand_clients_have_a_prefix_each() {
    let of = |n: u16| Rule {
        clients6: vec![format!("2001:db8:{n:x}::/48").parse().unwrap()],
        prefixes: vec![embedding(&format!("2001:db9:{n:x}::/96"))],
        ..Rule::default()
    };
    let policy = with((0..1_000).map(of).collect());
    assert_eq!(policy.prefixes_of(client("2001:db8:3e7::1"))[0].prefix().to_string(), "2001:db9:3e7::/96");
    assert_eq!(policy.prefixes_of(client("2001:db8:3e8::1"))[0].prefix().to_string(), "2001:db8:64::/96");
    let mut into = ArrayVec::new();
    policy.for_query(client("2001:db8:5::1"), &[0]).embed(Ipv4Addr::new(192, 0, 2, 1), &mut into);
    assert_eq!(into[..], ["2001:db9:5::c000:201".parse::<Ipv6Addr>().unwrap()]);
}

/// The rules, as the operator reads them: one after the other.
fn slowly<'r>(rules: &'r [Rule], from: IpAddr, name: &str, address: Option<Ipv4Addr>) -> Option<&'r Rule> {
    let within = |wide: &Wire| format!(".{name}").ends_with(&format!(".{}", unwire(&wide.0)));
    rules.iter().find(|rule| {
        let clients = rule.clients4.is_empty() && rule.clients6.is_empty()
            || match from {
                IpAddr::V4(from) => rule.clients4.iter().any(|prefix| prefix.contains(from)),
                IpAddr::V6(from) => rule.clients6.iter().any(|prefix| prefix.contains(from)),
            };
        let named = rule.names.is_empty() || rule.names.iter().any(within);
        let addressed = rule.addresses.is_empty()
            || address.is_some_and(|address| rule.addresses.iter().any(|prefix| prefix.contains(address)));
        let over = rule.over.is_none_or(|over| (over == Family::Ipv4) == from.is_ipv4());
        clients && named && addressed && over
    })
}

fn unwire(name: &[u8]) -> String {
    let mut labels = Vec::new();
    let mut rest = name;
    while let [length @ 1..=63, more @ ..] = rest {
        let (label, after) = more.split_at(usize::from(*length));
        labels.push(String::from_utf8(label.to_vec()).unwrap());
        rest = after;
    }
    labels.join(".")
}

#[test]
fn who_asks_over_ipv4_can_get_nothing_made() {
    let over = Rule { over: Some(Family::Ipv4), synthesis: Synthesis::Never, ..Rule::default() };
    let policy = with(vec![over]);
    for (from, expected) in [
        ("192.0.2.9", Synthesis::Never),
        ("::ffff:192.0.2.9", Synthesis::Never),
        ("2001:db8::9", Synthesis::Normal),
    ] {
        assert_eq!(policy.for_query(client(from), &wire("a.example")).synthesis(), expected, "{from}");
    }
    let six = with(vec![Rule { over: Some(Family::Ipv6), hide_a: true, ..Rule::default() }]);
    assert!(six.for_query(client("2001:db8::9"), &wire("a.example")).hide_a());
    assert!(!six.for_query(client("192.0.2.9"), &wire("a.example")).hide_a());
}

#[test]
fn reserved_addresses_can_be_allowed() {
    let reserved = Policy::new(&Settings { synthesise_reserved: true, ..settings() });
    for policy in [with(Vec::new()), reserved.clone()] {
        for address in ["255.255.255.255", "224.0.0.1", "127.0.0.1", "0.0.0.1"] {
            assert_eq!(made(&policy, "a.example", address), none(Embedded::NoHost), "{address}");
        }
    }
    assert_eq!(made(&with(Vec::new()), "a.example", "240.0.0.1"), none(Embedded::NoHost));
    assert_eq!(made(&reserved, "a.example", "240.0.0.1"), one("2001:db8:64::f000:1"));
    assert_eq!(made(&reserved, "a.example", "255.255.255.254"), one("2001:db8:64::ffff:fffe"));
    let name = crate::dns64::reverse::ip6_arpa("2001:db8:64::f000:1".parse().unwrap());
    assert_eq!(reserved.embedded(&name), Some(Ipv4Addr::new(240, 0, 0, 1)));
    assert_eq!(with(Vec::new()).embedded(&name), None);
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let synthesis = prop_oneof![Just(Synthesis::Normal), Just(Synthesis::Never), Just(Synthesis::Always)];
    (
        prop::collection::vec((0u8..3, prop::sample::select(vec![0u8, 32, 47, 48])), 0..3),
        prop::collection::vec((0u8..4, 30u8..=32), 0..2),
        prop::collection::vec("[ab](\\.[ab]){0,2}", 0..3),
        prop::collection::vec((0u8..4, 30u8..=32), 0..2),
        synthesis,
        any::<bool>(),
        0u8..4,
        prop::sample::select(vec![None, None, Some(Family::Ipv4), Some(Family::Ipv6)]),
    )
        .prop_map(|(clients6, clients4, listed, addresses, synthesis, hide_a, prefix, over)| Rule {
            clients6: clients6
                .iter()
                .map(|(n, length)| Prefix6::holding(format!("2001:db8:{n}::").parse().unwrap(), *length))
                .collect(),
            clients4: clients4
                .iter()
                .map(|(last, length)| Prefix4::holding(Ipv4Addr::new(198, 51, 100, *last), *length))
                .collect(),
            over,
            names: listed.iter().map(|name| Wire(wire(name).into())).collect(),
            addresses: addresses
                .iter()
                .map(|(last, length)| Prefix4::holding(Ipv4Addr::new(192, 0, 2, *last), *length))
                .collect(),
            synthesis,
            prefixes: (prefix > 0)
                .then(|| embedding(&format!("2001:db8:f{prefix}::/96")))
                .into_iter()
                .collect(),
            hide_a,
        })
}

proptest! {
    #[test]
    fn rulings_are_those_of_a_reading_rule_by_rule(
        rules in prop::collection::vec(any_rule(), 0..8),
        from in 0u8..8, name in "[ab](\\.[ab]){0,3}", last in 0u8..5
    ) {
        let policy = with(rules.clone());
        let from = if from < 4 { format!("2001:db8:{from}::1") } else { format!("198.51.100.{}", from - 4) };
        let from = client(&from);
        let address = Ipv4Addr::new(192, 0, 2, last);
        let octets = wire(&name);
        let ruling = policy.for_query(from, &octets);
        let slow = slowly(&rules, from, &name, Some(address));

        let mut into = ArrayVec::new();
        let embedded = ruling.embed(address, &mut into);
        prop_assert_eq!(ruling.hides(address), slow.is_some_and(|rule| rule.hide_a));
        if slow.is_some_and(|rule| rule.synthesis == Synthesis::Never) {
            prop_assert_eq!(embedded, Embedded::ExcludedByRule);
            prop_assert!(into.is_empty());
        } else {
            let prefixes = slow.map(|rule| rule.prefixes.clone()).filter(|own| !own.is_empty());
            let prefixes = prefixes.unwrap_or_else(|| settings().prefixes);
            prop_assert_eq!(into.to_vec(), prefixes.iter().map(|one| one.embed_any(address)).collect::<Vec<_>>());
            prop_assert_ne!(ruling.synthesis(), Synthesis::Never);
        }
        // What holds for all A records holds for this one.
        prop_assert!(!ruling.hide_a() || ruling.hides(address));
        prop_assert!(ruling.hide_a() || ruling.hides_some() || !ruling.hides(address));
        let whole: Vec<_> = rules.iter().filter(|rule| rule.addresses.is_empty()).cloned().collect();
        let always = slowly(&whole, from, &name, None).is_some_and(|rule| rule.synthesis == Synthesis::Always);
        prop_assert_eq!(ruling.synthesis() == Synthesis::Always, always);
    }
}

#[test]
fn what_a_translator_refuses_is_not_embedded_in_its_prefix_but_in_others() {
    let prefixes = vec![embedding("2001:db8:64::/96"), embedding("2001:db8:65::/96")];
    let exclude4 = vec![("2001:db8:64::/96".parse().unwrap(), vec!["10.0.0.0/8".parse().unwrap()])];
    let policy = Policy::new(&Settings { prefixes, exclude4: exclude4.clone(), ..settings() });
    assert_eq!(made(&policy, "a.example", "10.0.0.1"), one("2001:db8:65::10.0.0.1"));
    let policy = Policy::new(&Settings { exclude4, ..settings() });
    assert_eq!(made(&policy, "a.example", "10.0.0.1"), none(Embedded::ExcludedAddress));
    assert_eq!(made(&policy, "a.example", "192.168.0.1"), one("2001:db8:64::192.168.0.1"));
}

#[test]
fn private_addresses_and_this_hosts_are_not_synthesised_from_if_so_configured() {
    let host4 = vec!["198.51.100.1".parse().unwrap()];
    let access = Access { host4, ..Access::default() };
    let mut policy = Policy::new(&Settings { exclude_private: true, access, ..settings() });
    for private in ["10.0.0.1", "172.31.0.1", "192.168.0.1", "100.64.0.1", "169.254.0.1", "198.51.100.1"] {
        assert_eq!(made(&policy, "a.example", private), none(Embedded::ExcludedAddress), "{private}");
    }
    assert_eq!(made(&policy, "a.example", "198.51.100.2"), one("2001:db8:64::198.51.100.2"));
    // Hosts discover the prefix by this one (RFC 7050 §3).
    assert_eq!(made(&policy, "ipv4only.arpa", "192.0.0.170"), one("2001:db8:64::192.0.0.170"));
    policy.set_access(&Access { host4: vec!["198.51.100.2".parse().unwrap()], ..Access::default() });
    assert_eq!(made(&policy, "a.example", "198.51.100.2"), none(Embedded::ExcludedAddress));
    assert_eq!(made(&policy, "a.example", "198.51.100.1"), one("2001:db8:64::198.51.100.1"));
}
