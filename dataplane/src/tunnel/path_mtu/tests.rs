//! What is learnt of paths, and a small slow model of it.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const START: Instant = Instant::from_secs(1_000);

fn learnt(told: u16, length: u16) -> (Learnt, PathMtus<Ipv4Addr>) {
    let mut paths = PathMtus::new(16, 7);
    (paths.learn(REMOTE, told, length, 1_500, START), paths)
}

#[test]
fn an_estimate_is_known_for_ten_minutes_and_no_longer() {
    let (learnt, paths) = learnt(1_400, 1_500);
    assert_eq!(learnt, Learnt::Mtu(1_400));
    assert_eq!(paths.lookup(REMOTE, START), Some(1_400));
    assert_eq!(paths.lookup(REMOTE, START + Duration::from_secs(599)), Some(1_400));
    assert_eq!(paths.lookup(REMOTE, START + LIFETIME), None);
    assert_eq!(paths.lookup(Ipv4Addr::new(198, 51, 100, 2), START), None);
}

#[test]
fn an_error_lowers_or_confirms_and_never_raises() {
    let (_, mut paths) = learnt(1_400, 1_500);
    let later = START + Duration::from_secs(300);
    assert_eq!(paths.learn(REMOTE, 1_401, 1_500, 1_500, later), Learnt::Refused);
    assert_eq!(paths.lookup(REMOTE, later), Some(1_400));
    assert_eq!(paths.learn(REMOTE, 1_400, 1_500, 1_500, later), Learnt::Mtu(1_400));
    assert_eq!(paths.lookup(REMOTE, START + LIFETIME), Some(1_400), "ten minutes from the last error");
    assert_eq!(paths.learn(REMOTE, 1_300, 1_400, 1_500, later), Learnt::Mtu(1_300));
    let (refused, _) = learnt(1_500, 1_500);
    assert_eq!(refused, Learnt::Refused, "the first link itself carries that much");
}

#[test]
fn less_than_68_octets_is_not_believed() {
    assert_eq!(learnt(67, 1_500).0, Learnt::Refused);
    assert_eq!(learnt(68, 1_500).0, Learnt::Mtu(68));
}

#[test]
fn a_router_that_tells_nothing_means_the_next_plateau() {
    for (length, expected) in [
        (1_500, Learnt::Mtu(1_492)),
        (1_492, Learnt::Mtu(1_006)),
        (1_400, Learnt::Mtu(1_006)),
        (577, Learnt::Mtu(508)),
        (69, Learnt::Mtu(68)),
        (68, Learnt::Refused),
        (0, Learnt::Refused),
        // Nothing so large was sent over a first link of 1,500 octets.
        (65_535, Learnt::Mtu(1_492)),
    ] {
        assert_eq!(learnt(0, length).0, expected, "{length}");
    }
    let (_, mut paths) = learnt(0, 1_500);
    assert_eq!(paths.learn(REMOTE, 0, 1_500, 1_500, START), Learnt::Mtu(1_006), "below what was thought");
}

#[test]
fn a_tunnel_has_1_280_octets_at_least_and_then_its_packets_are_fragmented() {
    let fits = |mtu| TunnelRoom { mtu, dont_fragment: true };
    assert_eq!(room(9_000), fits(8_980));
    assert_eq!(room(1_500), fits(1_480));
    assert_eq!(room(1_300), fits(1_280));
    for path in [0, 68, 1_279, 1_299] {
        assert_eq!(room(path), TunnelRoom { mtu: 1_280, dont_fragment: false }, "{path}");
    }
    let (_, paths) = learnt(1_400, 1_500);
    assert_eq!(paths.room(REMOTE, 1_500, START), fits(1_380));
    assert_eq!(paths.room(REMOTE, 1_350, START), fits(1_330), "the first link counts too");
    assert_eq!(paths.room(REMOTE, 1_500, START + LIFETIME), fits(1_480));
}

#[test]
fn a_full_set_forgets_who_was_learnt_longest_ago() {
    let mut paths = PathMtus::new(WAYS, 7);
    let remote = |n: u32| Ipv4Addr::from_bits(0xc633_6400 + n);
    let at = |n: u32| START + Duration::from_secs(n.into());
    for n in 0..4 {
        paths.learn(remote(n), 1_400, 1_500, 1_500, at(n));
    }
    paths.learn(remote(0), 1_300, 1_500, 1_500, at(4));
    paths.learn(remote(4), 1_400, 1_500, 1_500, at(5));
    assert_eq!(paths.lookup(remote(1), at(5)), None, "it was learnt before all others");
    for n in [0, 2, 3, 4] {
        assert!(paths.lookup(remote(n), at(5)).is_some(), "{n}");
    }
}

#[test]
fn the_table_is_bounded_whoever_is_learnt() {
    let mut paths = PathMtus::new(64, 7);
    for n in 0..10_000_u32 {
        paths.learn(Ipv4Addr::from_bits(n), 1_400, 1_500, 1_500, START);
    }
    let known = (0..10_000).filter(|n| paths.lookup(Ipv4Addr::from_bits(*n), START).is_some()).count();
    assert!((48..=64).contains(&known), "{known}");
}

/// The model: a map that is searched from end to end, and cut back to the four youngest.
#[derive(Default)]
struct Model(BTreeMap<u32, (u64, u16)>);

impl Model {
    fn lookup(&self, remote: u32, now: u64) -> Option<u16> {
        self.0.get(&remote).filter(|(at, _)| at + 600 > now).map(|(_, mtu)| *mtu)
    }

    fn learn(&mut self, remote: u32, told: u16, length: u16, now: u64) -> Option<u16> {
        let thought = self.lookup(remote, now);
        let below = length.min(thought.unwrap_or(1_500));
        let mtu = match told {
            0 => *[68, 296, 508, 1_006, 1_492].iter().rfind(|plateau| **plateau < below)?,
            told => told,
        };
        if mtu < 68 || mtu > thought.unwrap_or(1_499) {
            return None;
        }
        self.0.insert(remote, (now, mtu));
        while self.0.len() > WAYS {
            let first = *self.0.iter().min_by_key(|(_, (at, _))| *at)?.0;
            self.0.remove(&first);
        }
        Some(mtu)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_set_is_a_small_slow_map(
        steps in vec((0u32..6, prop_oneof![Just(0), 0u16..80, 1_200u16..1_520], any::<u16>(), 1u64..400), 1..60),
    ) {
        let mut paths = PathMtus::new(WAYS, 7);
        let mut model = Model::default();
        let mut now = 1_000;
        for (remote, told, length, pause) in steps {
            // Every step has a second of its own, or "longest ago" would be a matter of taste.
            now += pause;
            let learnt = paths.learn(Ipv4Addr::from_bits(remote), told, length, 1_500, Instant::from_secs(now));
            let expected = model.learn(remote, told, length, now).map_or(Learnt::Refused, Learnt::Mtu);
            prop_assert_eq!(learnt, expected);
            for remote in 0..6 {
                let known = paths.lookup(Ipv4Addr::from_bits(remote), Instant::from_secs(now));
                prop_assert_eq!(known, model.lookup(remote, now));
            }
        }
    }
}
