//! Answers that have expired (RFC 8767), in addition to the scenarios of patience.

use super::world::{DO, Manner, PLAIN, World, settings};
use sixway_control::dns64::Outcome;
use std::time::Duration;

const ZONE: [(&str, &str, u32, &str); 1] = [("text.test", "TXT", 60, "hello")];
const STALE: [&str; 1] = ["text.test. 30 IN TXT \"hello\""];

#[test]
fn a_failure_does_not_displace_what_may_still_serve() {
    let mut world = World::new(settings()).with(&ZONE);
    world.ask("text.test", "TXT", PLAIN);
    world.manners = vec![Manner::Servfail];
    for _ in 0..3 {
        world.pass(Duration::from_secs(100));
        assert_eq!(world.ask("text.test", "TXT", PLAIN).answer, STALE);
    }
}

#[test]
fn a_refresh_goes_on_after_a_stale_answer() {
    let mut world = World::new(settings()).with(&ZONE);
    world.ask("text.test", "TXT", PLAIN);
    world.pass(Duration::from_secs(100));
    world.latency = Duration::from_secs(3);
    assert_eq!(world.ask("text.test", "TXT", PLAIN).answer, STALE);
    world.pass(Duration::from_secs(2));
    let fresh = world.ask("text.test", "TXT", PLAIN);
    assert_eq!((&*fresh.answer[0], fresh.after), ("text.test. 60 IN TXT \"hello\"", Duration::ZERO));
}

#[test]
fn what_is_stale_is_never_authentic() {
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    let mut world = World::new(settings).with(&ZONE);
    world.manners = vec![Manner::Authentic];
    assert!(world.ask("text.test", "TXT", DO).authentic);
    world.pass(Duration::from_secs(100));
    world.manners = vec![Manner::Unreachable];
    let stale = world.ask("text.test", "TXT", DO);
    assert_eq!((stale.answer[0].as_str(), stale.authentic), (STALE[0], false));
}

#[test]
fn what_is_made_in_place_of_a_stale_no_is_stale() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 3_600, "192.0.2.1")]);
    world.ask("v4.test", "AAAA", PLAIN);
    world.manners = vec![Manner::Unreachable];
    world.pass(Duration::from_secs(400));
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!(got.answer, ["v4.test. 30 IN AAAA 64:ff9b::c000:201"], "A is fresh, the no for AAAA is not");
    assert_eq!(got.extended_error.map(|error| error.0), Some(3), "RFC 8914 §4.4: Stale Answer");
    assert_eq!(world.counters().of(Outcome::Stale), 1);
}

#[test]
fn after_its_longest_time_what_is_stale_serves_no_more() {
    let mut world = World::new(settings()).with(&ZONE);
    world.ask("text.test", "TXT", PLAIN);
    world.manners = vec![Manner::Unreachable];
    world.pass(Duration::from_secs(60 + 86_401));
    assert_eq!(world.ask("text.test", "TXT", PLAIN).rcode, "SERVFAIL");
}
