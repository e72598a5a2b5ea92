//! What becomes of answers once they have been validated, or could not be.

use super::dnssec::{dnssec, world};
use super::world::{CD, DO, Manner, PLAIN, World, settings};
use sixway_control::dns64::{Dnssec, Outcome, Settings};
use std::time::Duration;

fn asked(world: &World, name: &str, rtype: u16) -> usize {
    world.seen.iter().filter(|(_, seen, of)| seen == name && of.to_int() == rtype).count()
}

#[test]
fn what_does_not_validate_and_lives_for_no_time_is_not_asked_for_again_and_again() {
    let mut world = world(dnssec()).with_ttl("www.tampered.test", 1, 0);
    for _ in 0..5 {
        let got = world.ask("www.tampered.test", "A", PLAIN);
        assert_eq!(got.rcode, "SERVFAIL");
        assert!(got.extended_error.is_some_and(|(code, _)| (6..=12).contains(&code)));
    }
    assert_eq!(world.counters().of(Outcome::Bogus), 5);
    assert!(asked(&world, "www.tampered.test.", 1) <= 2, "{:?}", world.seen);
    assert_eq!(world.ask("www.tampered.test", "A", CD).rcode, "NOERROR");
}

#[test]
fn no_record_outlives_what_its_zone_signed() {
    let mut world = world(dnssec()).with_ttl("www.test", 1, 80_000).with_ttl("www.test", 28, 80_000);
    for (rtype, bits) in [("A", DO), ("A", PLAIN), ("AAAA", PLAIN)] {
        let got = world.ask("www.test", rtype, bits);
        let ttls = got.answer.iter().map(|record| record.split(' ').nth(1).and_then(|ttl| ttl.parse().ok()));
        assert!(ttls.flatten().all(|ttl: u32| ttl <= 3_600) && got.answer.len() > 1, "{got:?}");
    }
    world.pass(Duration::from_secs(3_601));
    world.seen.clear();
    world.ask("www.test", "A", PLAIN);
    assert_eq!(asked(&world, "www.test.", 1), 1, "it has ended");
}

#[test]
fn what_is_flushed_is_validated_again_from_the_anchor_on() {
    let mut world = world(dnssec());
    world.ask("www.test", "A", DO);
    assert_eq!(asked(&world, "test.", 48), 1);
    world.resolver.flush(&[0]);
    world.ask("www.test", "A", DO);
    assert_eq!(asked(&world, "test.", 48), 2);
}

#[test]
fn what_could_not_be_validated_for_want_of_an_answer_can_be_as_soon_as_there_is_one() {
    let mut world = world(dnssec());
    world.manners = vec![Manner::ServfailTo(48)];
    assert_eq!(world.ask("www.test", "A", DO).rcode, "SERVFAIL");
    world.manners = vec![Manner::Honest];
    world.pass(Duration::from_secs(6));
    let got = world.ask("www.test", "A", DO);
    assert_eq!((&*got.rcode, got.authentic), ("NOERROR", true), "{got:?}");
}

#[test]
fn that_there_is_no_a_record_says_nothing_of_aaaa_where_that_cannot_be_validated() {
    let got = world(dnssec()).ask("ent.test", "AAAA", PLAIN);
    assert_eq!(got.rcode, "SERVFAIL", "{got:?}");
}

#[test]
fn who_waits_for_room_to_be_validated_is_not_forgotten() {
    let mut settings = Settings { dnssec: Dnssec { validate: true, ..dnssec() }, ..settings() };
    settings.limits.waiting = 10_000;
    settings.stale = None;
    let mut world = World::new(settings);
    for n in 0..1_500 {
        world.add(&[(&format!("n{n}.test"), "A", 60, "192.0.2.1")]);
    }
    world.slow = Some((48, Duration::from_millis(500)));
    let tickets: Vec<u32> = (0..1_500).map(|n| world.send(&format!("n{n}.test"), "A", PLAIN)).collect();
    world.pass(Duration::from_millis(1_500));
    let answered = tickets.iter().filter(|ticket| world.answer(**ticket).is_some()).count();
    assert_eq!(answered, 1_500);
}

#[test]
fn what_is_fetched_ahead_of_its_end_is_validated_ahead_of_it_too() {
    let mut world = world(dnssec());
    world.ask("www.test", "A", DO);
    world.pass(Duration::from_secs(3_300));
    world.ask("www.test", "A", DO);
    world.pass(Duration::from_secs(1));
    let counters = world.counters();
    assert_eq!((counters.prefetched, counters.validations), (1, 2));
    assert!(world.ask("www.test", "A", DO).authentic);
    assert_eq!(world.counters().cached, counters.cached + 1);
}

#[test]
fn with_other_anchors_all_is_judged_again() {
    let mut world = world(Dnssec { anchors: vec![], ..dnssec() });
    assert!(!world.ask("www.test", "A", DO).authentic);
    world.resolver.set_anchors(dnssec().anchors);
    assert!(world.ask("www.test", "A", DO).authentic);
    assert_eq!(world.ask("www.tampered.test", "A", DO).rcode, "SERVFAIL");
    world.resolver.set_anchors(vec![]);
    let got = world.ask("www.test", "A", DO);
    assert_eq!((&*got.rcode, got.authentic), ("NOERROR", false));
    assert_eq!(world.ask("www.tampered.test", "A", DO).rcode, "NOERROR");
}
