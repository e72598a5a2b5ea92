use super::{Cache, NEW, PROVEN, Place};
use crate::Instant;
use crate::dns64::Security;
use crate::dns64::answer::{Answer, Bounds, ExtendedError, Part};
use crate::dns64::key::Key;

const NOW: Instant = Instant::from_secs(1_000);
const BOUNDS: Bounds =
    Bounds { dnssec_ok: false, longest_ttl: 86_400, longest_negative_ttl: 10_800, failure_ttl: 5, zone: 1 };

fn name(number: usize) -> Vec<u8> {
    let label = format!("host{number}");
    [&[label.len() as u8], label.as_bytes(), b"\x07example\x03org\0"].concat()
}

fn key(number: usize) -> Key {
    Key::of(&name(number), 1, 1, false)
}

/// An answer with this number of addresses.
fn answer(key: &Key, addresses: u8) -> Answer {
    let mut reply = vec![0, 0, 0x80, 0, 0, 1, 0, addresses, 0, 0, 0, 0];
    reply.extend(key.name());
    reply.extend(key.qtype().to_be_bytes());
    reply.extend([0, 1]);
    for address in 0..addresses {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, address]);
    }
    Answer::read(key, &reply, NOW, &BOUNDS).unwrap()
}

fn filled(octets: usize, entries: usize) -> Cache {
    let mut cache = Cache::new(octets, 7);
    (0..entries).for_each(|number| cache.insert(&key(number), answer(&key(number), 1)));
    cache
}

/// What the cache ought to know of itself.
fn check(cache: &Cache) {
    assert_eq!(cache.index.len(), cache.len());
    for (number, region) in cache.regions.iter().enumerate() {
        assert_eq!(region.held, region.slots.iter().map(|slot| slot.answer.allocated()).sum::<usize>());
        for (at, slot) in region.slots.iter().enumerate() {
            assert_eq!(cache.place(&slot.answer.key()), Place::new(number, at));
        }
    }
}

#[test]
fn what_was_put_in_is_found_under_its_question_only() {
    let cache = filled(1 << 20, 100);
    assert_eq!(cache.get(&key(42)).unwrap().key(), key(42));
    assert!(cache.get(&key(100)).is_none() && cache.get(&key(42).with_type(28)).is_none());
    assert_eq!((cache.len(), cache.evicted()), (100, 0));
    check(&cache);
}

#[test]
fn another_answer_to_a_question_replaces_the_one_before() {
    let mut cache = filled(1 << 20, 10);
    let before = cache.octets();
    cache.insert(&key(3), answer(&key(3), 9));
    assert_eq!((cache.len(), cache.get(&key(3)).unwrap().count(Part::Data)), (10, 9));
    assert_eq!(cache.octets(), before + 8 * 16);
    check(&cache);
}

#[test]
fn it_never_holds_more_octets_than_it_may() {
    let limit = 100_000;
    let mut cache = Cache::new(limit, 7);
    for number in 0..5_000 {
        cache.insert(&key(number), answer(&key(number), (number % 30) as u8));
        assert!(cache.octets() <= limit, "{} after {number}", cache.octets());
    }
    assert!(cache.len() > 100, "{} entries", cache.len());
    assert_eq!(cache.evicted(), 5_000 - cache.len() as u64);
    check(&cache);
}

#[test]
fn what_does_not_fit_at_all_is_not_kept() {
    let mut cache = Cache::new(1_000, 7);
    cache.insert(&key(1), answer(&key(1), 200));
    assert!(cache.is_empty());
    check(&cache);
}

#[test]
fn what_is_queried_again_and_again_outlives_any_number_of_others() {
    let mut cache = Cache::new(100_000, 7);
    for number in 0..20_000 {
        cache.insert(&key(number), answer(&key(number), 1));
        for often in 0..10.min(number) {
            assert!(cache.get(&key(often)).is_some(), "{often} after {number}");
        }
    }
    assert!(cache.peek(&key(10)).is_none(), "asked for once");
}

/// Names that are used again every 1,000 insertions, a hundred of them in turn: how many of these looks find them, in percent, while others are queried
/// once each, this number in between.
fn found_again(others: usize) -> usize {
    let mut cache = Cache::new(200_000, 7);
    let (mut looks, mut found, mut other) = (0, 0, 1_000);
    for round in 0..12 {
        for often in 0..100 {
            for _ in 0..others {
                other += 1;
                cache.insert(&key(other), answer(&key(other), 1));
            }
            let hit = cache.get(&key(often)).is_some();
            if round >= 4 {
                (looks, found) = (looks + 1, found + usize::from(hit));
            }
            if !hit {
                cache.insert(&key(often), answer(&key(often), 1));
                // A second client asks shortly after.
                let _ = cache.get(&key(often));
            }
        }
    }
    check(&cache);
    100 * found / looks
}

#[test]
fn names_that_are_queried_once_at_any_rate_displace_none_that_are_queried_again() {
    assert_eq!(found_again(0), 100);
    for others in [1, 10, 100] {
        assert!(found_again(others) >= 99, "{}% with {others} others", found_again(others));
    }
}

