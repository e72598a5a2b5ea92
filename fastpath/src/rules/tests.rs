#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::layout::{ADDRESSES4, INSIDES, KIND_CONFIGURED, KIND_NAT44, NETWORKS4, POOLS, PREFIXES6, SOURCES};
use crate::layout::{KIND_ENGINE, KIND_NAT64, KIND_SIIT};
use crate::slots::Slots;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::isatap::{self, IsatapConfig};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::table::Kind;

use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::mechanism::six_to_four::{self, NativeSources, SixToFourConfig};
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::translate::address::{EamTable, Rfc6052};
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_wire::Prefix4;
use sixway_wire::Prefix6;
use std::sync::Arc;

fn offer(engine: &EngineConfig) -> Offer {
    Offer::of(engine, &Surroundings::default())
}

fn prefix(text: &str) -> Rfc6052 {
    Rfc6052::new(text.parse().unwrap(), false).unwrap()
}

fn siit(text: &str) -> SiitConfig {
    SiitConfig { prefix: Some(prefix(text)), ..SiitConfig::default() }
}

fn nat64(text: &str, pool: Vec<Prefix4>) -> Nat64Config {
    Nat64Config {
        limits: StateLimits { sessions: 100, bindings: 100, ..StateLimits::default() },
        ..Nat64Config::new(prefix(text), PoolConfig { addresses: pool, ports: vec![1_024..=65_535] })
    }
}

/// A tunnel from 192.0.2.`local` whose prefix has this number.
fn configured(local: u8, number: u16) -> ConfiguredConfig {
    ConfiguredConfig {
        local: Ipv4Addr::new(192, 0, 2, local),
        remote: Some(Ipv4Addr::new(198, 51, 100, number as u8)),
        prefixes: vec![Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0), 48)],
        strict_sources: true,
        policy: TunnelPolicy::default(),
    }
}

fn networks(count: usize) -> Vec<Prefix4> {
    (0..count as u32)
        .map(|number| Prefix4::holding(Ipv4Addr::from_bits(10 << 24 | number << 8), 24))
        .collect()
}

fn whys(offer: &Offer) -> Vec<(Mechanism, String)> {
    offer.unoffered.iter().map(|one| (one.mechanism, one.why.to_string())).collect()
}

