//! A queue in front of an engine in simulated time: senders at constant rates, a bounded queue, and a server that needs less time to drop a packet
//! than to process it.

mod filters;
mod numbers;

use super::control::share;
use super::senders::sender_bits as sender;
use super::*;
use alloc::collections::{BTreeMap, VecDeque};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Nanoseconds that a packet takes, processed and dropped.
const PROCESSED: u64 = 8_000;
const DROPPED: u64 = 1_200;
/// Packets that the queue has room for.
const ROOM: usize = 10_000;

fn customer(number: u8) -> IpAddr {
    Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(number) << 64 | 1).into()
}

/// What became of a sender's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    processed: u64,
    lost: u64,
    /// The longest wait in the queue, in milliseconds.
    waited: u64,
}

impl Fate {
    fn loss(self) -> f64 {
        self.lost as f64 / (self.lost + self.processed).max(1) as f64
    }
}

/// A filter in front of the queue, as the kernel has one.
#[derive(Clone)]
struct Filter(Arc<Shared>);

struct Shared {
    buckets: Vec<Bucket>,
    rule: Mutex<Option<FilterRule>>,
    dropped: AtomicU64,
}

impl Filter {
    fn new() -> Self {
        let buckets = (0..BUCKETS).map(|_| Bucket::default()).collect();
        Self(Arc::new(Shared { buckets, rule: Mutex::new(None), dropped: AtomicU64::new(0) }))
    }

    fn passes(&self, source: IpAddr) -> bool {
        let rule = self.0.rule.lock().unwrap();
        let Some(rule) = &*rule else { return true };
        let bucket = rule.hash.bucket(Realm(0), sender(source, u128::MAX << 64), 0);
        let passes = rule.admits(&self.0.buckets, bucket);
        self.0.dropped.fetch_add(u64::from(!passes), Ordering::Relaxed);
        passes
    }
}

impl SenderTable for Filter {
    fn buckets(&self) -> &[Bucket] {
        &self.0.buckets
    }

    fn set(&mut self, rule: Option<&FilterRule>) {
        *self.0.rule.lock().unwrap() = rule.cloned();
    }

    fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

/// Senders with packets a second; what became of the packets that arrived.
struct Simulation {
    senders: Vec<(IpAddr, u64)>,
    shares: Option<FairShares>,
    filter: Option<Filter>,
    /// Senders that send in turn: for how many nanoseconds, and how often.
    bursts: BTreeMap<usize, (u64, u64)>,
    /// Nanoseconds that a packet takes.
    processed: u64,
    /// Time and place in `senders`.
    queue: VecDeque<(u64, usize)>,
    arrivals: BTreeMap<(u64, usize), ()>,
    now: u64,
}

impl Simulation {
    fn new(senders: &[(IpAddr, u64)], shares: Option<FairShares>) -> Self {
        // Each begins at another time of its interval.
        let begin = |place: usize| {
            let gap = 1_000_000_000_u64.checked_div(senders[place].1).unwrap_or(1);
            place as u64 * 0x9e37_79b9 % gap
        };
        let arrivals = (0..senders.len()).map(|place| ((begin(place), place), ())).collect();
        let (queue, bursts) = (VecDeque::new(), BTreeMap::new());
        let senders = senders.to_vec();
        Self { senders, shares, filter: None, bursts, processed: PROCESSED, queue, arrivals, now: 0 }
    }

    /// The same with a filter in front of the queue.
    fn filtered(senders: &[(IpAddr, u64)]) -> Self {
        let (mut shares, filter) = (FairShares::new(64, 7), Filter::new());
        shares.set_filters(vec![Box::new(filter.clone())]);
        Self { filter: Some(filter), ..Self::new(senders, Some(shares)) }
    }

    /// Whether a sender sends at this time: those with bursts do so one after the other.
    fn sends(&self, place: usize, at: u64) -> bool {
        let burst = self.bursts.get(&place);
        burst.is_none_or(|(length, period)| (at + place as u64 * length) % period < *length)
    }

