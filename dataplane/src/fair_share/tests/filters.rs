//! When filters in front of queues have a rule, and which one.

use super::*;

const fn at(milliseconds: u64) -> Instant {
    Instant(milliseconds * 1_000_000)
}

/// Shares with filters, of an engine that has been processing 400 packets in 10 ms for 20 ms and is overloaded now.
fn overloaded(filters: &[Filter]) -> FairShares {
    let mut shares = FairShares::new(64, 7);
    let tables = filters.iter().map(|filter| Box::new(filter.clone()) as Box<dyn SenderTable>);
    shares.set_filters(tables.collect());
    assert!(!shares.batch(800, at(0), true));
    assert!(!shares.batch(64, at(19), true));
    assert!(shares.batch(64, at(20), true));
    shares
}

impl Filter {
    fn rule(&self) -> Option<FilterRule> {
        self.0.rule.lock().unwrap().clone()
    }

    fn limit(&self) -> Option<u32> {
        self.rule().map(|rule| rule.limit)
    }
}

/// What the engine processes in an interval.
fn process(shares: &mut FairShares) {
    for _ in 0..400 {
        assert!(shares.admits(Realm(0), (customer(1), 0), true), "it passed a filter");
    }
}

#[test]
fn a_filter_counts_for_three_intervals_before_it_drops() {
    let filter = Filter::new();
    let mut shares = overloaded(std::slice::from_ref(&filter));
    assert_eq!(filter.limit(), Some(u32::MAX));
    for (end, may_drop) in [(30, false), (40, false), (50, true)] {
        (0..1_000).for_each(|_| assert!(filter.passes(customer(1))));
        process(&mut shares);
        shares.turn(at(end), true);
        assert_eq!(filter.limit() < Some(u32::MAX), may_drop, "{end}");
    }
}

/// What it sent without limit does not count.
#[test]
fn a_heavy_sender_may_use_its_quota_as_soon_as_there_is_one() {
    let filter = Filter::new();
    let mut shares = overloaded(std::slice::from_ref(&filter));
    let mut passed = 0;
    for end in (30..=60).step_by(10) {
        passed = (0..20_000).filter(|_| filter.passes(customer(1))).count();
        process(&mut shares);
        shares.turn(at(end), true);
    }
    assert!((150..=400).contains(&passed), "{passed}");
}

/// As with two realms.
#[test]
fn senders_in_front_of_either_queue_have_shares() {
    let filters = [Filter::new(), Filter::new()];
    let mut shares = overloaded(&filters);
    let (mut heavy, mut light, mut dropped) = (0, 0, 0);
    for interval in 0..40 {
        for number in 0..1_000 {
            heavy += u64::from(filters[1].passes(customer(1)));
            light += u64::from(number % 20 == 0 && filters[0].passes(customer(2)));
        }
        process(&mut shares);
        shares.turn(at(30 + interval * 10), true);
        dropped += shares.take_dropped();
    }
    assert_eq!(light, 40 * 50);
    assert!((6_000..28_000).contains(&heavy), "{heavy}");
    assert_eq!((filters[0].dropped(), filters[1].dropped()), (0, dropped));
    assert_eq!(heavy + dropped, 40 * 1_000);
}

#[test]
fn the_hash_changes_while_overload_lasts_and_for_the_next_one() {
    let mut simulation = Simulation::filtered(&[(customer(1), 250_000), (customer(2), 500)]);
    let hash = |simulation: &Simulation| simulation.filter.as_ref().unwrap().rule().unwrap().hash;
    simulation.run(500);
    let first = hash(&simulation);
    simulation.run(100);
    assert_eq!(hash(&simulation), first);
    simulation.run(1_400);
    let second = hash(&simulation);
    assert_ne!(second, first);
    simulation.senders[0].1 = 20_000;
    simulation.run(1_000);
    assert!(!simulation.is_overloaded());
    simulation.senders[0].1 = 250_000;
    simulation.run(300);
    assert!(hash(&simulation) != first && hash(&simulation) != second);
}

#[test]
fn everybody_may_send_four_packets_however_small_the_quota_is() {
    let forged = |number: u32| (IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)), 40);
    let mut simulation = Simulation::filtered(&(0..3_000).map(forged).collect::<Vec<_>>());
    simulation.processed = 20_000;
    simulation.run(500);
    assert_eq!(simulation.filter.unwrap().limit(), Some(4 * PACKET));
}

#[test]
fn a_filter_that_sees_packets_now_and_then_is_still_used() {
    let filter = Filter::new();
    let mut shares = overloaded(std::slice::from_ref(&filter));
    for interval in 0..250 {
        if interval % 60 == 0 {
            filter.passes(customer(1));
        }
        process(&mut shares);
        shares.turn(at(30 + interval * 10), true);
    }
    assert!(shares.has_filters && filter.rule().is_some());
}

/// A tunnel with the way to everywhere was added: the packets inside show who sends now.
#[test]
fn the_engine_judges_what_passed_the_filter_when_it_has_to_look_inside() {
    let filter = Filter::new();
    let mut shares = overloaded(std::slice::from_ref(&filter));
    shares.turn(at(30), false);
    assert_eq!(filter.rule(), None);
    assert!(!shares.batch(4_500, at(40), false) && !shares.batch(64, at(139), false));
    let mut admitted = [0; 2];
    for interval in 0..40 {
        assert!(shares.batch(64, at(140 + interval * 10), false));
        for number in 0..1_000 {
            admitted[0] += u64::from(shares.admits(Realm(0), (customer(1), 0), true));
            if number % 10 == 0 {
                admitted[1] += u64::from(shares.admits(Realm(0), (customer(9), 0), true));
            }
        }
    }
    assert_eq!((admitted[1], filter.rule()), (40 * 100, None));
    assert!(admitted[0] < 40 * 900, "{admitted:?}");
}

/// A filter that drops one more packet between the last reading of its counter and the end of its rule.
struct Late(Filter);

impl SenderTable for Late {
    fn buckets(&self) -> &[Bucket] {
        self.0.buckets()
    }

    fn set(&mut self, rule: Option<&FilterRule>) {
        self.0.0.dropped.fetch_add(u64::from(rule.is_none()), Ordering::Relaxed);
        self.0.set(rule);
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

#[test]
fn what_a_filter_drops_until_its_rule_ends_is_counted() {
    let filter = Filter::new();
    let mut shares = FairShares::new(64, 7);
    shares.set_filters(vec![Box::new(Late(filter.clone()))]);
    assert!(!shares.batch(800, at(0), true) && shares.batch(64, at(20), true));
    shares.turn(at(30), false);
    assert_eq!((shares.take_dropped(), filter.dropped()), (1, 1));
}

/// 70 % of what the engine can process; it has no processor for 30 ms twice, the second time before the queue of the first is empty.
#[test]
fn pauses_one_after_the_other_cause_no_drops() {
    let mut simulation = Simulation::filtered(&[(customer(1), 90_000), (customer(2), 500)]);
    let mut lost = 0;
    for milliseconds in [1_000, 10, 500] {
        lost += simulation.run(milliseconds).iter().map(|fate| fate.lost).sum::<u64>();
        simulation.now += 30_000_000;
    }
    assert_eq!(lost, 0);
}