#[test]
fn the_longest_prefix_comes_first_and_among_equals_the_first_of_the_configuration() {
    let engine = EngineConfig {
        nat64: vec![nat64("64:ff9b::/96", vec!["192.0.2.0/24".parse().unwrap()])],
        siit: vec![SiitConfig::default(), siit("2001:db8:5::/48")],
        tunnels: vec![TunnelConfig::Configured(configured(1, 5))],
        ..EngineConfig::default()
    };
    let rules = offer(&engine).rules;
    let config = &rules.config;
    let seen: Vec<_> = config.rules[..3].iter().map(|rule| (rule.length, rule.kind, rule.index)).collect();
    assert_eq!(seen, [(96, KIND_NAT64, 0), (48, KIND_SIIT, 2), (48, KIND_CONFIGURED, 0)]);
    assert_eq!((config.rules_count, config.siit_count, config.default_siit), (3, 2, 3));
    assert_eq!((config.translators_count, config.tunnels_count, config.has_stateless), (3, 1, 1));
    assert_eq!(config.rules[1].bits[0].to_ne_bytes(), [0x20, 1, 0xd, 0xb8, 0, 5, 0, 0]);
    assert_eq!(config.rules[1].mask[0].to_ne_bytes(), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
}

#[test]
fn without_a_stateless_mechanism_there_is_no_stateless_rule() {
    let engine = EngineConfig {
        nat64: vec![nat64("64:ff9b::/96", vec!["192.0.2.0/24".parse().unwrap()])],
        ..EngineConfig::default()
    };
    let offer = offer(&engine);
    assert_eq!((offer.rules.config.has_stateless, offer.unoffered), (0, vec![]));
}

#[test]
fn where_routes_do_not_follow_from_the_destination_everything_stateless_is_the_engines() {
    let engine = EngineConfig {
        siit: vec![siit("2001:db8:64::/96")],
        tunnels: vec![TunnelConfig::Configured(configured(1, 5))],
        ..EngineConfig::default()
    };
    let around = Surroundings { not_plain: Some("there is a rule".into()), ..Surroundings::default() };
    let offer = Offer::of(&engine, &around);
    let config = &offer.rules.config;
    assert_eq!((config.has_stateless, config.plain_routing), (0, 0));
    let said = "there is a rule".to_owned();
    assert_eq!(whys(&offer), [(Mechanism::Siit(0), said.clone()), (Mechanism::Tunnel(0), said)]);
}

#[test]
fn a_pool_that_is_this_hosts_own_address_is_shared() {
    let pools = ["203.0.113.1/32", "192.0.2.0/24", "203.0.113.2/32"].map(|text| text.parse().unwrap());
    let engine = EngineConfig {
        nat64: vec![nat64("64:ff9b::/96", pools.to_vec())],
        host4: vec!["203.0.113.1".parse().unwrap(), "192.0.2.5".parse().unwrap()],
        ..EngineConfig::default()
    };
    let config = offer(&engine).rules.config;
    let shared: Vec<_> = config.pools[..3].iter().map(|pool| pool.shared).collect();
    assert_eq!((config.pools_count, shared), (3, vec![1, 0, 0]));
    assert_eq!((config.pools[1].address, config.pools[1].mask), (0xc000_0200, 0xffff_ff00));
}

#[test]
fn pools_without_room_keep_every_stateless_rule_away() {
    let engine = EngineConfig {
        nat64: vec![nat64("64:ff9b::/96", networks(POOLS + 1))],
        siit: vec![siit("2001:db8:64::/96")],
        ..EngineConfig::default()
    };
    let offer = offer(&engine);
    let why = "too many IPv4 prefixes in pools; the fast path has room for 16".to_owned();
    assert_eq!(whys(&offer), [(Mechanism::Nat64(0), why.clone()), (Mechanism::Siit(0), why)]);
    assert_eq!(offer.rules.config.has_stateless, 0);
}

fn identity(prefix: &str) -> Identity {
    Identity::of_nat64(prefix.parse().unwrap())
}

#[test]
fn stateful_translators_keep_their_slots_in_whatever_order_the_configuration_has_them() {
    let [one, other, third] = ["64:ff9b::/96", "2001:db8:64::/96", "2001:db8:65::/96"];
    let engine = EngineConfig {
        nat64: vec![nat64(third, Vec::new()), nat64(other, Vec::new()), nat64(one, Vec::new())],
        siit: vec![siit("2001:db8:5::/48"), siit("2001:db8:6::/48")],
        ..EngineConfig::default()
    };
    let slots: Slots = [(0, identity(one)), (2, identity(other))].into_iter().collect();
    let rules = Offer::of(&engine, &Surroundings { slots, ..Surroundings::default() }).rules;
    let config = &rules.config;
    let identities: Vec<_> = config.translators[..6].iter().map(|it| it.identity).collect();
    let [one, other, third] = [one, other, third].map(|prefix| identity(prefix).number());
    assert_eq!(identities, [one, third, other, 0, 0, 0]);
    let kinds: Vec<_> = config.translators[..6].iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [KIND_NAT64, KIND_NAT64, KIND_NAT64, KIND_SIIT, KIND_SIIT, 0]);
    assert_eq!((config.translators_count, config.siit_count, config.default_siit), (5, 2, 4));
    let siit = config.rules[..5].iter().filter(|rule| rule.kind == KIND_SIIT);
    assert_eq!(siit.map(|rule| rule.index).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn an_mss_fits_what_is_carried_unless_a_syn_is_the_engines() {
    let mut engine = EngineConfig {
        siit: vec![siit("2001:db8:5::/48"), siit("2001:db8:6::/48")],
        tunnels: vec![TunnelConfig::Configured(configured(1, 1)), TunnelConfig::Configured(configured(2, 2))],
        ..EngineConfig::default()
    };
    (engine.limits.mtu4, engine.limits.mtu6) = (1_400, 1_500);
    engine.siit[1].policy.clamp_mss = false;
    if let TunnelConfig::Configured(config) = &mut engine.tunnels[1] {
        config.policy.clamp_mss = false;
    }
    for (forwards_syn, wanted) in [(true, [1_360, 65_535, 1_220, 65_535]), (false, [1, 1, 1, 1])] {
        let around = Surroundings { forwards_syn, ..Surroundings::default() };
        let config = Offer::of(&engine, &around).rules.config;
        let [one, other, ..] = config.translators.map(|it| it.mss);
        let [first, second, ..] = config.tunnels.map(|it| it.mss);
        assert_eq!([one, other, first, second], wanted);
    }
}

#[test]
fn an_mss_to_the_inside_fits_whoever_has_the_syns() {
    let mut engine =
        EngineConfig { nat64: vec![nat64("64:ff9b::/96", Vec::new())], ..EngineConfig::default() };
    (engine.limits.mtu4, engine.limits.mtu6) = (1_400, 1_500);
    engine.nat44.push(nat44(vec!["10.0.0.0/8".parse().unwrap()], Vec::new()));
    let of = |engine: &EngineConfig, forwards_syn| {
        let around = Surroundings { forwards_syn, ..Surroundings::default() };
        let [one, other, ..] = Offer::of(engine, &around).rules.config.translators.map(|it| it.mss);
        [one, other]
    };
    assert_eq!([of(&engine, true), of(&engine, false)], [[1_360, 1_360]; 2]);
    engine.nat64[0].policy.clamp_mss = false;
    engine.nat44[0].policy.clamp_mss = false;
    assert_eq!([of(&engine, true), of(&engine, false)], [[65_535, 65_535]; 2]);
}

#[test]
fn slots_that_are_free_between_others_are_passed_over() {
    let engine = EngineConfig { nat64: vec![nat64("64:ff9b::/96", Vec::new())], ..EngineConfig::default() };
    let slots: Slots = [(3, identity("64:ff9b::/96"))].into_iter().collect();
    let rules = Offer::of(&engine, &Surroundings { slots, ..Surroundings::default() }).rules;
    assert_eq!((rules.config.translators_count, rules.config.has_stateful), (4, 1));
    assert_eq!(rules.config.translators.map(|it| it.kind), [0, 0, 0, KIND_NAT64, 0, 0, 0, 0]);
    let offer = offer(&EngineConfig::default());
    assert_eq!((offer.rules.config.translators_count, offer.rules.config.has_stateful), (0, 0));
}

#[test]
fn translators_without_room_keep_every_stateless_rule_away() {
    let many = (0..9).map(|number| siit(&format!("2001:db8:{number}::/96"))).collect();
    let offer = offer(&EngineConfig { siit: many, ..EngineConfig::default() });
    assert_eq!((offer.unoffered.len(), offer.rules.config.has_stateless), (9, 0));
    assert!(offer.unoffered[0].why.to_string().contains("too many translators"));
}

#[test]
fn prefixes_without_room_keep_every_stateless_rule_away() {
    let prefixes = (0..65).map(|number| configured(1, number).prefixes[0]).collect();
    let tunnel = ConfiguredConfig { prefixes, strict_sources: false, ..configured(1, 1) };
    let engine = EngineConfig { tunnels: vec![TunnelConfig::Configured(tunnel)], ..EngineConfig::default() };
    let offer = offer(&engine);
    assert_eq!(
        whys(&offer),
        [(
            Mechanism::Tunnel(0),
            "too many IPv6 prefixes of all mechanisms; the fast path has room for 64".into()
        )]
    );
    assert_eq!(offer.rules.config.has_stateless, 0);
}

#[test]
fn a_tunnel_without_room_takes_those_along_that_end_where_it_does() {
    let mut tunnels: Vec<_> = (0..17)
        .map(|number| TunnelConfig::Configured(configured(if number > 14 { 2 } else { 1 }, number)))
        .collect();
    let offer = offer(&EngineConfig { tunnels: tunnels.clone(), ..EngineConfig::default() });
    assert_eq!(
        whys(&offer),
        [
            (Mechanism::Tunnel(15), "another tunnel that ends at 192.0.2.2 is not in the fast path".into()),
            (Mechanism::Tunnel(16), "too many tunnels; the fast path has room for 16".into()),
        ]
    );
    let config = &offer.rules.config;
    assert_eq!((config.tunnels[14].kind, config.tunnels[15].kind), (KIND_CONFIGURED, 0));
    assert_eq!(config.rules.iter().filter(|rule| rule.kind == KIND_ENGINE).count(), 1);
    tunnels.truncate(16);
    assert_eq!(
        super::Offer::of(&EngineConfig { tunnels, ..EngineConfig::default() }, &Surroundings::default())
            .unoffered,
        []
    );
}

fn isatap(address: u8, prefixes: usize, routers: usize, locators: usize) -> TunnelConfig {
    TunnelConfig::Isatap(IsatapConfig {
        role: isatap::Role::Host,
        address: Ipv4Addr::new(192, 0, 2, address),
        prefixes: (0..prefixes)
            .map(|number| Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, number as u16, 0, 0, 0, 0, 0), 64))
            .collect(),
        routers: (0..routers).map(|number| Ipv4Addr::new(198, 51, 100, number as u8)).collect(),
        locators: networks(locators),
        subnets: Vec::new(),
        policy: TunnelPolicy::default(),
    })
}

