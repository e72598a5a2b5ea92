//! While one client does its worst, what do the others lose?

use super::world::{DO, Manner, PLAIN, World, query, settings, wire};
use sixway_control::dns64::{Anchor, Dnssec, Outcome, Security, Settings, Transport, Upstream, Wire};
use sixway_dnssec::{CurrentTime, Lookup, Reply, Validate, Validation, Verdict};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Queries of a client in a second.
struct Client {
    address: Ipv6Addr,
    rate: u64,
    zone: &'static str,
}

fn client(address: &str, rate: u64, zone: &'static str) -> Client {
    Client { address: address.parse().expect("an address"), rate, zone }
}

/// Names of `dead.test` have no reply; all others are unknown, which is an answer.
fn world(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.dead = Some("dead.test.");
    world
}

fn settings_of_a_server(datagrams: bool) -> Settings {
    let mut settings = settings();
    settings.limits.waiting = 10_000;
    settings.upstreams = vec![Upstream { names: vec![], datagrams }];
    settings
}

/// All ask names of their zones that nobody asked before, for some seconds. Says how many queries each lost.
fn ask<V: Validate>(world: &mut World<V>, clients: &[Client], seconds: u64) -> Vec<u64> {
    let mut lost = vec![0; clients.len()];
    let mut asked = vec![0; clients.len()];
    let mut tickets = BTreeMap::new();
    let start = world.now;
    let mut collect = |world: &mut World<V>, tickets: &mut BTreeMap<u32, usize>| {
        for (ticket, _, outcome) in world.take_answers() {
            let whose = tickets.remove(&ticket).expect("somebody asked");
            let failed = matches!(outcome, Outcome::Overload | Outcome::UpstreamFailure);
            lost[whose] += u64::from(failed);
        }
    };
    for millisecond in 1..=seconds * 1_000 {
        for (place, client) in clients.iter().enumerate() {
            while asked[place] < client.rate * millisecond / 1_000 {
                asked[place] += 1;
                let zone = client.zone.replace("{}", &asked[place].to_string());
                let name = format!("n{}-{place}.{zone}", asked[place]);
                let message = query(&name, "AAAA", PLAIN);
                tickets.insert(world.send_from(client.address, Transport::Udp, &message), place);
            }
        }
        let passed = world.now - start;
        world.pass(Duration::from_millis(millisecond).saturating_sub(passed));
        collect(world, &mut tickets);
    }
    world.pass(Duration::from_secs(6));
    collect(world, &mut tickets);
    assert!(tickets.is_empty(), "{} were never answered", tickets.len());
    lost
}

const VICTIM: &str = "2001:db8:2::1";

fn nothing_is_lost(datagrams: bool, attackers: &[Client], seconds: u64) -> World {
    let victim = || client(VICTIM, 300, "good.test");
    let alone = ask(&mut world(settings_of_a_server(datagrams)), &[victim()], seconds);
    assert_eq!(alone, [0]);
    let mut clients = vec![victim()];
    clients.extend(attackers.iter().map(|other| Client { ..*other }));
    let mut world = world(settings_of_a_server(datagrams));
    let lost = ask(&mut world, &clients, seconds);
    assert!(100 * lost[0] <= 300 * seconds, "{lost:?} of {}", 300 * seconds);
    assert!(lost[1] > 0, "the attackers get nothing: {lost:?}");
    assert_eq!(world.resolver.waiting(), 0);
    world
}

#[test]
fn while_one_client_asks_ten_thousand_dead_names_a_second_another_loses_none() {
    let world = nothing_is_lost(true, &[client("2001:db8:1::1", 10_000, "dead.test")], 10);
    let dead = world.seen.iter().filter(|(_, name, _)| name.ends_with(".dead.test.")).count();
    assert!(dead < 4_000, "{dead} questions for 100,000 dead names");
}

#[test]
fn while_one_client_asks_dead_names_by_an_upstreams_stream_another_loses_none() {
    let _ = nothing_is_lost(false, &[client("2001:db8:1::1", 4_000, "dead.test")], 6);
}

#[test]
fn while_one_host_of_a_64_asks_dead_names_another_host_of_it_loses_none() {
    let _ = nothing_is_lost(true, &[client("2001:db8:2::2", 4_000, "dead.test")], 6);
}

#[test]
fn forty_subscribers_leave_a_forty_first_its_share() {
    let attackers: Vec<Client> =
        (0..40).map(|number| client(&format!("2001:db8:1:{number:x}::1"), 100, "dead.test")).collect();
    let _ = nothing_is_lost(true, &attackers, 6);
}

