//! Many who ask for the same, and answers that are large: what an attacker has cheaply must not cost much.

use super::world::{PLAIN, World, settings};
use std::time::Duration;

#[test]
fn thousands_who_wait_for_one_large_answer_are_told_that_it_is() {
    let mut settings = settings();
    settings.limits.waiting = 20_000;
    settings.limits.cache = 8 << 20;
    let mut world = World::new(settings);
    let addresses: Vec<String> = (0..2_000).map(|n| format!("192.0.{}.{}", 2 + n / 250, n % 250)).collect();
    let records: Vec<_> = addresses.iter().map(|address| ("large.test", "A", 60, &**address)).collect();
    world.add(&records);
    let tickets: Vec<u32> = (0..5_000).map(|_| world.send("large.test", "AAAA", PLAIN)).collect();
    world.pass(Duration::from_secs(1));
    for ticket in tickets {
        let got = world.answer(ticket).expect("an answer");
        assert!(got.truncated && got.octets < 100, "{got:?}");
    }
    assert_eq!(world.seen.len(), 2, "each question is asked once");
}
