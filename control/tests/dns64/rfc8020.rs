//! A name that does not exist, and the names below it (RFC 8020).

use super::world::{CD_DO, DO, PLAIN, World, settings};
use sixway_control::dns64::{Hosts, Reverse, Settings, SpecialNames};
use std::sync::Arc;

const NAME: &str = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";

#[test]
fn names_above_a_translated_address_exist_for_every_type() {
    let zone = [("1.2.0.192.in-addr.arpa", "PTR", 100, "v4.test")];
    for reverse in [Reverse::Cname { ttl: 600 }, Reverse::Rewrite] {
        let mut world = World::new(Settings { reverse, ..settings() }).with(&zone);
        assert!(!world.ask(NAME, "PTR", PLAIN).answer.is_empty());
        // From the address to the apex of the prefix's zone.
        for labels in 1..=8 {
            for rtype in ["PTR", "A", "TXT", "NS"] {
                let got = world.ask(&NAME[2 * labels..], rtype, PLAIN);
                assert_eq!(
                    (&*got.rcode, got.answer.len(), got.authority.len()),
                    ("NOERROR", 0, 1),
                    "{labels}"
                );
            }
        }
        assert_eq!(world.ask(&NAME[16..], "SOA", PLAIN).answer.len(), 1);
        assert!(world.seen.iter().all(|(_, name, _)| name.ends_with("in-addr.arpa.")));
    }
}

#[test]
fn below_a_translated_address_there_is_nothing() {
    let mut world = World::new(settings());
    let got = world.ask(&format!("x.{NAME}"), "PTR", PLAIN);
    assert_eq!((&*got.rcode, got.authority.len(), world.seen.len()), ("NXDOMAIN", 1, 0));
}

#[test]
fn names_above_those_of_a_hosts_file_exist_though_an_upstream_denies_them() {
    let hosts = Arc::new(Hosts::read("192.0.2.7 a.b.lan a.d.lan\n192.168.1.7 nas.test\n").0);
    let special_names = SpecialNames::Local;
    let mut world = World::new(Settings { hosts, special_names, ..settings() });
    for name in ["b.lan", "lan", "1.168.192.in-addr.arpa"] {
        for rtype in ["A", "AAAA", "TXT", "PTR"] {
            for bits in [PLAIN, DO] {
                let got = world.ask(name, rtype, bits);
                let counts = (got.answer.len(), got.authority.len());
                assert_eq!(
                    (&*got.rcode, counts, got.authentic),
                    ("NOERROR", (0, 1), false),
                    "{name} {rtype}"
                );
            }
        }
    }
    for name in ["c.lan", "xb.lan", "x.a.b.lan", "2.168.192.in-addr.arpa", "x.nas.test"] {
        assert_eq!(world.ask(name, "A", PLAIN).rcode, "NXDOMAIN", "{name}");
    }
    assert_eq!(world.ask("b.lan", "A", CD_DO).rcode, "NXDOMAIN", "it validates itself");
    // What an upstream has is not hidden.
    world.add(&[("d.lan", "TXT", 60, "\"x\"")]);
    assert_eq!(world.ask("d.lan", "TXT", PLAIN).answer.len(), 1);
}

#[test]
fn loopback_and_unspecified_addresses_of_a_hosts_file_are_answered_as_written() {
    let hosts = Arc::new(Hosts::read("127.0.0.1 ads.test\n0.0.0.0 spy.test\n127.0.1.1 router.lan\n").0);
    let mut world = World::new(Settings { hosts, ..settings() });
    for (name, address) in [("ads.test", "127.0.0.1"), ("spy.test", "0.0.0.0"), ("router.lan", "127.0.1.1")] {
        assert_eq!(world.ask(name, "A", PLAIN).answer, [format!("{name}. 60 IN A {address}")]);
        let got = world.ask(name, "AAAA", PLAIN);
        assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 0), "nothing is made of it");
    }
    assert_eq!(world.seen, []);
}
