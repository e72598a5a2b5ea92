//! A query that is answered from the cache allocates nothing, from its octets to those of its answer.

use super::world::{AD, CD_DO, DO, PLAIN, World, query, query_without_edns, settings, wire};
use allocation_counter::measure;
use sixway_control::dns64::{Asker, Heard, Outcome, Rule, Settings, Transport};
use std::time::Duration;

/// With rules by client, name and address, and a rate limit.
fn ruled() -> Settings {
    let mut settings = settings();
    let other =
        Rule { clients6: vec!["2001:db8:9::/48".parse().expect("it is well-formed")], ..Rule::default() };
    let elsewhere = Rule { names: vec![wire("corp.test")], ..Rule::default() };
    let private = Rule {
        names: vec![wire("test")],
        addresses: vec!["198.51.100.0/24".parse().expect("it is well-formed")],
        prefixes: settings.prefixes.clone(),
        ..Rule::default()
    };
    settings.rules = vec![other, elsewhere, private];
    settings.limits.per_client = Some((1_000, 1_000));
    settings
}

#[test]
fn an_answer_from_the_cache_allocates_nothing_with_rules_and_a_rate_limit() {
    let mut world = World::new(ruled()).with(&[
        ("www.test", "CNAME", 300, "web.test"),
        ("web.test", "A", 300, "192.0.2.1"),
        ("web.test", "A", 300, "198.51.100.7"),
        ("six.test", "AAAA", 300, "2001:db8::1"),
        ("six.test", "AAAA", 300, "::ffff:192.0.2.1"),
        ("1.2.0.192.in-addr.arpa", "PTR", 300, "web.test"),
    ]);
    let reverse = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
    let mut questions = vec![(query_without_edns("www.test", "AAAA"), Outcome::Synthesised)];
    for bits in [PLAIN, DO, AD] {
        for (name, rtype, outcome) in [
            ("www.test", "AAAA", Outcome::Synthesised),
            ("Web.Test", "AAAA", Outcome::Synthesised),
            ("www.test", "A", Outcome::Forwarded),
            ("six.test", "AAAA", Outcome::Forwarded),
            ("web.test", "MX", Outcome::NoData),
            ("none.test", "AAAA", Outcome::NameError),
            ("ipv4only.arpa", "AAAA", Outcome::Local),
            ("www.test", "AXFR", Outcome::Refused),
            (reverse, "PTR", Outcome::Reverse),
        ] {
            questions.push((query(name, rtype, bits), outcome));
        }
    }
    questions.push((query("www.test", "AAAA", CD_DO), Outcome::NoData));
    let client = World::client();
    for transport in [Transport::Udp, Transport::Tcp, Transport::Tls] {
        for (question, outcome) in &questions {
            let ticket = world.send_from(client, transport, question);
            world.pass(Duration::from_secs(1));
            assert!(world.answer(ticket).is_some());
            let mut answer = Vec::with_capacity(65_535);
            let asker = Asker { address: client.into(), transport, ticket };
            let mut heard = Heard::Waiting;
            let counted = measure(|| {
                heard = world.resolver.handle_query(world.now, &asker, question, &mut answer);
            });
            assert_eq!(heard, Heard::Answered(*outcome), "{question:?}");
            assert_eq!((counted.count_total, counted.bytes_total), (0, 0), "{outcome:?} {question:?}");
        }
    }
}

#[test]
fn who_asks_too_often_is_refused_without_allocating() {
    let mut settings = ruled();
    settings.limits.per_client = Some((1, 1));
    let mut world = World::new(settings).with(&[("web.test", "A", 300, "192.0.2.1")]);
    let question = query("web.test", "AAAA", DO);
    world.send_from(World::client(), Transport::Udp, &question);
    let mut answer = Vec::with_capacity(512);
    let asker = Asker { address: World::client().into(), transport: Transport::Udp, ticket: 1 };
    let mut heard = Heard::Waiting;
    let counted = measure(|| {
        heard = world.resolver.handle_query(world.now, &asker, &question, &mut answer);
    });
    assert_eq!((heard, counted.count_total), (Heard::Answered(Outcome::RateLimited), 0));
}