    /// Packets that have arrived by now enter the queue, or are lost.
    fn arrive(&mut self, fates: &mut [Fate]) {
        while let Some(((at, place), ())) = self.arrivals.first_key_value().map(|(key, ())| (*key, ())) {
            if at > self.now {
                break;
            }
            self.arrivals.remove(&(at, place));
            if let Some(gap) = 1_000_000_000_u64.checked_div(self.senders[place].1) {
                self.arrivals.insert((at + gap, place), ());
            }
            if !self.sends(place, at) {
                continue;
            }
            let passes = self.filter.as_ref().is_none_or(|filter| filter.passes(self.senders[place].0));
            match passes && self.queue.len() < ROOM {
                true => self.queue.push_back((at, place)),
                false => fates[place].lost += 1,
            }
        }
    }

    /// Runs for this many milliseconds; the fates of packets that ended in them.
    fn run(&mut self, milliseconds: u64) -> Vec<Fate> {
        let passed = self.filter.is_some();
        self.run_by(milliseconds, passed)
    }

    fn run_by(&mut self, milliseconds: u64, passed: bool) -> Vec<Fate> {
        let mut fates = vec![Fate::default(); self.senders.len()];
        let until = self.now + milliseconds * 1_000_000;
        while self.now < until {
            self.arrive(&mut fates);
            let count = self.queue.len().min(64);
            if count == 0 {
                if let Some(shares) = &mut self.shares {
                    shares.emptied();
                    shares.turn(Instant(self.now), true);
                }
                self.now = self.arrivals.first_key_value().map_or(until, |((at, _), ())| *at).min(until);
                continue;
            }
            let by_shares =
                self.shares.as_mut().is_some_and(|shares| shares.batch(count, Instant(self.now), true));
            for _ in 0..count {
                let Some((at, place)) = self.queue.pop_front() else { break };
                let fate = &mut fates[place];
                let admitted = match &mut self.shares {
                    Some(shares) if by_shares => shares.admits(Realm(0), (self.senders[place].0, 0), passed),
                    _ => true,
                };
                match admitted {
                    true => {
                        self.now += self.processed;
                        fate.processed += 1;
                        fate.waited = fate.waited.max((self.now - at) / 1_000_000);
                    }
                    false => {
                        self.now += DROPPED;
                        fate.lost += 1;
                    }
                }
            }
            if let Some(shares) = self.shares.as_mut().filter(|_| count < 64) {
                shares.emptied();
            }
        }
        fates
    }