#[test]
fn those_on_probation_have_all_of_the_room_as_long_as_nobody_else_needs_it() {
    let mut cache = filled(200_000, 5_000);
    assert!(cache.regions[PROVEN].slots.is_empty() && cache.regions[NEW].slots.len() > 500);
    let kept: Vec<usize> = (0..5_000).filter(|number| cache.peek(&key(*number)).is_some()).collect();
    assert!(kept.iter().all(|number| cache.get(&key(*number)).is_some()));
    for number in 10_000..20_000 {
        cache.insert(&key(number), answer(&key(number), 1));
        assert!(cache.octets() <= 200_000);
    }
    check(&cache);
    let still = kept.iter().filter(|number| cache.peek(&key(**number)).is_some()).count();
    assert!(10 * still > 8 * kept.len(), "{still} of {}", kept.len());
    let new = cache.regions[NEW].octets();
    assert!((10_000..30_000).contains(&new), "{new}");
}

#[test]
fn a_look_of_who_waited_for_it_is_not_a_use() {
    let mut cache = filled(1 << 20, 1);
    assert!(cache.get_since(&key(0), NOW).is_some());
    assert!(!*cache.regions[NEW].slots[0].used.get_mut());
    assert!(cache.get_since(&key(0), Instant::from_secs(1_001)).is_some());
    assert!(*cache.regions[NEW].slots[0].used.get_mut());
}

#[test]
fn a_look_without_a_trace_saves_nothing() {
    let mut cache = Cache::new(60_000, 7);
    for number in 0..5_000 {
        cache.insert(&key(number), answer(&key(number), 1));
        let _ = cache.peek(&key(0));
    }
    assert!(cache.peek(&key(0)).is_none());
}

#[test]
fn a_name_is_forgotten_with_all_below_it_or_alone() {
    let mut cache = filled(1 << 20, 50);
    cache.insert(&key(7).with_type(28), answer(&key(7).with_type(28), 0));
    let other = Key::of(b"\x08wexample\x03org\0", 1, 1, false);
    cache.insert(&other, answer(&other, 1));
    assert_eq!(cache.remove_below(&name(7), true), 2);
    assert_eq!(cache.remove_below(&name(7)[1..], true), 0);
    check(&cache);
    assert_eq!(cache.remove_below(b"\x07example\x03org\0", true), 0);
    assert_eq!(cache.remove_below(b"\x07example\x03org\0", false), 49);
    assert_eq!((cache.len(), cache.get(&other).is_some()), (1, true));
    assert_eq!(cache.remove_below(b"\0", false), 1);
    check(&cache);
}

#[test]
fn a_verdict_is_kept_with_its_entry_and_counted() {
    let mut cache = filled(1 << 20, 3);
    let before = cache.octets();
    let error = ExtendedError { code: 6, text: "no DNSKEY matches".into() };
    cache.set_security(&key(1), Security::Bogus, Some(error));
    let entry = cache.get(&key(1)).unwrap();
    assert_eq!(entry.security(), Security::Bogus);
    assert_eq!(entry.own_error(), Some((6, "no DNSKEY matches")));
    assert!(cache.octets() > before);
    cache.limit_lifetime(&key(1), NOW, 30);
    assert_eq!(cache.get(&key(1)).unwrap().lifetime(), 30);
    assert!(cache.remove(&key(1)).is_some() && cache.remove(&key(1)).is_none());
    check(&cache);
}

#[test]
fn any_row_of_insertions_and_removals_keeps_index_and_slots_in_step() {
    let mut cache = Cache::new(30_000, 7);
    let mut number = 1_usize;
    for _ in 0..4_000 {
        number = (number * 1_103_515_245 + 12_345) & 0x7fff_ffff;
        let key = key(number >> 8 & 0xff);
        match number & 7 {
            0 => drop(cache.remove(&key)),
            1 => drop(cache.get(&key).map(Answer::key)),
            _ => cache.insert(&key, answer(&key, (number >> 16 & 15) as u8)),
        }
    }
    check(&cache);
}

#[test]
fn a_hundred_thousand_names_take_less_than_45_megabytes() {
    let mut cache = Cache::new(64 << 20, 7);
    for number in 0..100_000 {
        let key = Key::of(&[b"\x03www", &name(number)[..]].concat(), 1, 1, false);
        cache.insert(&key, answer(&key, 1));
        let key = key.with_type(28);
        cache.insert(&key, negative(&key));
    }
    assert_eq!((cache.len(), cache.evicted()), (200_000, 0));
    assert!(cache.octets() < 45_000_000, "{} octets a name", cache.octets() / 100_000);
}

/// "No", with an SOA record of the usual size, compressed as upstreams do.
fn negative(key: &Key) -> Answer {
    let mut reply = vec![0, 0, 0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0];
    reply.extend(key.name());
    reply.extend([0, 28, 0, 1]);
    let zone = 12 + key.name().len() as u8 - 13;
    reply.extend([0xc0, zone, 0, 6, 0, 1, 0, 0, 14, 16, 0, 40]);
    reply.extend([3, b'n', b's', b'1', 0xc0, zone, 10]);
    reply.extend(b"hostmaster");
    reply.extend([0xc0, zone]);
    reply.extend([0, 0, 0, 1, 0, 0, 28, 32, 0, 0, 3, 132, 0, 18, 117, 0, 0, 0, 2, 88]);
    let length_at = 12 + key.name().len() + 4 + 11;
    reply[length_at] = (reply.len() - length_at - 1) as u8;
    let answer = Answer::read(key, &reply, NOW, &BOUNDS).unwrap();
    assert_eq!(answer.negative_ttl(NOW), Some(600));
    answer
}