#[test]
fn lists_without_room_leave_their_tunnel_to_the_engine_and_equal_lists_share_it() {
    let (prefixes, routers, locators) = (PREFIXES6, ADDRESSES4, NETWORKS4);
    for (tunnel, why) in [
        (isatap(2, prefixes + 1, 0, 0), "prefixes of tunnels"),
        (isatap(2, 1, routers + 1, 0), "relays and routers of tunnels"),
        (isatap(2, 1, 0, locators + 1), "IPv4 networks of tunnels"),
    ] {
        let offer =
            offer(&EngineConfig { tunnels: vec![isatap(1, 1, 1, 1), tunnel], ..EngineConfig::default() });
        let [(Mechanism::Tunnel(1), said)] = &whys(&offer)[..] else { panic!("{offer:?}") };
        assert!(said.contains(why), "{said}");
        assert_eq!(offer.rules.config.has_stateless, 1);
    }
    let both = vec![isatap(1, prefixes, routers, locators), isatap(2, prefixes, routers, locators)];
    assert_eq!(offer(&EngineConfig { tunnels: both, ..EngineConfig::default() }).unoffered, []);
}

#[test]
fn more_addresses_of_this_host_than_there_is_room_for_leave_all_tunnels_to_the_engine() {
    let host4 = (0..65).map(|number| Ipv4Addr::new(10, 0, 0, number)).collect();
    let tunnels = vec![TunnelConfig::Configured(configured(1, 5))];
    let offer = offer(&EngineConfig { tunnels, host4, ..EngineConfig::default() });
    assert_eq!(
        whys(&offer),
        [(
            Mechanism::Tunnel(0),
            "too many IPv4 addresses of this host; the fast path has room for 64".into()
        )]
    );
    assert_eq!(offer.rules.config.has_stateless, 0);
}