#[test]
fn a_question_that_had_no_room_is_asked_as_soon_as_there_is() {
    let mut world = world(settings_of_a_server(true));
    let attacker = client("2001:db8:1::1", 10_000, "dead.test");
    assert!(ask_only(&mut world, &attacker, 1_000) > 0, "it has its share");
    // Names that are refused while the share is taken.
    let refused: Vec<String> = (0..40).map(|number| format!("refused{number}.good.test")).collect();
    let before = world.counters();
    for name in &refused {
        let ticket = world.send_from(attacker.address, Transport::Udp, &query(name, "A", PLAIN));
        assert_eq!(world.answer(ticket).expect("it does not wait").rcode, "SERVFAIL", "{name}");
    }
    let counted = |it: &sixway_control::dns64::Counters| {
        it.waiting_refused + it.upstream_queries_refused + it.silent_zone_refused
    };
    assert_eq!(counted(&world.counters()), counted(&before) + 40, "each with its reason");
    world.pass(Duration::from_secs(5));
    for name in &refused {
        let ticket = world.send_from(attacker.address, Transport::Udp, &query(name, "A", PLAIN));
        world.pass(Duration::from_millis(20));
        assert_eq!(world.answer(ticket).expect("an answer").rcode, "NXDOMAIN", "{name}");
    }
}

/// Dead names for some milliseconds; says how many were refused.
fn ask_only(world: &mut World, attacker: &Client, milliseconds: u64) -> u64 {
    for number in 0..attacker.rate * milliseconds / 1_000 {
        let message = query(&format!("n{number}.{}", attacker.zone), "AAAA", PLAIN);
        world.send_from(attacker.address, Transport::Udp, &message);
    }
    world.counters().of(Outcome::Overload)
}

#[test]
fn what_was_refused_is_answered_from_what_is_stale() {
    let mut world = world(settings_of_a_server(true)).with(&[("host.good.test", "A", 30, "192.0.2.1")]);
    let attacker = client("2001:db8:1::1", 10_000, "dead.test");
    assert_eq!(world.ask("host.good.test", "A", PLAIN).rcode, "NOERROR");
    world.pass(Duration::from_secs(60));
    ask_only(&mut world, &attacker, 1_000);
    let message = query("host.good.test", "A", PLAIN);
    let ticket = world.send_from(attacker.address, Transport::Udp, &message);
    let got = world.answer(ticket).expect("it does not wait");
    assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 1), "{got:?}");
}

/// Queries of one client for names that nobody asked before; how many questions each cost.
fn cost(world: &mut World, qtype: &str, names: &[String]) -> Vec<usize> {
    let costs = names.iter().map(|name| {
        let before = world.seen.len();
        world.ask(name, qtype, PLAIN);
        world.pass(Duration::from_secs(6));
        world.seen[before..].iter().filter(|(_, seen, _)| seen.contains(&**name)).count()
    });
    costs.collect()
}

fn names(zone: &str, number: usize) -> Vec<String> {
    (0..number).map(|number| format!("x{number}.{zone}")).collect()
}

#[test]
fn the_third_dead_name_of_a_zone_costs_its_upstream_two_questions() {
    let mut world = world(settings_of_a_server(true));
    world.ask("www.good.test", "A", PLAIN);
    let costs = cost(&mut world, "A", &names("dead.test", 4));
    assert!(costs[0] >= 4 && costs[2..] == [2, 2], "{costs:?}");
    let costs = cost(&mut world, "AAAA", &names("below.dead.test", 1));
    assert!(costs[0] <= 4, "two for each type: {costs:?}");
}

#[test]
fn a_zone_heals_with_its_first_reply() {
    let mut world = world(settings_of_a_server(true));
    world.ask("www.good.test", "A", PLAIN);
    cost(&mut world, "A", &names("dead.test", 4));
    world.dead = None;
    assert_eq!(world.ask("again.dead.test", "A", PLAIN).rcode, "NXDOMAIN");
    world.dead = Some("dead.test.");
    assert!(cost(&mut world, "A", &["other.dead.test".into()])[0] >= 4);
}

#[test]
fn a_sibling_zone_of_a_dead_one_is_not_limited() {
    let mut world = world(settings_of_a_server(true));
    world.dead = Some("a.hoster.test.");
    let attacker = client("2001:db8:1::1", 2_000, "a.hoster.test");
    let victim = client(VICTIM, 100, "b.hoster.test");
    let lost = ask(&mut world, &[victim, attacker], 6);
    assert_eq!(lost[0], 0);
}

