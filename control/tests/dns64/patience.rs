//! What happens when upstreams are slow, dead or wrong.

use super::world::{Manner, PLAIN, World, query, settings};
use sixway_control::dns64::{Outcome, Transport, Upstream};
use std::time::Duration;

#[test]
fn a_query_that_nobody_answers_is_answered_within_five_seconds() {
    let mut world = World::new(settings());
    world.manners = vec![Manner::Silent];
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!(got.rcode, "SERVFAIL");
    assert!(got.after <= Duration::from_secs(5), "{:?}", got.after);
    assert!(matches!(got.extended_error, Some((22 | 23, _))), "{got:?}");
}

#[test]
fn another_upstream_answers_where_one_does_not() {
    let mut settings = settings();
    settings.upstreams.push(Upstream { names: vec![], datagrams: true });
    for manner in [Manner::Silent, Manner::Servfail, Manner::Unreachable] {
        let mut world = World::new(settings.clone()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
        world.manners = vec![manner, Manner::Honest];
        assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer.len(), 1, "{manner:?}");
    }
}

#[test]
fn a_question_is_asked_once_whoever_waits_for_it() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    let tickets: Vec<u32> = (0..30).map(|_| world.send("v4.test", "AAAA", PLAIN)).collect();
    world.pass(Duration::from_secs(1));
    for ticket in tickets {
        assert_eq!(world.answer(ticket).expect("an answer").answer.len(), 1);
    }
    assert_eq!(world.seen.len(), 2, "{:?}", world.seen);
}

#[test]
fn beyond_the_limit_a_query_does_not_wait() {
    let mut world = World::new(settings());
    world.manners = vec![Manner::Silent];
    let asks = |n: u16| {
        let client = format!("2001:db8:{n:x}::2").parse().expect("an address");
        world.send_from(client, Transport::Udp, &query(&format!("n{n}.test"), "AAAA", PLAIN))
    };
    let tickets: Vec<u32> = (0..95).map(asks).collect();
    assert_eq!(world.answer(tickets[94]).expect("an answer at once").rcode, "SERVFAIL");
    assert_eq!(world.counters().of(Outcome::Overload), 1);
    // The last places are for those whose addresses are not forged.
    let message = query("last.test", "AAAA", PLAIN);
    let proven = world.send_from("2001:db8:ffff::2".parse().expect("an address"), Transport::Tcp, &message);
    assert!(world.answer(proven).is_none());
    world.pass(Duration::from_secs(6));
    assert!(world.answer(proven).is_some());
    assert!(tickets[..94].iter().all(|ticket| world.answer(*ticket).is_some()), "nobody is forgotten");
    assert_eq!(world.resolver.waiting(), 0);
}

#[test]
fn what_has_expired_serves_while_upstreams_are_silent() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.ask("v4.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(1_000));
    world.manners = vec![Manner::Silent];
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!(got.answer, ["v4.test. 30 IN AAAA 64:ff9b::c000:201"]);
    assert_eq!(got.extended_error.map(|error| error.0), Some(3));
    assert!((1_800..2_000).contains(&got.after.as_millis()), "{:?}", got.after);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).after, Duration::ZERO, "it is not tried again at once");
    assert_eq!(world.counters().of(Outcome::Stale), 2);
    world.manners = vec![Manner::Honest];
    world.pass(Duration::from_secs(31));
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 60 IN AAAA 64:ff9b::c000:201"]);
}

#[test]
fn a_real_aaaa_record_that_has_expired_is_better_than_a_made_one() {
    let zone = [("both.test", "A", 60, "192.0.2.1"), ("both.test", "AAAA", 60, "2001:db8::1")];
    let mut world = World::new(settings()).with(&zone);
    world.ask("both.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(100));
    world.manners = vec![Manner::SilentTo(28)];
    assert_eq!(world.ask("both.test", "AAAA", PLAIN).answer, ["both.test. 30 IN AAAA 2001:db8::1"]);
}

#[test]
fn what_is_in_use_is_fetched_ahead_of_its_end() {
    let mut world = World::new(settings()).with(&[("both.test", "AAAA", 100, "2001:db8::1")]);
    world.ask("both.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(95));
    assert_eq!(world.ask("both.test", "AAAA", PLAIN).answer, ["both.test. 5 IN AAAA 2001:db8::1"]);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.ask("both.test", "AAAA", PLAIN).answer, ["both.test. 100 IN AAAA 2001:db8::1"]);
    assert_eq!(world.counters().prefetched, 1);
}

#[test]
fn records_that_live_for_no_time_serve_those_who_asked() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 0, "192.0.2.1")]);
    world.soa = Some((0, 0));
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, ["v4.test. 0 IN AAAA 64:ff9b::c000:201"]);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer.len(), 1);
    assert_eq!(world.seen.len(), 4);
}
