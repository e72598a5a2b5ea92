//! Other settings while the resolver runs: what stays, what goes, and that nobody who waits is forgotten.

use super::world::{DO, Manner, PLAIN, World, query, settings, wire};
use proptest::prelude::*;
use sixway_control::dns64::upstream::Health;
use sixway_control::dns64::{Access, Dnssec, Outcome, Settings, Transport, Upstream};
use std::net::Ipv6Addr;
use std::time::Duration;

fn for_all() -> Upstream {
    Upstream { names: vec![], datagrams: true }
}

fn for_names(names: &[&str]) -> Upstream {
    Upstream { names: names.iter().map(|name| wire(name)).collect(), datagrams: true }
}

fn with_upstreams(upstreams: Vec<Upstream>) -> Settings {
    Settings { upstreams, ..settings() }
}

#[test]
fn the_cache_stays_with_other_access_and_other_rules() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.ask("v4.test", "AAAA", PLAIN);
    let seen = world.seen.len();
    let v6 = vec!["2001:db8:1::/48".parse().expect("a prefix")];
    let other = Settings { access: Access { v6, ..Access::default() }, parallel: true, ..settings() };
    assert_eq!(world.reconfigure(other, &[(Manner::Honest, Some(0))]), 0);
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 60 IN AAAA 64:ff9b::c000:201"]);
    assert_eq!(world.seen.len(), seen, "nobody was asked");
    let elsewhere: Ipv6Addr = "2001:db8:2::1".parse().expect("an address");
    let ticket = world.send_from(elsewhere, Transport::Udp, &query("v4.test", "AAAA", PLAIN));
    assert_eq!(world.answer(ticket).expect("an answer").rcode, "REFUSED");
}

#[test]
fn another_prefix_holds_for_what_is_in_the_cache() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.ask("v4.test", "AAAA", PLAIN);
    let prefix = "2001:db8:64::/96".parse().expect("a prefix");
    let prefix = sixway_dataplane::translate::address::Rfc6052::new(prefix, true).expect("it is well-formed");
    world.reconfigure(Settings { prefixes: vec![prefix], ..settings() }, &[(Manner::Honest, Some(0))]);
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!(got.answer, ["v4.test. 60 IN AAAA 2001:db8:64::c000:201"]);
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn a_question_that_waits_for_an_upstream_that_is_gone_goes_to_another() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.manners = vec![Manner::Silent];
    let ticket = world.send("v4.test", "A", PLAIN);
    world.reconfigure(settings(), &[(Manner::Honest, None)]);
    world.pass(Duration::from_millis(20));
    assert_eq!(world.answer(ticket).expect("an answer").answer.len(), 1);
    let open: usize = world.resolver.upstreams().map(|row| row.open).sum();
    assert_eq!(open, 0);
}

#[test]
fn upstreams_that_stay_keep_their_latency_and_their_health() {
    let upstreams = vec![for_all(), for_names(&["corp.test"]), for_all()];
    let mut world = World::new(with_upstreams(upstreams));
    world.manners[1] = Manner::Silent;
    for number in 0..40 {
        world.ask(&format!("n{number}.test"), "A", PLAIN);
        let _ = world.ask(&format!("n{number}.corp.test"), "A", PLAIN);
    }
    let rows: Vec<_> = world.resolver.upstreams().collect();
    assert_eq!(rows[1].health, Health::Down);
    assert!(rows[0].latency.is_some() && rows[2].latency.is_some());
    let replies = world.counters().replies;
    let other = with_upstreams(vec![for_names(&["corp.test"]), for_all(), for_all()]);
    world.reconfigure(other, &[(Manner::Silent, Some(1)), (Manner::Honest, Some(2)), (Manner::Honest, None)]);
    let moved: Vec<_> = world.resolver.upstreams().collect();
    assert_eq!(moved[0].health, Health::Down);
    assert_eq!((moved[0].asked, moved[1].latency), (rows[1].asked, rows[2].latency));
    assert_eq!((moved[2].asked, moved[2].latency), (0, None), "it is new");
    assert_eq!(world.counters().replies, replies, "what the other did counts still");
    // One that was down is probed at its new place and comes back.
    world.manners[0] = Manner::Honest;
    world.pass(Duration::from_secs(70));
    assert_eq!(world.resolver.upstreams().next().expect("the first").health, Health::Up);
}