#[test]
fn while_one_client_asks_dead_names_in_as_many_zones_another_loses_none() {
    let zones = "z{}dead.test";
    let _ = nothing_is_lost(true, &[client("2001:db8:1::1", 3_000, zones)], 6);
}

#[test]
fn who_asks_little_is_not_limited_in_a_zone_that_fails_for_another() {
    let mut world = world(settings_of_a_server(true));
    let attacker = client("2001:db8:1::1", 2_000, "dead.test");
    let flood = |world: &mut World, from: u64| {
        for number in from..from + 2_000 {
            let message = query(&format!("n{number}.dead.test"), "A", PLAIN);
            world.send_from(attacker.address, Transport::Udp, &message);
            world.pass(Duration::from_millis(1));
        }
    };
    flood(&mut world, 0);
    world.dead = Some("other.test.");
    world.manners = vec![Manner::Silent];
    flood(&mut world, 2_000);
    world.manners = vec![Manner::Honest];
    let ticket =
        world.send_from(VICTIM.parse().expect("one"), Transport::Udp, &query("w.dead.test", "A", PLAIN));
    world.pass(Duration::from_millis(20));
    assert_eq!(world.answer(ticket).expect("it was asked").rcode, "NXDOMAIN");
}

/// A validator that takes for ever over one zone, and checks many signatures for another.
#[derive(Debug, Default)]
struct Sluggish {
    begun: u64,
    done: VecDeque<(Validation, Verdict)>,
}

impl Validate for Sluggish {
    fn begin(&mut self, _: CurrentTime, name: &[u8], _: u16, _: Reply) -> Validation {
        self.begun += 1;
        let checks = if name.ends_with(&wire("costly.test").0) { 160 } else { 2 };
        let security = if checks == 160 { Security::Bogus } else { Security::Secure };
        let verdict = Verdict { security, extended_error: None, ttl_bound: None, blamed: None, checks };
        if !name.ends_with(&wire("slow.test").0) {
            self.done.push_back((Validation(self.begun), verdict));
        }
        Validation(self.begun)
    }

    fn poll_lookup(&mut self) -> Option<(Validation, Lookup)> {
        None
    }

    fn handle_lookup(&mut self, _: CurrentTime, _: &Lookup, _: Option<&Reply>) {}

    fn poll_verdict(&mut self) -> Option<(Validation, Verdict)> {
        self.done.pop_front()
    }

    fn abandon(&mut self, validation: Validation) {
        self.done.retain(|(number, _)| *number != validation);
    }

    fn set_anchors(&mut self, _: Vec<Anchor>, _: Vec<Wire>) {}

    fn forget(&mut self) {}
}

fn validating() -> World<Sluggish> {
    let mut settings = settings_of_a_server(true);
    settings.dnssec = Dnssec { validate: true, ..Dnssec::default() };
    settings.limits.cache = 64 << 20;
    World::with_validator(settings, Sluggish::default())
}

#[test]
fn while_one_client_asks_names_that_are_slow_to_validate_another_loses_none() {
    let attacker = client("2001:db8:1::1", 2_000, "slow.test");
    let lost = ask(&mut validating(), &[client(VICTIM, 200, "good.test"), attacker], 6);
    assert_eq!(lost[0], 0, "{lost:?}");
    assert!(lost[1] > 1_000, "{lost:?}");
}

#[test]
fn signatures_are_checked_for_a_client_at_a_rate_and_for_another_without_delay() {
    let mut world = validating();
    let attacker = client("2001:db8:1::1", 100, "costly.test");
    let lost = ask(&mut world, &[client(VICTIM, 200, "good.test"), attacker], 4);
    assert_eq!(lost[0], 0, "{lost:?}");
    let costly = world.counters().validations - 4 * 200;
    assert!((60..150).contains(&costly), "{costly}: 2,000 signatures a second, 160 each");
}

