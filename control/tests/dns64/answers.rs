//! What clients get (RFC 6147 §5.1 to §5.4).

use super::world::{CD, CD_DO, DO, Manner, PLAIN, World, settings, wire};
use domain::base::Rtype;
use sixway_control::Instant;
use sixway_control::dns64::{
    CheckingDisabled, LeasedAddress, LeasedNames, Outcome, Reverse, Rule, SpecialNames, Synthesis,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_name_with_ipv4_only_gets_aaaa_records_made_of_its_a_records() {
    let mut world = World::new(settings())
        .with(&[("v4.test", "A", 600, "198.51.100.1"), ("v4.test", "A", 600, "192.0.2.2")]);
    let got = world.ask("V4.test", "AAAA", PLAIN);
    assert_eq!(
        got.answer,
        ["V4.test. 300 IN AAAA 64:ff9b::c633:6401", "V4.test. 300 IN AAAA 64:ff9b::c000:202"]
    );
    assert_eq!((&*got.rcode, got.authentic), ("NOERROR", false));
    assert_eq!(world.counters().of(Outcome::Synthesised), 1);
}

#[test]
fn a_name_with_ipv6_gets_what_it_has() {
    let zone = [("both.test", "A", 600, "198.51.100.1"), ("both.test", "AAAA", 60, "2001:db8::1")];
    let mut world = World::new(settings()).with(&zone);
    assert_eq!(world.ask("both.test", "AAAA", PLAIN).answer, ["both.test. 60 IN AAAA 2001:db8::1"]);
    assert_eq!(world.ask("both.test", "A", PLAIN).answer, ["both.test. 600 IN A 198.51.100.1"]);
    assert_eq!(world.counters().of(Outcome::Forwarded), 2);
}

#[test]
fn records_come_from_the_cache_until_their_end_and_age_there() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 100, "198.51.100.1")]);
    world.ask("v4.test", "AAAA", PLAIN);
    let asked = world.seen.len();
    world.pass(Duration::from_secs(40));
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 60 IN AAAA 64:ff9b::c633:6401"]);
    assert_eq!(world.seen.len(), asked);
    world.pass(Duration::from_secs(61));
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 100 IN AAAA 64:ff9b::c633:6401"]);
    assert_eq!(world.seen.len(), asked + 1, "only A had ended");
}

#[test]
fn without_a_soa_record_what_is_made_lives_ten_minutes_at_most() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 3_600, "198.51.100.1")]);
    world.soa = None;
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 600 IN AAAA 64:ff9b::c633:6401"]);
}

#[test]
fn a_chain_leads_to_what_is_made() {
    let zone = [
        ("www.test", "CNAME", 500, "edge.test"),
        ("edge.test", "CNAME", 200, "v4.test"),
        ("v4.test", "A", 100, "198.51.100.1"),
    ];
    let mut world = World::new(settings()).with(&zone);
    let got = world.ask("www.test", "AAAA", PLAIN);
    assert_eq!(
        got.answer,
        [
            "www.test. 500 IN CNAME edge.test.",
            "edge.test. 200 IN CNAME v4.test.",
            "v4.test. 100 IN AAAA 64:ff9b::c633:6401"
        ]
    );
}

#[test]
fn a_name_that_does_not_exist_does_not_exist() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 100, "198.51.100.1")]);
    let got = world.ask("nothing.test", "AAAA", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NXDOMAIN", 0, 1));
    assert!(world.seen.iter().all(|(_, _, rtype)| *rtype != Rtype::A), "A is not asked for");
}

#[test]
fn a_name_with_neither_gets_the_first_answer() {
    let mut world = World::new(settings()).with(&[("text.test", "TXT", 100, "hello")]);
    let got = world.ask("text.test", "AAAA", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 0));
    assert_eq!(got.authority, ["test. 300 IN SOA ns.test. admin.test. 1 2 3 4 300"]);
    assert_eq!(world.counters().of(Outcome::NoData), 1);
}

#[test]
fn an_error_for_aaaa_counts_as_none() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 3_600, "198.51.100.1")]);
    world.manners = vec![Manner::ServfailTo(28)];
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 600 IN AAAA 64:ff9b::c633:6401"]);
}

