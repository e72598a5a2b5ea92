//! Which clients learn that an answer is authentic, and of which answers (RFC 6147 §5.5, RFC 6840 §5.8).

use super::world::{AD, CD, DO, Manner, PLAIN, World, settings};

#[test]
fn an_answer_that_is_made_of_some_records_only_is_not_authentic() {
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    let zone = [
        ("some.test", "A", 60, "192.0.2.1"),
        ("some.test", "A", 60, "127.0.0.1"),
        ("all.test", "A", 60, "192.0.2.1"),
    ];
    let mut world = World::new(settings).with(&zone);
    world.manners = vec![Manner::Authentic];
    let some = world.ask("some.test", "AAAA", DO);
    assert_eq!((some.answer.len(), some.authentic), (1, false), "{some:?}");
    assert!(world.ask("all.test", "AAAA", DO).authentic);
}

#[test]
fn an_answer_from_which_excluded_records_were_taken_is_not_authentic() {
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    let zone = [
        ("mixed.test", "AAAA", 60, "::ffff:192.0.2.1"),
        ("mixed.test", "AAAA", 60, "2001:db8::7"),
        ("whole.test", "AAAA", 60, "2001:db8::7"),
    ];
    let mut world = World::new(settings).with(&zone);
    world.manners = vec![Manner::Authentic];
    let mixed = world.ask("mixed.test", "AAAA", DO);
    assert_eq!((mixed.answer.len(), mixed.authentic), (1, false), "{mixed:?}");
    assert!(world.ask("whole.test", "AAAA", DO).authentic);
}

#[test]
fn the_answer_for_a_does_not_make_that_for_aaaa_authentic() {
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    let mut world = World::new(settings).with(&[("text.test", "TXT", 60, "hello")]);
    world.manners = vec![Manner::AuthenticButFor(28)];
    let got = world.ask("text.test", "AAAA", DO);
    assert_eq!((&*got.rcode, got.answer.len(), got.authentic), ("NOERROR", 0, false), "{got:?}");
}

#[test]
fn ad_without_do_is_for_those_who_set_ad() {
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    settings.dnssec.ad_without_do = true;
    let mut world = World::new(settings).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.manners = vec![Manner::Authentic];
    assert!(world.ask("v4.test", "AAAA", AD).authentic);
    assert!(!world.ask("v4.test", "AAAA", PLAIN).authentic, "RFC 6840 §5.8");
    assert!(!world.ask("v4.test", "AAAA", CD).authentic);
}
