//! What does not exist, and what failed, is remembered (RFC 2308, RFC 9520).

use super::world::{Manner, PLAIN, World, settings};
use sixway_control::dns64::Settings;
use std::time::Duration;

#[test]
fn a_name_that_does_not_exist_is_queried_once_until_its_soa_record_ends() {
    let mut world = World::new(Settings { stale: None, ..settings() });
    world.soa = Some((900, 100));
    let first = world.ask("nothing.test", "TXT", PLAIN);
    assert_eq!(
        (&*first.rcode, &*first.authority),
        ("NXDOMAIN", &["test. 100 IN SOA ns.test. admin.test. 1 2 3 4 100".to_owned()][..])
    );
    world.pass(Duration::from_secs(60));
    let again = world.ask("nothing.test", "TXT", PLAIN);
    assert!(again.authority[0].starts_with("test. 40 IN SOA"), "the SOA record ages: {again:?}");
    assert_eq!(world.seen.len(), 1);
    world.pass(Duration::from_secs(41));
    world.ask("nothing.test", "TXT", PLAIN);
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn a_negative_answer_is_cached_no_longer_than_configured() {
    let mut settings = Settings { stale: None, ..settings() };
    settings.limits.longest_negative_ttl = 50;
    let mut world = World::new(settings).with(&[("text.test", "TXT", 100, "hello")]);
    world.ask("text.test", "MX", PLAIN);
    world.pass(Duration::from_secs(51));
    world.ask("text.test", "MX", PLAIN);
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn what_failed_is_not_asked_again_for_five_seconds() {
    for manner in [Manner::Servfail, Manner::Unreachable, Manner::Silent] {
        let mut world = World::new(Settings { prefetch: false, ..settings() });
        world.manners = vec![manner];
        world.ask("x.test", "TXT", PLAIN);
        let asked = |world: &World| world.seen.iter().filter(|(_, name, _)| name == "x.test.").count();
        let before = asked(&world);
        let again = world.ask("x.test", "TXT", PLAIN);
        assert_eq!((&*again.rcode, again.after), ("SERVFAIL", Duration::ZERO), "{manner:?}");
        assert_eq!(asked(&world), before, "{manner:?}");
        world.pass(Duration::from_secs(6));
        world.ask("x.test", "TXT", PLAIN);
        assert!(asked(&world) > before, "{manner:?}");
    }
}

#[test]
fn what_failed_for_one_type_is_asked_for_another() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.manners = vec![Manner::ServfailTo(16)];
    assert_eq!(world.ask("v4.test", "TXT", PLAIN).rcode, "SERVFAIL");
    assert_eq!(world.ask("v4.test", "A", PLAIN).answer.len(), 1);
}