#[test]
fn silence_for_aaaa_counts_as_none_after_two_seconds() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 3_600, "198.51.100.1")]);
    world.manners = vec![Manner::SilentTo(28)];
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!(got.answer, ["v4.test. 600 IN AAAA 64:ff9b::c633:6401"]);
    assert!(got.after >= Duration::from_secs(2) && got.after < Duration::from_secs(3), "{:?}", got.after);
}

#[test]
fn an_error_for_a_is_the_answer() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 3_600, "198.51.100.1")]);
    world.manners = vec![Manner::ServfailTo(1)];
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).rcode, "SERVFAIL");
}

#[test]
fn excluded_aaaa_records_count_as_absent() {
    let zone = [
        ("mapped.test", "AAAA", 60, "::ffff:192.0.2.1"),
        ("mapped.test", "A", 60, "192.0.2.1"),
        ("mixed.test", "AAAA", 60, "::ffff:192.0.2.1"),
        ("mixed.test", "AAAA", 60, "2001:db8::7"),
    ];
    let mut world = World::new(settings()).with(&zone);
    assert_eq!(world.ask("mapped.test", "AAAA", PLAIN).answer, ["mapped.test. 60 IN AAAA 64:ff9b::c000:201"]);
    assert_eq!(world.ask("mixed.test", "AAAA", PLAIN).answer, ["mixed.test. 60 IN AAAA 2001:db8::7"]);
    assert_eq!(world.ask("mixed.test", "AAAA", CD_DO).answer.len(), 2, "who validates gets all");
}

#[test]
fn who_validates_gets_nothing_made() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    assert_eq!(world.ask("v4.test", "AAAA", CD_DO).answer.len(), 0);
    assert_eq!(world.ask("v4.test", "AAAA", CD).answer.len(), 1);
    assert_eq!(world.ask("v4.test", "AAAA", DO).answer.len(), 1);
}

#[test]
fn checking_disabled_alone_can_be_passed_on_too() {
    let mut settings = settings();
    settings.dnssec.checking_disabled = CheckingDisabled::PassOn;
    let mut world = World::new(settings).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    assert_eq!(world.ask("v4.test", "AAAA", CD).answer.len(), 0);
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer.len(), 1);
}

#[test]
fn a_trusted_upstreams_word_is_passed_on_to_those_who_ask_for_it() {
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    let mut world = World::new(settings).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.manners = vec![Manner::Authentic];
    assert!(world.ask("v4.test", "AAAA", DO).authentic);
    assert!(!world.ask("v4.test", "AAAA", PLAIN).authentic);
    assert!(!world.ask("v4.test", "A", PLAIN).authentic);
    assert!(!world.ask("v4.test", "AAAA", CD).authentic);
}

#[test]
fn rules_never_and_always() {
    let mut settings = settings();
    settings.rules = vec![
        Rule { names: vec![wire("corp.test")], synthesis: Synthesis::Never, ..Rule::default() },
        Rule { names: vec![wire("broken.test")], synthesis: Synthesis::Always, ..Rule::default() },
    ];
    let zone = [
        ("a.corp.test", "A", 60, "192.0.2.1"),
        ("broken.test", "A", 60, "192.0.2.2"),
        ("broken.test", "AAAA", 60, "2001:db8::dead"),
    ];
    let mut world = World::new(settings).with(&zone);
    let never = world.ask("a.corp.test", "AAAA", PLAIN);
    assert_eq!((never.answer.len(), never.extended_error.map(|error| error.0)), (0, Some(0)));
    assert_eq!(world.ask("broken.test", "AAAA", PLAIN).answer, ["broken.test. 60 IN AAAA 64:ff9b::c000:202"]);
    assert!(world.seen.iter().all(|(_, name, rtype)| name != "broken.test." || *rtype == Rtype::A));
}