    fn is_overloaded(&self) -> bool {
        self.shares.as_ref().is_some_and(|shares| matches!(shares.state, State::Overloaded(_)))
    }
}

fn shares() -> Option<FairShares> {
    Some(FairShares::new(64, 7))
}

#[test]
fn a_light_sender_loses_nothing_and_waits_little_while_a_heavy_one_overloads_the_engine() {
    let senders = [(customer(1), 250_000), (customer(2), 500)];
    let mut without = Simulation::new(&senders, None);
    without.run(1_000);
    let fates = without.run(2_000);
    assert!(fates[1].loss() > 0.4 && fates[1].waited >= 75, "without shares: {fates:?}");
    let best = fates[0].processed + fates[1].processed;

    let mut with = Simulation::new(&senders, shares());
    with.run(1_000);
    let fates = with.run(2_000);
    assert_eq!(fates[1].lost, 0, "{fates:?}");
    assert!(fates[1].waited <= 30, "{fates:?}");
    let goodput = fates[0].processed + fates[1].processed;
    assert!(goodput * 5 >= best * 4, "{goodput} of {best}");
}

#[test]
fn however_much_arrives_four_fifths_of_the_capacity_are_left() {
    let mut with = Simulation::new(&[(customer(1), 2_000_000), (customer(2), 500)], shares());
    with.run(1_000);
    let fates = with.run(2_000);
    let goodput = fates[0].processed + fates[1].processed;
    assert!(goodput >= 2 * 125_000 * 78 / 100, "{fates:?}");
}

#[test]
fn a_queue_that_becomes_empty_regularly_causes_no_drops() {
    let mut with = Simulation::new(&[(customer(1), 118_000), (customer(2), 500)], shares());
    let fates = with.run(3_000);
    assert_eq!((fates[0].lost, fates[1].lost), (0, 0));
    assert!(!with.is_overloaded());
}

#[test]
fn three_equal_senders_lose_the_same_and_a_smaller_one_nothing() {
    let of = |number| (customer(number), 80_000);
    let mut with = Simulation::new(&[of(1), of(2), of(3), (customer(4), 20_000)], shares());
    with.run(1_000);
    let fates = with.run(2_000);
    let losses: Vec<f64> = fates.iter().map(|fate| fate.loss()).collect();
    assert!(losses[..3].iter().all(|loss| (0.4..0.8).contains(loss)), "{losses:?}");
    assert!(losses.iter().take(3).all(|loss| (loss - losses[0]).abs() < 0.02), "{losses:?}");
    assert!(losses[3] < 0.005, "{losses:?}");
}

#[test]
fn overload_ends_with_its_cause() {
    let mut simulation = Simulation::new(&[(customer(1), 250_000), (customer(2), 500)], shares());
    simulation.run(1_000);
    assert!(simulation.is_overloaded());
    simulation.senders[0].1 = 20_000;
    simulation.run(1_500);
    assert!(!simulation.is_overloaded());
    let fates = simulation.run(1_000);
    assert_eq!((fates[0].lost, fates[1].lost), (0, 0));
}

#[test]
fn a_pause_of_the_process_causes_no_drops() {
    // The engine had no CPU for 30 ms of each 60, twice as much as it needs: the queue becomes empty in between.
    let mut simulation = Simulation::new(&[(customer(1), 40_000), (customer(2), 500)], shares());
    let mut lost = 0;
    for _ in 0..40 {
        let fates = simulation.run(30);
        lost += fates[0].lost + fates[1].lost;
        simulation.now += 30_000_000;
    }
    assert_eq!(lost, 0);
}

#[test]
fn a_sender_is_a_prefix_of_ipv6_and_an_address_of_ipv4() {
    let of = |bits: u8, one: &str, other: &str| {
        let FairShares { mask, .. } = FairShares::new(bits, 0);
        sender(one.parse().unwrap(), mask) == sender(other.parse().unwrap(), mask)
    };
    assert!(of(64, "2001:db8::1", "2001:db8::2") && !of(64, "2001:db8::1", "2001:db8:0:1::1"));
    assert!(of(56, "2001:db8::1", "2001:db8:0:1::1") && !of(128, "2001:db8::1", "2001:db8::2"));
    assert!(!of(64, "192.0.2.1", "192.0.2.2") && of(0, "2001:db8::1", "2001:db9::1"));
}

#[test]
fn a_heavy_sender_of_many_addresses_in_its_prefix_has_one_share() {
    let mut shares = FairShares::new(64, 7);
    let at = |milliseconds: u64| Instant(milliseconds * 1_000_000);
    shares.batch(4_500, at(0), true);
    assert!(!shares.batch(4_500, at(99), true));
    assert!(shares.batch(64, at(100), true));
    let address = |low: u64| IpAddr::from(Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(low)));
    let mut admitted = [0; 2];
    for interval in 0..40_u64 {
        shares.batch(64, at(110 + interval * 10), true);
        for number in 0..1_000 {
            admitted[0] += u64::from(shares.admits(Realm(0), (address(number), 0), false));
            if number % 10 == 0 {
                admitted[1] += u64::from(shares.admits(Realm(0), (customer(9), 0), false));
            }
        }
    }
    assert_eq!(admitted[1], 40 * 100);
    assert!(admitted[0] < 40 * 900, "{admitted:?}");
}

#[test]
fn shares_are_max_min_fair() {
    assert_eq!(share(&[100, 10, 0, 1], 61), 50);
    assert_eq!(share(&[100, 100, 100], 90), 30);
    assert_eq!(share(&[5, 5], 10), u64::MAX);
    assert_eq!(share(&[5, 5], 100), u64::MAX);
    assert_eq!(share(&[], 0), u64::MAX);
    assert_eq!(share(&[7], 0), 0);
}

/// As many senders as there may be forged ones, more than packets in an interval.
#[test]
fn more_senders_than_packets_that_can_be_processed_leave_most_of_the_capacity() {
    let forged = |number: u32| (IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)), 40);
    let mut with = Simulation::new(&(0..3_000).map(forged).collect::<Vec<_>>(), shares());
    with.processed = 20_000;
    with.run(1_000);
    let processed: u64 = with.run(2_000).iter().map(|fate| fate.processed).sum();
    assert!(processed >= 2 * 50_000 * 3 / 4, "{processed}");
}

