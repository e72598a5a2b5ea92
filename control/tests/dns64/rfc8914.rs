//! What clients with EDNS are told beyond the RCODE (RFC 8914).

use super::world::{Got, Manner, PLAIN, World, query, settings, wire};
use sixway_control::dns64::{Settings, Transport};
use std::time::Duration;

fn code(got: &Got) -> Option<u16> {
    got.extended_error.as_ref().map(|error| error.0)
}

#[test]
fn no_answer_and_no_way_are_told_apart() {
    for (manner, expected) in [(Manner::Silent, 22), (Manner::Unreachable, 23)] {
        let mut world = World::new(settings());
        world.manners = vec![manner];
        let got = world.ask("x.test", "TXT", PLAIN);
        assert_eq!((&*got.rcode, code(&got)), ("SERVFAIL", Some(expected)), "{manner:?}");
    }
}

#[test]
fn what_is_stale_is_told_and_so_is_a_stale_no() {
    let mut world = World::new(settings()).with(&[("text.test", "TXT", 60, "hello")]);
    world.ask("text.test", "TXT", PLAIN);
    world.ask("nothing.test", "TXT", PLAIN);
    world.pass(Duration::from_secs(1_000));
    world.manners = vec![Manner::Unreachable];
    assert_eq!(code(&world.ask("text.test", "TXT", PLAIN)), Some(3));
    let nothing = world.ask("nothing.test", "TXT", PLAIN);
    assert_eq!((&*nothing.rcode, code(&nothing)), ("NXDOMAIN", Some(19)));
}

#[test]
fn who_asks_what_is_not_answered_is_told_why() {
    let mut world = World::new(settings());
    let mut ask = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = query("x.test", "TXT", PLAIN);
        change(&mut message);
        let ticket = world.send_from(World::client(), Transport::Udp, &message);
        let got = world.answer(ticket).expect("an answer at once");
        (got.rcode.clone(), code(&got))
    };
    let type_at = 12 + wire("x.test").0.len();
    assert_eq!(ask(&|message| message[2] = 0), ("REFUSED".into(), Some(20)), "RD=0 and nothing in the cache");
    assert_eq!(ask(&|message| message[type_at + 3] = 3), ("REFUSED".into(), Some(21)), "class CH");
    assert_eq!(ask(&|message| message[type_at + 1] = 252), ("REFUSED".into(), Some(21)), "AXFR");
}

#[test]
fn who_asks_too_often_is_told_so() {
    let mut settings: Settings = settings();
    settings.limits.per_client = Some((1, 2));
    let mut world = World::new(settings).with(&[("text.test", "TXT", 60, "hello")]);
    let codes: Vec<_> = (0..3).map(|_| code(&world.ask("text.test", "TXT", PLAIN))).collect();
    assert_eq!(codes, [None, None, Some(18)]);
}

#[test]
fn a_client_without_edns_is_told_nothing_that_it_does_not_know() {
    let mut world = World::new(settings());
    world.manners = vec![Manner::Unreachable];
    let mut message = query("x.test", "TXT", PLAIN);
    message.truncate(message.len() - 11);
    message[11] = 0;
    let ticket = world.send_from(World::client(), Transport::Udp, &message);
    world.pass(Duration::from_secs(5));
    let got = world.answer(ticket).expect("an answer");
    assert_eq!((&*got.rcode, got.extended_error, got.additional.len()), ("SERVFAIL", None, 0));
}
