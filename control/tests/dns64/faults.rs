//! Upstreams that are at fault, and what clients see of it.

use super::world::{DO, Manner, PLAIN, World, query, query_without_edns, settings};
use sixway_control::dns64::upstream::Health;
use sixway_control::dns64::{Outcome, Rule, Settings, Synthesis, Transport};
use std::time::Duration;

#[test]
fn an_upstream_without_edns_serves_those_who_want_dnssec_as_well_as_it_can() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.manners = vec![Manner::WithoutEdns];
    let got = world.ask("v4.test", "AAAA", DO);
    assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 1), "{got:?}");
    assert!(world.seen.len() <= 4, "{:?}", world.seen);
}

#[test]
fn a_failure_does_not_displace_what_is_fresh() {
    let zone = [("both.test", "AAAA", 100, "2001:db8::1")];
    let mut world = World::new(Settings { stale: None, ..settings() }).with(&zone);
    world.ask("both.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(95));
    world.manners = vec![Manner::Servfail];
    world.ask("both.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.counters().prefetched, 1);
    assert_eq!(world.ask("both.test", "AAAA", PLAIN).answer, ["both.test. 4 IN AAAA 2001:db8::1"]);
}

#[test]
fn what_an_upstream_says_of_our_query_is_not_said_to_the_client_of_its() {
    for rcode in [1, 4, 16, 23] {
        let mut world = World::new(settings());
        world.manners = vec![Manner::Rcode(rcode)];
        for bits in [PLAIN, DO] {
            assert_eq!(world.ask("v4.test", "A", bits).rcode, "SERVFAIL", "{rcode}");
        }
        let plain = query_without_edns("v4.test", "A");
        let ticket = world.send_from(World::client(), Transport::Udp, &plain);
        assert_eq!(world.answer(ticket).expect("it is known").rcode, "SERVFAIL", "{rcode}");
    }
}

#[test]
fn a_reply_without_dnssec_does_not_displace_one_with_it() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.latency = Duration::from_millis(100);
    let without = world.send("v4.test", "A", PLAIN);
    world.latency = Duration::from_millis(10);
    let with = world.send("v4.test", "A", DO);
    world.pass(Duration::from_secs(1));
    assert!(world.answer(without).is_some() && world.answer(with).is_some());
    let asked = world.seen.len();
    assert_eq!(world.ask("v4.test", "A", DO).answer.len(), 1);
    assert_eq!(world.seen.len(), asked, "it is in the cache");
}

#[test]
fn what_is_left_when_all_records_are_left_out_is_not_a_referral() {
    let rule = Rule { names: vec![], synthesis: Synthesis::Never, ..Rule::default() };
    let zone = [("mapped.test", "AAAA", 60, "::ffff:192.0.2.1")];
    let mut world = World::new(Settings { rules: vec![rule], ..settings() }).with(&zone);
    world.nameservers = true;
    let got = world.ask("mapped.test", "AAAA", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NOERROR", 0, 1), "{got:?}");
    assert!(got.authority[0].contains(" SOA "), "{got:?}");
    assert_eq!(world.counters().of(Outcome::NoData), 1);
}

#[test]
fn without_rd_nobody_is_asked_ahead_of_an_entrys_end() {
    let mut world = World::new(settings()).with(&[("both.test", "AAAA", 100, "2001:db8::1")]);
    world.ask("both.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(95));
    let mut message = query("both.test", "AAAA", PLAIN);
    message[2] &= !1;
    let ticket = world.send_from(World::client(), Transport::Udp, &message);
    assert_eq!(world.answer(ticket).expect("it is known").answer.len(), 1);
    assert_eq!((world.seen.len(), world.counters().prefetched), (1, 0));
}

#[test]
fn what_could_not_be_sent_for_want_of_descriptors_is_asked_again_immediately() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.manners = vec![Manner::NoRoom];
    assert_eq!(world.ask("v4.test", "A", PLAIN).rcode, "SERVFAIL");
    assert_eq!(world.counters().of(Outcome::Overload), 1);
    let row = world.resolver.upstreams().next().expect("the upstream");
    assert_eq!((row.health, row.asked, row.unanswered, row.unreachable), (Health::Up, 0, 0, 0));
    world.manners = vec![Manner::Honest];
    assert_eq!(world.ask("v4.test", "A", PLAIN).answer.len(), 1, "no failure was kept");
    // One that has room for its second try is answered.
    world.manners = vec![Manner::NoRoom];
    let ticket = world.send("v4.test", "AAAA", PLAIN);
    world.pass(Duration::from_millis(100));
    world.manners = vec![Manner::Honest];
    world.pass(Duration::from_secs(1));
    assert_eq!(world.answer(ticket).expect("an answer").answer.len(), 1);
}