#[test]
fn what_this_host_is_called_by_is_known_once() {
    let six_to_four = SixToFourConfig {
        role: six_to_four::Role::Router,
        address: "10.0.0.2".parse().unwrap(),
        nat_address: Some("203.0.113.9".parse().unwrap()),
        relay: None,
        native_sources: NativeSources::AnyRelay,
        subnets: Vec::new(),
        policy: TunnelPolicy::default(),
    };
    let engine = EngineConfig {
        tunnels: vec![TunnelConfig::SixToFour(six_to_four), TunnelConfig::Configured(configured(1, 5))],
        host4: vec!["10.0.0.2".parse().unwrap(), "192.0.2.1".parse().unwrap()],
        ..EngineConfig::default()
    };
    let config = offer(&engine).rules.config;
    let own: Vec<_> = config.own[..usize::from(config.own_count)]
        .iter()
        .map(|own| (Ipv4Addr::from(own.address.to_ne_bytes()).to_string(), own.public_, own.is_host4))
        .collect();
    let own: Vec<_> = own.iter().map(|(text, public, host4)| (text.as_str(), *public, *host4)).collect();
    assert_eq!(own, [("10.0.0.2", 0, 1), ("192.0.2.1", 1, 1), ("203.0.113.9", 1, 0)]);
}