/// Two addresses of one host in turn, each for as long as an interval.
#[test]
fn who_sends_in_turn_from_two_addresses_has_the_shares_of_two_senders() {
    let senders = [(customer(1), 200_000), (customer(2), 200_000), (customer(3), 25_000)];
    let mut with = Simulation::new(&senders, shares());
    with.bursts = (0..2).map(|place| (place, (10_000_000, 20_000_000))).collect();
    with.run(1_000);
    let fates = with.run(2_000);
    assert!(fates[2].loss() < 0.02, "{fates:?}");
}

/// Bursts that do not fill a standing queue, from someone who would like others to lose packets.
#[test]
fn bursts_after_an_overload_cost_others_nothing() {
    let senders = [(customer(1), 250_000), (customer(2), 60_000), (customer(3), 10_000)];
    let mut with = Simulation::new(&senders, shares());
    with.run(1_000);
    assert!(with.is_overloaded());
    with.bursts = [(0, (10_000_000, 200_000_000))].into();
    with.run(1_000);
    let fates = with.run(2_000);
    assert_eq!([fates[1].lost, fates[2].lost], [0, 0], "{fates:?}");
}

/// At first most packets are cheap, then none is: what could be processed at first cannot be any more.
#[test]
fn packets_that_become_more_expensive_cost_the_heavy_sender_its_packets() {
    let mut with = Simulation::new(&[(customer(1), 600_000), (customer(2), 500)], shares());
    with.processed = 2_000;
    with.run(1_000);
    assert!(with.is_overloaded());
    (with.processed, with.senders[0].1) = (16_000, 150_000);
    with.run(3_000);
    let fates = with.run(2_000);
    assert!(fates[1].loss() < 0.01 && fates[1].waited <= 50, "{fates:?}");
}

#[test]
fn the_same_address_in_another_realm_is_another_sender() {
    let mut shares = FairShares::new(64, 7);
    let at = |milliseconds: u64| Instant(milliseconds * 1_000_000);
    shares.batch(4_500, at(0), true);
    let host = IpAddr::from([10, 0, 0, 1]);
    let mut admitted = [0; 2];
    for interval in 0..40_u64 {
        shares.batch(64, at(100 + interval * 10), true);
        for number in 0..1_000 {
            admitted[0] += u64::from(shares.admits(Realm(1), (host, 0), false));
            if number % 10 == 0 {
                admitted[1] += u64::from(shares.admits(Realm(2), (host, 0), false));
            }
        }
    }
    assert_eq!(admitted[1], 40 * 100);
    assert!(admitted[0] < 40 * 900, "{admitted:?}");
}

/// Rates that the engine could not read, let alone process.
#[test]
fn with_a_filter_a_light_sender_loses_nothing_and_waits_little_however_much_arrives() {
    for heavy in [150_000, 250_000, 1_250_000, 6_000_000] {
        let mut simulation = Simulation::filtered(&[(customer(1), heavy), (customer(2), 500)]);
        let begun = simulation.run(1_000);
        assert!(begun[1].lost <= 50, "{heavy}: {begun:?}");
        let fates = simulation.run(3_000);
        assert_eq!(fates[1].lost, 0, "{heavy}: {fates:?}");
        assert!(fates[1].waited <= 20, "{heavy}: {fates:?}");
        let goodput = fates[0].processed + fates[1].processed;
        assert!(goodput >= 3 * 125_000 * 95 / 100, "{heavy}: {goodput} {fates:?}");
    }
}

#[test]
fn with_a_filter_equal_senders_lose_the_same_and_smaller_ones_nothing() {
    let of = |number| (customer(number), 80_000);
    let mut simulation = Simulation::filtered(&[of(1), of(2), of(3), (customer(4), 20_000)]);
    simulation.run(1_000);
    let fates = simulation.run(2_000);
    let losses: Vec<f64> = fates.iter().map(|fate| fate.loss()).collect();
    assert!(losses[..3].iter().all(|loss| (0.5..0.65).contains(loss)), "{losses:?}");
    assert!(losses.iter().take(3).all(|loss| (loss - losses[0]).abs() < 0.02), "{losses:?}");
    assert_eq!(fates[3].lost, 0, "{losses:?}");
}