#[test]
fn a_reverse_query_for_a_translated_address_leads_to_in_addr_arpa() {
    let zone = [("1.2.0.192.in-addr.arpa", "PTR", 100, "v4.test")];
    let name = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
    let mut world = World::new(settings()).with(&zone);
    let alias = format!("{name}. 600 IN CNAME 1.2.0.192.in-addr.arpa.");
    assert_eq!(
        world.ask(name, "PTR", PLAIN).answer,
        [&*alias, "1.2.0.192.in-addr.arpa. 100 IN PTR v4.test."]
    );

    let mut rewriting =
        World::new(sixway_control::dns64::Settings { reverse: Reverse::Rewrite, ..settings() }).with(&zone);
    assert_eq!(rewriting.ask(name, "PTR", PLAIN).answer, [format!("{name}. 100 IN PTR v4.test.")]);
}

#[test]
fn a_translated_address_without_a_name_has_none_and_gets_no_alias() {
    let name = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
    let mut world = World::new(settings()).with(&[("9.2.0.192.in-addr.arpa", "PTR", 100, "v4.test")]);
    let got = world.ask(name, "PTR", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NXDOMAIN", 0, 1), "{got:?}");
}

#[test]
fn ipv4only_arpa_is_answered_without_an_upstream() {
    let mut world = World::new(settings());
    let got = world.ask("ipv4only.arpa", "AAAA", PLAIN);
    assert_eq!(got.answer.len(), 2);
    assert!(got.answer[0].ends_with("AAAA 64:ff9b::c000:aa"), "{got:?}");
    assert!(world.seen.is_empty());
}

#[test]
fn hidden_a_records_leave_a_negative_answer_that_can_be_kept() {
    let rule = |name: &str| Rule { names: vec![wire(name)], hide_a: true, ..Rule::default() };
    let single = Rule {
        names: vec![wire("some.test")],
        addresses: vec!["192.0.2.0/24".parse().expect("it is well-formed")],
        hide_a: true,
        ..Rule::default()
    };
    let mut settings = settings();
    settings.rules = vec![rule("all.test"), single];
    let zone = [
        ("all.test", "A", 600, "192.0.2.1"),
        ("www.some.test", "CNAME", 600, "some.test"),
        ("some.test", "A", 600, "192.0.2.1"),
    ];
    let mut world = World::new(settings).with(&zone);
    for (name, owner, links) in [("all.test", "all.test", 0), ("some.test", "some.test", 0)] {
        let got = world.ask(name, "A", PLAIN);
        assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", links), "{name}");
        let soa = format!("{owner}. 60 IN SOA {owner}. nobody.invalid. 1 3600 1200 604800 60");
        assert_eq!(got.authority, [soa], "{name}");
    }
}

#[test]
fn a_stranger_is_refused() {
    let mut world = World::new(settings());
    let query = super::world::query("v4.test", "AAAA", PLAIN);
    let ticket = world.send_from("2a00::1".parse().unwrap(), sixway_control::dns64::Transport::Udp, &query);
    let got = world.answer(ticket).expect("an answer at once");
    assert_eq!((&*got.rcode, got.extended_error.map(|error| error.0)), ("REFUSED", Some(18)));
}

/// Every name is that of a host, and each question begins a lease.
#[derive(Debug, Default)]
struct Leases(AtomicUsize);

impl LeasedNames for Leases {
    fn address(&self, _: &[u8], _: (IpAddr, bool), _: Instant) -> LeasedAddress {
        self.0.fetch_add(1, Ordering::Relaxed);
        LeasedAddress::Has([192, 0, 2, 7].into(), 60)
    }
}

#[test]
fn a_hidden_a_record_begins_no_lease_whatever_name_it_has() {
    for zone in ["corp.net", "home.arpa"] {
        let leases = Arc::new(Leases::default());
        let mut settings = settings();
        settings.special_names = SpecialNames::Local;
        settings.rules =
            vec![Rule { names: vec![wire(&format!("hidden.{zone}"))], hide_a: true, ..Rule::default() }];
        let mut world = World::new(settings);
        world.resolver = world.resolver.with_leases(Some(leases.clone()));
        let got = world.ask(&format!("hidden.{zone}"), "A", PLAIN);
        assert!(got.answer.is_empty(), "{got:?}");
        assert_eq!(leases.0.load(Ordering::Relaxed), 0);
        let got = world.ask(&format!("host.{zone}"), "A", PLAIN);
        assert_eq!(got.answer, [format!("host.{zone}. 30 IN A 192.0.2.7")]);
    }
}
