//! The cache from one process to the next.

use super::world::{DO, Manner, PLAIN, World, settings, wire};
use sixway_control::dns64::{Anchor, AnchorKey, Dnssec, Settings, Upstream};
use std::sync::Arc;
use std::time::Duration;

const ZONE: [(&str, &str, u32, &str); 6] = [
    ("v4.test", "A", 300, "192.0.2.1"),
    ("both.test", "AAAA", 300, "2001:db8::1"),
    ("both.test", "A", 300, "192.0.2.2"),
    ("alias.test", "CNAME", 300, "v4.test."),
    ("text.test", "TXT", 300, "\"x\""),
    ("host.corp.test", "A", 300, "192.0.2.3"),
];

fn labels(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

/// The next process, with what the previous one kept.
fn next(before: &World, settings: Settings, [old, new]: [&[&str]; 2]) -> World {
    next_within(before, settings, [old, new], 1 << 30)
}

/// The same, when no more than this may be kept.
fn next_within(before: &World, settings: Settings, [old, new]: [&[&str]; 2], most: usize) -> World {
    let octets: Arc<[u8]> = before.resolver.keep_answers(before.now, &labels(old), most).into();
    let mut world = World::new(settings).with(&ZONE);
    world.now = before.now;
    if let Some(mut kept) = world.resolver.kept(octets, &labels(new)) {
        while world.resolver.adopt(world.now, &mut kept, 2) {}
    }
    world
}

#[test]
fn what_a_process_leaves_is_answered_by_the_next_without_a_question() {
    let mut world = World::new(settings()).with(&ZONE);
    let questions = [
        ("v4.test", "AAAA", PLAIN),
        ("v4.test", "A", PLAIN),
        ("both.test", "AAAA", DO),
        ("alias.test", "AAAA", PLAIN),
        ("text.test", "TXT", PLAIN),
        ("text.test", "MX", PLAIN),
        ("nothing.test", "AAAA", PLAIN),
    ];
    for (name, rtype, bits) in questions {
        world.ask(name, rtype, bits);
    }
    world.pass(Duration::from_secs(40));
    let mut next = next(&world, settings(), [&["a"], &["a"]]);
    assert_eq!(next.resolver.cached().0, world.resolver.cached().0);
    for (name, rtype, bits) in questions {
        assert_eq!(next.ask(name, rtype, bits), world.ask(name, rtype, bits), "{name} {rtype}");
    }
    assert_eq!(next.seen, [], "all of it was kept");
    assert_eq!(
        next.ask("v4.test", "A", PLAIN).answer,
        ["v4.test. 260 IN A 192.0.2.1"],
        "it is as old as it is"
    );
}

#[test]
fn what_leaves_is_bounded_and_what_was_used_again_leaves_first() {
    let mut world = World::new(settings()).with(&ZONE);
    for number in 0..2_000 {
        world.ask(&format!("n{number}.once.test"), "A", PLAIN);
    }
    for _ in 0..2 {
        world.ask("text.test", "TXT", PLAIN);
        world.ask("v4.test", "A", PLAIN);
        world.pass(Duration::from_secs(1));
    }
    for number in 2_000..4_000 {
        world.ask(&format!("n{number}.once.test"), "A", PLAIN);
    }
    let all = world.resolver.keep_answers(world.now, &labels(&["a"]), 1 << 30).len();
    for most in [0, 100, 1_000, 10_000] {
        let kept = world.resolver.keep_answers(world.now, &labels(&["a"]), most).len();
        assert!(kept <= most + 64 && kept + 300 > most.min(all), "{kept} of {most}");
    }
    let mut next = next_within(&world, settings(), [&["a"], &["a"]], 1_000);
    assert!((5..20).contains(&next.resolver.cached().0), "{}", next.resolver.cached().0);
    next.ask("text.test", "TXT", PLAIN);
    next.ask("v4.test", "A", PLAIN);
    assert_eq!(next.seen, [], "they were used again");
}

#[test]
fn what_has_expired_serves_only_when_stale_and_a_failure_is_not_kept() {
    let mut world = World::new(settings()).with(&ZONE);
    world.ask("v4.test", "A", PLAIN);
    world.manners = vec![Manner::Servfail];
    world.ask("text.test", "TXT", PLAIN);
    world.pass(Duration::from_secs(400));
    let mut next = next(&world, settings(), [&["a"], &["a"]]);
    assert_eq!(next.resolver.cached().0, 1);
    next.manners = vec![Manner::Unreachable];
    assert_eq!(next.ask("v4.test", "A", PLAIN).answer, ["v4.test. 30 IN A 192.0.2.1"]);
    let never = Settings { stale: None, ..settings() };
    let mut again = World::new(never.clone()).with(&ZONE);
    again.ask("v4.test", "A", PLAIN);
    again.pass(Duration::from_secs(400));
    assert_eq!(self::next(&again, never, [&["a"], &["a"]]).resolver.cached().0, 0);
}

/// An upstream for all names, and one for corp.test.
fn two() -> Settings {
    let own = Upstream { names: vec![wire("corp.test")], datagrams: true };
    Settings { upstreams: vec![Upstream { names: vec![], datagrams: true }, own], ..settings() }
}

#[test]
fn what_an_upstream_that_is_gone_said_of_its_own_names_is_not_taken_over() {
    let mut world = World::new(two()).with(&ZONE);
    for name in ["v4.test", "host.corp.test"] {
        world.ask(name, "A", PLAIN);
    }
    let kept = |settings: Settings, new: &[&str]| {
        let mut world = next(&world, settings, [&["public", "inside"], new]);
        world.ask("v4.test", "A", PLAIN);
        world.ask("host.corp.test", "A", PLAIN);
        world.seen.into_iter().map(|(upstream, name, _)| (upstream, name)).collect::<Vec<_>>()
    };
    assert_eq!(kept(two(), &["public", "inside"]), []);
    let swapped = Settings { upstreams: two().upstreams.into_iter().rev().collect(), ..two() };
    assert_eq!(kept(swapped, &["inside", "public"]), [], "the order does not matter");
    let corp = |upstream| (upstream, "host.corp.test.".to_owned());
    assert_eq!(kept(settings(), &["public"]), [corp(0)], "the public one may know nothing of it");
    assert_eq!(kept(two(), &["public", "other"]), [corp(1)]);
    assert_eq!(kept(two(), &["other", "inside"]), [], "one for all names is replaced by another");
    let mut public = World::new(settings()).with(&ZONE);
    public.ask("host.corp.test", "A", PLAIN);
    let mut split = next(&public, two(), [&["public"], &["public", "inside"]]);
    split.ask("host.corp.test", "A", PLAIN);
    assert_eq!(split.seen.len(), 1, "what the public one said is not what the inside one says");
}

#[test]
fn a_dnssec_status_is_kept_with_the_same_anchors_only() {
    let anchor = |octet| Anchor { zone: wire("test"), key: AnchorKey::Ds([0, 1, 8, 2, octet].into()) };
    let with = |octet| Settings {
        dnssec: Dnssec { trust_upstream: true, anchors: vec![anchor(octet)], ..Dnssec::default() },
        ..settings()
    };
    let mut world = World::new(with(1)).with(&ZONE);
    world.manners = vec![Manner::Authentic];
    assert!(world.ask("both.test", "AAAA", DO).authentic);
    let mut same = next(&world, with(1), [&["a"], &["a"]]);
    assert!(same.ask("both.test", "AAAA", DO).authentic && same.seen.is_empty());
    let mut other = next(&world, with(2), [&["a"], &["a"]]);
    assert!(!other.ask("both.test", "AAAA", DO).authentic, "nobody has vouched for it with these");
    // Keys that changed while the process ran are what its statuses are by.
    world.resolver.set_anchors(vec![anchor(2)]);
    let mut changed = next(&world, with(2), [&["a"], &["a"]]);
    assert!(changed.ask("both.test", "AAAA", DO).authentic);
    let validating = Settings { dnssec: Dnssec { validate: true, ..with(1).dnssec }, ..settings() };
    assert_eq!(next(&world, validating, [&["a"], &["a"]]).resolver.cached().0, 0);
}

#[test]
fn what_is_damaged_is_left_out_wherever_it_is_damaged() {
    let mut world = World::new(two()).with(&ZONE);
    for name in ["v4.test", "alias.test", "host.corp.test"] {
        world.ask(name, "AAAA", PLAIN);
    }
    let labels = labels(&["public", "inside"]);
    let whole = world.resolver.keep_answers(world.now, &labels, 1 << 30);
    let entries = world.resolver.cached().0;
    let adopted = |octets: &[u8]| {
        let mut next = World::new(two()).with(&ZONE);
        next.now = world.now;
        if let Some(mut kept) = next.resolver.kept(octets.into(), &labels) {
            while next.resolver.adopt(next.now, &mut kept, 7) {}
        }
        next.resolver.cached().0
    };
    assert_eq!(adopted(&whole), entries);
    for length in 0..whole.len() {
        assert!(adopted(&whole[..length]) < entries, "{length}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x5a;
        assert!(adopted(&damaged) <= entries, "{at}");
    }
    let mut older = whole.clone();
    older[3] ^= 1;
    assert_eq!(adopted(&older), 0, "of another version");
    // From the future, as after the machine's clock began again.
    let mut next = World::new(two());
    let mut kept = next.resolver.kept(whole.into(), &labels).expect("it is whole");
    next.resolver.adopt(sixway_control::Instant::from_secs(1), &mut kept, 99);
    assert_eq!(next.resolver.cached().0, 0);
}