#[test]
fn with_a_filter_overload_ends_with_its_cause_and_pauses_cause_no_drops() {
    let mut simulation = Simulation::filtered(&[(customer(1), 250_000), (customer(2), 500)]);
    simulation.run(1_000);
    assert!(simulation.is_overloaded());
    simulation.senders[0].1 = 20_000;
    simulation.run(1_500);
    assert!(!simulation.is_overloaded());
    assert_eq!(*simulation.filter.as_ref().unwrap().0.rule.lock().unwrap(), None);
    let fates = simulation.run(1_000);
    assert_eq!((fates[0].lost, fates[1].lost), (0, 0));

    // The engine has no CPU for 30 ms of each 60.
    let mut simulation = Simulation::filtered(&[(customer(1), 40_000), (customer(2), 500)]);
    let mut lost = 0;
    for _ in 0..40 {
        let fates = simulation.run(30);
        lost += fates[0].lost + fates[1].lost;
        simulation.now += 30_000_000;
    }
    assert_eq!(lost, 0);
}

#[test]
fn with_a_filter_forged_sources_leave_most_of_the_capacity() {
    let forged = |number: u32| (IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)), 40);
    let mut simulation = Simulation::filtered(&(0..3_000).map(forged).collect::<Vec<_>>());
    simulation.processed = 20_000;
    simulation.run(1_000);
    let fates = simulation.run(2_000);
    let processed: u64 = fates.iter().map(|fate| fate.processed).sum();
    assert!(processed >= 2 * 50_000 * 9 / 10, "{processed}");
    let waited = fates.iter().map(|fate| fate.waited).max();
    assert!(waited <= Some(30), "{waited:?} {processed}");
}

#[test]
fn with_a_filter_packets_that_become_more_expensive_are_fewer() {
    let mut simulation = Simulation::filtered(&[(customer(1), 600_000), (customer(2), 500)]);
    simulation.processed = 2_000;
    simulation.run(1_000);
    assert!(simulation.is_overloaded());
    simulation.processed = 16_000;
    simulation.run(1_000);
    let fates = simulation.run(2_000);
    assert!(fates[1].lost == 0 && fates[1].waited <= 20, "{fates:?}");
    simulation.processed = 8_000;
    simulation.run(1_000);
    let fates = simulation.run(2_000);
    assert!(fates[0].processed >= 2 * 125_000 * 9 / 10, "{fates:?}");
}

/// As after a flood, in which the kernel had a part of the processor.
#[test]
fn with_a_filter_packets_that_become_cheaper_are_soon_more() {
    for (before, rate, most) in [(10_000, 115_000, 0.005), (16_000, 100_000, 0.012), (32_000, 100_000, 0.035)]
    {
        let mut simulation = Simulation::filtered(&[(customer(1), 600_000), (customer(2), 500)]);
        simulation.processed = before;
        simulation.run(2_000);
        assert!(simulation.is_overloaded());
        (simulation.processed, simulation.senders[0].1) = (PROCESSED, rate);
        simulation.run(20);
        let fates = simulation.run(1_000);
        assert_eq!(fates[1].lost, 0, "{fates:?}");
        assert!(fates[0].loss() <= most, "{before}, {rate}: {fates:?}");
    }
}

/// The filter is in front of another queue, as after another program attached one of its own.
#[test]
fn a_filter_that_sees_nothing_is_not_used_any_more() {
    let mut simulation = Simulation::filtered(&[(customer(1), 160_000), (customer(2), 500)]);
    let filter = simulation.filter.take().unwrap();
    let is_in_front = |simulation: &Simulation| simulation.shares.as_ref().unwrap().has_filters;
    // No packet passes it, and the engine takes all for packets that did.
    for _ in 0..400 {
        simulation.run_by(10, true);
    }
    assert!(!is_in_front(&simulation));
    assert_eq!(*filter.0.rule.lock().unwrap(), None);
    simulation.run(1_000);
    let fates = simulation.run(2_000);
    assert!(fates[1].loss() < 0.01 && fates[1].waited <= 50, "{fates:?}");
}
