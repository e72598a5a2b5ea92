//! Names below one that does not exist (RFC 8020).

use super::dnssec::world as validating;
use super::world::{CD, DO, Manner, PLAIN, World, settings, wire};
use sixway_control::dns64::{Dnssec, Settings, Upstream};
use std::time::Duration;

/// A resolver that takes its upstream's word for what is secure.
fn trusting() -> World {
    let dnssec = Dnssec { trust_upstream: true, ..Dnssec::default() };
    let mut world = World::new(Settings { dnssec, ..settings() });
    world.manners = vec![Manner::Authentic];
    world
}

#[test]
fn below_a_name_that_does_not_exist_nobody_is_asked() {
    let mut world = trusting();
    let above = world.ask("gone.test", "AAAA", DO);
    assert_eq!((&*above.rcode, above.authentic), ("NXDOMAIN", true));
    let seen = world.seen.len();
    for (name, rtype) in [("a.gone.test", "AAAA"), ("b.a.gone.test", "A"), ("A.GONE.test", "TXT")] {
        let got = world.ask(name, rtype, DO);
        assert_eq!((&*got.rcode, got.authentic, got.after), ("NXDOMAIN", true, Duration::ZERO), "{name}");
        assert_eq!(got.authority, above.authority);
    }
    assert_eq!(world.seen.len(), seen, "{:?}", world.seen);
    assert_eq!(world.ask("other.test", "A", PLAIN).rcode, "NXDOMAIN");
    assert_eq!(world.seen.len(), seen + 1, "next to it others may exist");
}

#[test]
fn the_cut_ends_with_the_answer_that_it_follows() {
    let mut world = trusting();
    world.ask("gone.test", "A", PLAIN);
    world.pass(Duration::from_secs(200));
    world.ask("a.gone.test", "A", PLAIN);
    world.pass(Duration::from_secs(101));
    let seen = world.seen.len();
    world.ask("a.gone.test", "A", PLAIN);
    assert_eq!(world.seen.len(), seen + 1, "its 300 s are over");
    world.add(&[("b.again.test", "A", 60, "192.0.2.1")]);
    world.ask("again.test", "A", PLAIN);
    assert_eq!(world.ask("b.again.test", "A", PLAIN).answer.len(), 1, "it has no records, but exists");
}

#[test]
fn what_is_not_proven_cuts_nothing() {
    let mut world = World::new(settings());
    world.ask("gone.test", "A", PLAIN);
    world.ask("a.gone.test", "A", PLAIN);
    assert_eq!(world.seen.len(), 2);
    // Nor for those who want to check by themselves.
    let mut world = trusting();
    world.ask("gone.test", "A", PLAIN);
    world.ask("a.gone.test", "A", CD);
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn the_end_of_a_chain_that_does_not_exist_is_not_its_beginning() {
    let mut world = trusting().with(&[("alias.test", "CNAME", 60, "gone.test")]);
    assert_eq!(world.ask("alias.test", "A", PLAIN).rcode, "NXDOMAIN");
    let seen = world.seen.len();
    world.ask("a.alias.test", "A", PLAIN);
    assert_eq!(world.seen.len(), seen + 1);
}

#[test]
fn a_zone_with_an_upstream_of_its_own_and_one_that_is_not_validated_are_not_cut_off() {
    let own =
        |names: &[&str]| Upstream { names: names.iter().map(|name| wire(name)).collect(), datagrams: true };
    let dnssec = Dnssec { trust_upstream: true, insecure: vec![wire("lab.gone.test")], ..Dnssec::default() };
    let upstreams = vec![own(&[]), own(&["corp.gone.test"])];
    let mut world = World::new(Settings { dnssec, upstreams, ..settings() });
    world.manners = vec![Manner::Authentic; 2];
    world.ask("gone.test", "A", PLAIN);
    world.add(&[("w.corp.gone.test", "A", 60, "192.0.2.1"), ("w.lab.gone.test", "A", 60, "192.0.2.2")]);
    assert_eq!(world.ask("w.corp.gone.test", "A", PLAIN).answer.len(), 1);
    assert_eq!(world.ask("w.lab.gone.test", "A", PLAIN).answer.len(), 1);
    assert_eq!(world.ask("w.else.gone.test", "A", PLAIN).rcode, "NXDOMAIN");
    assert_eq!(world.seen.len(), 3);
}

#[test]
fn a_name_that_validates_not_to_exist_cuts_off_those_below() {
    let mut world = validating(super::dnssec::dnssec());
    let above = world.ask("nothing.test", "A", DO);
    assert_eq!((&*above.rcode, above.authentic), ("NXDOMAIN", true), "{above:?}");
    let seen = world.seen.len();
    let below = world.ask("x.nothing.test", "AAAA", DO);
    assert_eq!((&*below.rcode, below.authentic, world.seen.len()), ("NXDOMAIN", true, seen), "{below:?}");
    assert_eq!(below.authority, above.authority);
}