#[test]
fn the_dynamic_pools_hosts_are_said_to_be_left_out_and_the_rest_is_carried() {
    let rows = [("192.0.2.1/32".parse().unwrap(), "2001:db8::1/128".parse().unwrap())];
    let config = SiitConfig {
        eam: Arc::new(EamTable::new(rows).unwrap()),
        dynamic_pool: Some(DynamicPoolConfig::new("203.0.113.0/24".parse().unwrap())),
        ..siit("2001:db8:64::/96")
    };
    let offer = offer(&EngineConfig { siit: vec![config], ..EngineConfig::default() });
    assert_eq!(
        offer.unoffered,
        [Unoffered { mechanism: Mechanism::Siit(0), why: UnofferedReason::DynamicPool }]
    );
    assert_eq!(offer.rules.config.has_stateless, 1);
    let [four, six] = &offer.rules.tables[..] else { panic!() };
    let pool = [&56_u32.to_ne_bytes()[..], &[0, 0, 0, 0, 203, 0, 113, 0]].concat();
    let mapped = [&64_u32.to_ne_bytes()[..], &[0, 0, 0, 0, 192, 0, 2, 1]].concat();
    assert_eq!(four.rows.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&pool, &mapped]);
    assert_eq!((six.rows.len(), six.rows[0].0.len()), (1, 24));
}

#[test]
fn with_excluded_addresses_no_stateless_mechanism_is_carried_and_each_says_why() {
    let config = SiitConfig { excluded: vec!["10.0.0.0/8".parse().unwrap()], ..siit("2001:db8:64::/96") };
    let offer = offer(&EngineConfig { siit: vec![config], ..EngineConfig::default() });
    let why = UnofferedReason::ExcludedAddresses;
    assert_eq!(offer.unoffered, [Unoffered { mechanism: Mechanism::Siit(0), why }]);
    assert_eq!(offer.rules.config.has_stateless, 0);
}

fn nat44(inside: Vec<Prefix4>, pool: Vec<Prefix4>) -> Nat44Config {
    Nat44Config::new(inside, PoolConfig { addresses: pool, ports: vec![1_024..=65_535] })
}

#[test]
fn a_nat44_has_a_slot_and_its_inside_and_pool_are_known() {
    let (inside, pool) = ("192.168.0.0/16".parse().unwrap(), "192.0.2.0/24".parse().unwrap());
    let engine = EngineConfig {
        nat64: vec![nat64("64:ff9b::/96", vec!["203.0.113.0/24".parse().unwrap()])],
        nat44: vec![nat44(vec![inside], vec![pool])],
        siit: vec![siit("2001:db8:5::/48")],
        ..EngineConfig::default()
    };
    let slots: Slots = [(0, Identity::of_nat44())].into_iter().collect();
    for (slots, nat44, siit) in [(Slots::default(), 1, 2), (slots, 0, 2)] {
        let offer = Offer::of(&engine, &Surroundings { slots, ..Surroundings::default() });
        assert_eq!(offer.unoffered, []);
        let config = &offer.rules.config;
        assert_eq!((config.translators[nat44].kind, config.nat44), (KIND_NAT44, nat44 as u8 + 1));
        assert_eq!(config.translators[nat44].identity, Identity::of_nat44().number());
        assert_eq!(
            (config.translators[siit].kind, config.has_stateful, config.has_stateless),
            (KIND_SIIT, 1, 1)
        );
        assert_eq!((config.inside4_count, config.inside4[0].bits.to_ne_bytes()), (1, [192, 168, 0, 0]));
        assert_eq!((config.sources4_count, config.sources4[0]), (1, config.inside4[0]));
        assert_eq!((config.pools_count, config.pools[1].address), (2, 0xc000_0200));
    }
}