#[test]
fn what_an_upstream_that_is_gone_said_of_its_own_names_is_forgotten() {
    let zone = [("host.corp.test", "A", 600, "192.0.2.1"), ("host.test", "A", 600, "192.0.2.2")];
    let mut world = World::new(with_upstreams(vec![for_all(), for_names(&["corp.test"])])).with(&zone);
    world.ask("host.corp.test", "A", PLAIN);
    world.ask("host.test", "A", PLAIN);
    assert_eq!(world.seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(world.reconfigure(settings(), &[(Manner::Honest, Some(0))]), 1);
    world.ask("host.corp.test", "A", PLAIN);
    world.ask("host.test", "A", PLAIN);
    assert_eq!(world.seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn names_that_have_an_upstream_of_their_own_now_are_asked_of_it() {
    let zone = [("host.corp.test", "A", 600, "192.0.2.1"), ("host.test", "A", 600, "192.0.2.2")];
    let mut world = World::new(settings()).with(&zone);
    for name in ["host.corp.test", "nobody.corp.test", "host.test"] {
        world.ask(name, "A", PLAIN);
    }
    world.manners = vec![Manner::Silent];
    let waits = world.send("late.corp.test", "A", PLAIN);
    let other = with_upstreams(vec![for_all(), for_names(&["corp.test"])]);
    assert_eq!(world.reconfigure(other, &[(Manner::Silent, Some(0)), (Manner::Honest, None)]), 2);
    world.pass(Duration::from_millis(20));
    assert_eq!(world.answer(waits).expect("the other was asked").rcode, "NXDOMAIN");
    assert_eq!(world.ask("host.corp.test", "A", PLAIN).answer.len(), 1);
    assert_eq!(world.seen.last().expect("a question").0, 1);
    assert_eq!(world.ask("host.test", "A", PLAIN).answer.len(), 1, "that one is in the cache");
}

#[test]
fn a_second_upstream_for_a_zone_and_another_for_all_names_leave_the_cache_alone() {
    let zone = [("host.corp.test", "A", 600, "192.0.2.1"), ("host.test", "A", 600, "192.0.2.2")];
    let mut world = World::new(with_upstreams(vec![for_all(), for_names(&["corp.test"])])).with(&zone);
    world.ask("host.corp.test", "A", PLAIN);
    world.ask("host.test", "A", PLAIN);
    let other = with_upstreams(vec![for_names(&["corp.test"]), for_names(&["corp.test"]), for_all()]);
    let upstreams = [(Manner::Honest, None), (Manner::Honest, Some(1)), (Manner::Honest, None)];
    assert_eq!(world.reconfigure(other, &upstreams), 0);
    world.ask("host.corp.test", "A", PLAIN);
    world.ask("host.test", "A", PLAIN);
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn with_other_settings_of_dnssec_no_verdict_is_kept() {
    let trusting = Dnssec { trust_upstream: true, ..Dnssec::default() };
    let mut world = World::new(Settings { dnssec: trusting.clone(), ..settings() }).with(&[(
        "v6.test",
        "AAAA",
        60,
        "2001:db8::1",
    )]);
    world.manners = vec![Manner::Authentic];
    assert!(world.ask("v6.test", "AAAA", DO).authentic);
    world.reconfigure(settings(), &[(Manner::Authentic, Some(0))]);
    assert!(!world.ask("v6.test", "AAAA", DO).authentic);
}

#[test]
fn what_was_not_validated_is_not_served_when_validation_ends() {
    let validating = Dnssec { validate: true, ..Dnssec::default() };
    let zone = [("v6.test", "AAAA", 60, "2001:db8::1")];
    let mut world = World::new(Settings { dnssec: validating, ..settings() }).with(&zone);
    let mut message = query("v6.test", "AAAA", DO);
    message[3] |= 0x10;
    world.send_from(World::client(), Transport::Udp, &message);
    world.pass(Duration::from_millis(20));
    assert_eq!(world.resolver.cached().0, 1);
    assert_eq!(world.reconfigure(settings(), &[(Manner::Honest, Some(0))]), 1);
    assert_eq!(world.ask("v6.test", "AAAA", PLAIN).answer.len(), 1);
    assert_eq!(world.seen.len(), 2, "it was asked for again");
}

#[test]
fn a_smaller_cache_gives_up_what_it_cannot_hold() {
    let mut world = World::new(settings());
    for number in 0..2_000 {
        world.ask(&format!("n{number}.test"), "A", PLAIN);
    }
    let (before, _) = world.resolver.cached();
    let mut smaller = settings();
    smaller.limits.cache /= 4;
    world.reconfigure(smaller, &[(Manner::Honest, Some(0))]);
    let (entries, octets) = world.resolver.cached();
    assert!(entries < before && entries > 0 && octets <= 1 << 18, "{entries} of {before}, {octets}");
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Query(u8, bool),
    Pass(u16),
    Reconfigure(Vec<(u8, Option<usize>, bool, bool)>, bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let upstream = (0..5_u8, prop::option::of(0..4_usize), any::<bool>(), any::<bool>());
    let event = prop_oneof![
        6 => (any::<u8>(), any::<bool>()).prop_map(|(name, zone)| Event::Query(name, zone)),
        3 => (0..3_000_u16).prop_map(Event::Pass),
        1 => (prop::collection::vec(upstream, 1..4), any::<bool>())
            .prop_map(|(upstreams, validate)| Event::Reconfigure(upstreams, validate)),
    ];
    prop::collection::vec(event, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(400)))]

    #[test]
    fn whatever_changes_each_query_has_its_answer(events in events()) {
        let manners =
            [Manner::Honest, Manner::Silent, Manner::Servfail, Manner::Unreachable, Manner::Truncating];
        let mut world = World::new(settings());
        let mut tickets = Vec::new();
        for event in events {
            match event {
                Event::Query(name, zone) => {
                    let zone = if zone { "corp.test" } else { "test" };
                    tickets.push(world.send(&format!("n{name}.{zone}"), "AAAA", PLAIN));
                }
                Event::Pass(milliseconds) => world.pass(Duration::from_millis(milliseconds.into())),
                Event::Reconfigure(upstreams, validate) => {
                    let of = |(_, _, zone, datagrams): &(u8, Option<usize>, bool, bool)| Upstream {
                        datagrams: *datagrams,
                        ..if *zone { for_names(&["corp.test"]) } else { for_all() }
                    };
                    let mut other = with_upstreams(upstreams.iter().map(of).collect());
                    other.dnssec.validate = validate;
                    let kept: Vec<_> = upstreams
                        .iter()
                        .map(|(manner, kept, ..)| (manners[usize::from(*manner)], *kept))
                        .collect();
                    world.reconfigure(other, &kept);
                }
            }
        }
        world.pass(Duration::from_secs(6));
        prop_assert_eq!(world.resolver.waiting(), 0);
        let answered = world.take_answers();
        prop_assert_eq!(answered.len(), tickets.len());
        prop_assert!(answered.iter().all(|(.., outcome)| *outcome != Outcome::Ignored));
    }
}

#[test]
fn a_question_that_waits_survives_the_upstream_that_it_was_put_to_last() {
    let with = |number: usize| {
        let mut settings = with_upstreams((0..number).map(|_| for_all()).collect());
        settings.limits.upstream_questions = 64;
        settings
    };
    let mut world = World::new(with(3));
    world.manners = vec![Manner::Silent; 3];
    let first = world.send("dead.test", "A", PLAIN);
    // It is put to the third one after 0.8 s.
    world.pass(Duration::from_millis(900));
    for number in 0..15 {
        world.send(&format!("n{number}.other.test"), "A", PLAIN);
    }
    world.reconfigure(with(2), &[(Manner::Silent, Some(0)), (Manner::Silent, Some(1))]);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.answer(first).expect("an answer").rcode, "SERVFAIL");
}