#[test]
fn a_validation_that_could_not_ask_for_want_of_a_share_leaves_no_verdict() {
    let mut settings = settings_of_a_server(true);
    settings.dnssec = super::dnssec::dnssec();
    settings.limits.upstream_questions = 64;
    let mut world = World::new(settings).with_recorded(super::dnssec::RECORDED);
    world.dead = Some("dead.test.");
    let (one, other) = (World::client(), VICTIM.parse().expect("an address"));
    let fill = |world: &mut World, from, number: usize| {
        for name in names("dead.test", number) {
            world.send_from(
                from,
                Transport::Udp,
                &query(&format!("{from:x?}{name}").replace(':', "x"), "TXT", PLAIN),
            );
        }
    };
    fill(&mut world, one, 19);
    let ticket = world.send_from(one, Transport::Udp, &query("www.test", "A", DO));
    assert!(world.answer(ticket).is_none(), "it has the last place");
    // Another takes places until the share of the first is less than what it holds.
    fill(&mut world, other, 15);
    let before = world.counters().of(Outcome::Overload);
    world.pass(Duration::from_millis(15));
    let got = world.answer(ticket).expect("it is turned away");
    assert_eq!((&*got.rcode, world.counters().of(Outcome::Overload)), ("SERVFAIL", before + 1), "{got:?}");
    // A third one may ask, and so may the first when its places are free.
    let third = "2001:db8:3::1".parse().expect("an address");
    let ticket = world.send_from(third, Transport::Udp, &query("www.test", "A", DO));
    world.pass(Duration::from_millis(100));
    let got = world.answer(ticket).expect("an answer");
    assert_eq!((&*got.rcode, got.authentic), ("NOERROR", true), "{got:?}");
    world.pass(Duration::from_secs(6));
    let got = world.ask("text.test", "TXT", DO);
    assert_eq!((&*got.rcode, got.authentic), ("NOERROR", true), "{got:?}");
}

#[test]
fn who_is_proven_is_not_turned_away_with_who_has_no_share_and_bears_its_name() {
    let mut settings = settings_of_a_server(true);
    settings.limits.upstream_questions = 64;
    let mut world =
        world(settings).with(&[("alias.test", "CNAME", 60, "v4.test."), ("v4.test", "A", 60, "192.0.2.1")]);
    // The chain's end is a question of its own, for all who wait together.
    world.links = 0;
    let alias = query("alias.test", "A", PLAIN);
    let dead = |number: u16| query(&format!("n{number}.dead.test"), "TXT", PLAIN);
    let client = World::client();
    // In its name, and it itself and its neighbour for the same.
    for number in 0..3 {
        world.send_from(client, Transport::Udp, &dead(number));
    }
    let forged = world.send_from(client, Transport::Udp, &alias);
    let own = world.send_from(client, Transport::Tcp, &alias);
    let neighbour = "2001:db8:1::3".parse().expect("an address");
    let neighbour = world.send_from(neighbour, Transport::Tcp, &alias);
    for number in 0..56 {
        let other = Ipv6Addr::new(0x2001, 0xdb8, 100 + number, 0, 0, 0, 0, 1);
        world.send_from(other, Transport::Udp, &dead(100 + number));
    }
    world.pass(Duration::from_millis(100));
    let mut rcode = |ticket| world.answer(ticket).map(|got| got.rcode);
    assert_eq!(rcode(own).as_deref(), Some("NOERROR"));
    assert_eq!(rcode(neighbour).as_deref(), Some("NOERROR"));
    assert_eq!(rcode(forged).as_deref(), Some("SERVFAIL"), "the chain's end is beyond its share");
}

#[test]
fn a_dead_zone_does_not_take_its_siblings_from_who_asks_much() {
    let mut world = world(settings_of_a_server(true));
    world.dead = Some("a.hoster.test.");
    world.latency = Duration::from_millis(50);
    // The victim has some fifteen questions open; five a second are in the sibling.
    let mut clients = vec![client(VICTIM, 300, "good.test"), client(VICTIM, 5, "b.hoster.test")];
    let hosts: Vec<String> = (1..=1_000).map(|host| format!("2001:db8:1::{host:x}")).collect();
    clients.extend(hosts.iter().map(|host| client(host, 1, "a.hoster.test")));
    let lost = ask(&mut world, &clients, 6);
    assert_eq!(lost[..2], [0, 0]);
}

#[test]
fn a_silent_upstream_makes_no_zone_slow_that_another_answers_for() {
    for datagrams in [true, false] {
        let mut settings = settings_of_a_server(datagrams);
        settings.upstreams.push(Upstream { names: vec![], datagrams });
        let mut world = World::new(settings);
        world.manners = vec![Manner::Silent, Manner::Honest];
        // All are under way before the first one is known to have had no reply.
        let tickets: Vec<u32> =
            (0..200).map(|number| world.send(&format!("n{number}.good.test"), "A", PLAIN)).collect();
        world.pass(Duration::from_secs(6));
        let failed =
            tickets.iter().filter(|ticket| world.answer(**ticket).unwrap().rcode == "SERVFAIL").count();
        assert_eq!(failed, 0, "datagrams: {datagrams}");
    }
}