#[test]
fn a_nat44_without_room_is_the_engines_and_the_stateless_rules_stay() {
    let pool = vec!["192.0.2.0/24".parse().unwrap()];
    let tunnels = vec![TunnelConfig::Configured(configured(1, 5))];
    let many = || nat44(networks(INSIDES + 1), pool.clone());
    let one = || nat44(networks(1), pool.clone());
    let no_room = |what: &str, room| format!("too many {what}; the fast path has room for {room}");
    for (nat44, why) in [
        (vec![many()], no_room("prefixes of NAT44's inside", 16)),
        (vec![one(), one()], no_room("NAT44s", 1)),
    ] {
        let offer = offer(&EngineConfig { nat44, tunnels: tunnels.clone(), ..EngineConfig::default() });
        assert_eq!(whys(&offer), [(Mechanism::Other(Kind::Nat44), why)]);
        let config = &offer.rules.config;
        assert_eq!((config.nat44, config.has_stateful, config.has_stateless), (0, 0, 1));
    }
    let most = (0..8).map(|number| nat64(&format!("2001:db8:{number}::/96"), pool.clone())).collect();
    let offer = offer(&EngineConfig { nat64: most, nat44: vec![one()], ..EngineConfig::default() });
    assert_eq!(whys(&offer), [(Mechanism::Other(Kind::Nat44), no_room("translators", 8))]);
}

#[test]
fn sources_of_rules_and_of_mechanisms_are_one_list_without_parts_of_others() {
    let parse = |list: &[&str]| -> Vec<Prefix4> { list.iter().map(|text| text.parse().unwrap()).collect() };
    let engine = EngineConfig {
        nat44: vec![nat44(parse(&["10.0.0.0/8", "192.168.0.0/16"]), parse(&["192.0.2.0/24"]))],
        tunnels: vec![TunnelConfig::Configured(configured(1, 5))],
        ..EngineConfig::default()
    };
    let with = |list: &[&str]| {
        let around = Surroundings { sources4: parse(list), ..Surroundings::default() };
        Offer::of(&engine, &around)
    };
    let sources = |list: &[&str]| {
        let config = with(list).rules.config;
        config.sources4[..usize::from(config.sources4_count)].to_vec()
    };
    // The gateway's own rules, before and after they are made.
    assert_eq!(sources(&[]), sources(&["192.168.0.0/16", "10.0.0.0/8", "10.0.0.0/8", "10.1.0.0/16"]));
    assert_eq!((sources(&[]).len(), sources(&["172.16.0.0/12"]).len()), (2, 3));
    let around = Surroundings { sources4: networks(SOURCES + 1), ..Surroundings::default() };
    let engine = EngineConfig { nat44: Vec::new(), ..engine };
    let offer = Offer::of(&engine, &around);
    let why = "too many sources that routes depend on; the fast path has room for 32".to_owned();
    assert_eq!(whys(&offer), [(Mechanism::Tunnel(0), why)]);
    assert_eq!(offer.rules.config.has_stateless, 0);
}

#[test]
fn a_tunnel_that_a_nat44_translates_is_left_to_the_engine() {
    let pool = PoolConfig { addresses: vec!["203.0.113.0/29".parse().unwrap()], ports: vec![1_024..=65_535] };
    let nat44 = |inside: &str, translate_own_tunnels| Nat44Config {
        translate_own_tunnels,
        ..Nat44Config::new(vec![inside.parse().unwrap()], pool.clone())
    };
    let offer = |nat44: Nat44Config| {
        let tunnels = vec![TunnelConfig::Configured(configured(1, 5))];
        offer(&EngineConfig { nat44: vec![nat44], tunnels, ..EngineConfig::default() })
    };
    for (inside, translates, kind) in [
        ("192.0.2.0/24", true, 0),
        ("192.0.2.0/24", false, KIND_CONFIGURED),
        ("10.0.0.0/8", true, KIND_CONFIGURED),
    ] {
        let offer = offer(nat44(inside, translates));
        assert_eq!(offer.rules.config.tunnels[0].kind, kind, "{inside}");
        let is_told = whys(&offer).iter().any(|(_, why)| why.contains("nat44.translate_own_tunnels"));
        assert_eq!(is_told, kind == 0);
    }
}
