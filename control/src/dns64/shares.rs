//! Fair shares of a table: no client takes the places of the others, and none is evicted.
//!
//! The rule is that of dynamic thresholds (Choudhury and Hahne, 1998, with α = 1): a subscriber is let in while it holds fewer places than
//! are free. One greedy subscriber gets half of the table, and k of them get 1/(k+1) each, and leave as much free. A subscriber is what an
//! operator gives a customer: a prefix, or an IPv4 address. Within a prefix the hosts share what the subscriber may still take by the same
//! rule. A subscriber with few places is admitted beyond its share. A sixteenth of the places is reserved for subscribers that have none
//! and have proven
//! addresses.

use foldhash::quality::FixedState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::net::IpAddr;

/// A subscriber with fewer places than this gets one, independently of others; fewer in small tables.
const FEW: usize = 8;

/// The part of a table that is for subscribers without a place: a sixteenth.
const LAST: usize = 16;

/// The payer of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Payer {
    /// The prefix of the address, or an IPv4 address in its mapped form.
    subscriber: u128,
    /// The address.
    host: u128,
    /// Its packets come from where they say.
    proven: bool,
}

impl Payer {
    /// The gateway itself: what it asks for no client in particular.
    pub const OWN: Self = Self { subscriber: u128::MAX, host: u128::MAX, proven: true };

    /// A client. IPv6 addresses with the same first bits, `prefix_length` of them, are hosts of one subscriber; each IPv4 address is one. `proven`: it has
    /// answered, so its address is not forged.
    #[must_use]
    pub fn of(address: IpAddr, prefix_length: u8, proven: bool) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let host = address.to_ipv6_mapped().to_bits();
                Self { subscriber: host, host, proven }
            }
            IpAddr::V6(address) => {
                let host = address.to_bits();
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix_length.min(128))).unwrap_or(0);
                Self { subscriber: host & mask, host, proven }
            }
        }
    }

    /// The bits of its subscriber, for tables by subscriber.
    #[must_use]
    pub fn subscriber_bits(&self) -> u128 {
        self.subscriber
    }

    /// Its subscriber.
    pub(super) fn subscriber(&self) -> Subscriber {
        Subscriber(self.subscriber)
    }

    /// Whether its packets come from where they say.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    /// Whether others may have the same subscriber.
    fn is_one_of_many(&self) -> bool {
        self.host != self.subscriber
    }
}

/// Hosts that share what is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subscriber(u128);

impl Subscriber {
    /// What is left of it in 64 bits: a prefix of at most 64 bits, or an IPv4 address.
    pub(super) fn short(self) -> u64 {
        ((self.0 >> 64) as u64) ^ self.0 as u64
    }
}

/// A place that is taken. It is to be [returned](Shares::leave).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a place that is not returned stays taken"]
pub struct Place(Payer);

impl Place {
    /// The payer of it.
    #[must_use]
    pub fn payer(&self) -> Payer {
        self.0
    }
}

/// There is no room for this payer, though there may be for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoShare;

/// The places of a table, and who holds them.
#[derive(Clone, Debug)]
pub struct Shares {
    most: usize,
    used: usize,
    by_subscriber: Counts<u128>,
    /// Of these, the places of payers whose addresses are proven: what others take in a subscriber's name is not counted against it here.
    proven: Counts<u128>,
    /// Only of hosts that are one of many.
    by_host: Counts<Payer>,
}

/// Places of each that has any: at most as many entries as places.
#[derive(Clone, Debug)]
struct Counts<K>(HashMap<K, usize, FixedState>);

impl<K: Eq + Hash> Counts<K> {
    fn new(hasher: &FixedState) -> Self {
        Self(HashMap::with_hasher(hasher.clone()))
    }

    fn of(&self, who: &K) -> usize {
        self.0.get(who).copied().unwrap_or(0)
    }

    fn add(&mut self, who: K) {
        *self.0.entry(who).or_default() += 1;
    }

    fn remove(&mut self, who: K) {
        if let Entry::Occupied(mut count) = self.0.entry(who) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Shares {
    /// A table with this number of places. The seed makes it unpredictable which payers meet in the tables.
    #[must_use]
    pub fn new(most: usize, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        let (by_subscriber, proven) = (Counts::new(&hasher), Counts::new(&hasher));
        Self { most, used: 0, by_subscriber, proven, by_host: Counts::new(&hasher) }
    }

    /// Another number of places. Those that are taken beyond it stay so until they are returned.
    pub fn resize(&mut self, most: usize) {
        self.most = most;
    }

    /// Places that are taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Takes a place.
    ///
    /// # Errors
    /// When the payer has its share.
    pub fn admit(&mut self, payer: Payer) -> Result<Place, NoShare> {
        if !self.has_room(payer) {
            return Err(NoShare);
        }
        Ok(self.take(payer))
    }

    fn take(&mut self, payer: Payer) -> Place {
        self.used += 1;
        self.by_subscriber.add(payer.subscriber);
        if payer.proven {
            self.proven.add(payer.subscriber);
        }
        if payer.is_one_of_many() {
            self.by_host.add(host_of(payer));
        }
        Place(payer)
    }

    /// Returns a place.
    pub fn leave(&mut self, Place(payer): Place) {
        self.used -= 1;
        self.by_subscriber.remove(payer.subscriber);
        if payer.proven {
            self.proven.remove(payer.subscriber);
        }
        if payer.is_one_of_many() {
            self.by_host.remove(host_of(payer));
        }
    }

    /// Gives a place to another payer, whether it has its share or not: for tables that replace entries by a rule of their own.
    pub fn hand_over(&mut self, place: Place, payer: Payer) -> Place {
        self.leave(place);
        self.take(payer)
    }

    /// Whether the payer would be let in.
    #[must_use]
    pub fn has_room(&self, payer: Payer) -> bool {
        let held = self.by_subscriber.of(&payer.subscriber);
        let own = if payer.proven { self.proven.of(&payer.subscriber) } else { held };
        let free = (self.most - self.most / LAST).saturating_sub(self.used);
        if free == 0 {
            return self.used < self.most && own == 0 && payer.proven;
        }
        if own < FEW.min(self.most / 64) {
            return true;
        }
        // What the subscriber may still take; its hosts share it.
        let left = free.saturating_sub(held);
        left > 0 && (!payer.is_one_of_many() || self.by_host.of(&host_of(payer)) < left)
    }

    /// Whether the payer itself holds only a few places, whatever other hosts of its subscriber hold.
    #[must_use]
    pub fn holds_few(&self, payer: Payer) -> bool {
        let held = match payer.is_one_of_many() {
            true => self.by_host.of(&host_of(payer)),
            false => self.by_subscriber.of(&payer.subscriber),
        };
        held < FEW
    }

    /// Whether the payer's subscriber holds so much that it is to cost less: more than a quarter of what is free.
    #[must_use]
    pub fn holds_much(&self, payer: Payer) -> bool {
        4 * self.by_subscriber.of(&payer.subscriber) > self.most.saturating_sub(self.used)
    }
}

/// A host, whether its address is proven or not.
fn host_of(payer: Payer) -> Payer {
    Payer { proven: false, ..payer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host(text: &str) -> Payer {
        Payer::of(text.parse().unwrap(), 64, false)
    }

    /// Hosts of subscribers of their own.
    fn subscriber(number: u32) -> Payer {
        Payer::of(std::net::Ipv4Addr::from_bits(0xc000_0200 + number).into(), 64, false)
    }

    /// Lets in as many as there is room for, one of each in turn.
    fn fill(shares: &mut Shares, payers: &[Payer]) -> Vec<Place> {
        let mut places = Vec::new();
        loop {
            let before = places.len();
            places.extend(payers.iter().filter_map(|payer| shares.admit(*payer).ok()));
            if places.len() == before {
                return places;
            }
        }
    }

    #[test]
    fn greedy_subscribers_get_equal_shares_and_leave_one() {
        for greedy in [1, 2, 3, 7, 14, 40, 290] {
            let mut shares = Shares::new(8_192, 1);
            let payers: Vec<Payer> = (0..greedy).map(subscriber).collect();
            let places = fill(&mut shares, &payers);
            let share = (8_192 - 8_192 / LAST) / (greedy as usize + 1);
            for payer in payers {
                let held = places.iter().filter(|place| place.payer() == payer).count();
                assert!(held.abs_diff(share) <= 1, "{held} of {greedy}");
            }
            let newcomer = fill(&mut shares, &[subscriber(9_999)]);
            assert!(newcomer.len() >= (share / 2).max(FEW), "{} with {greedy}", newcomer.len());
        }
    }

    #[test]
    fn who_holds_few_is_let_in_among_any_number_of_greedy_ones() {
        let mut shares = Shares::new(8_192, 1);
        let greedy: Vec<Payer> = (0..900).map(subscriber).collect();
        let _places = fill(&mut shares, &greedy);
        assert_eq!(fill(&mut shares, &[subscriber(1_000)]).len(), FEW);
    }

    #[test]
    fn the_last_places_are_for_who_has_none_and_is_known_to_be_there() {
        let mut shares = Shares::new(1_024, 1);
        let greedy: Vec<Payer> = (0..1_000).map(subscriber).collect();
        let mut places = fill(&mut shares, &greedy);
        assert_eq!(shares.used(), 1_024 - 1_024 / LAST);
        assert_eq!(shares.admit(subscriber(2_000)), Err(NoShare), "its address may be forged");
        let proven = Payer { proven: true, ..subscriber(2_000) };
        places.push(shares.admit(proven).expect("it has none"));
        assert_eq!(shares.admit(proven), Err(NoShare), "it has one");
        let others: Vec<Payer> =
            (3_000..4_000).map(|number| Payer { proven: true, ..subscriber(number) }).collect();
        places.extend(fill(&mut shares, &others));
        assert_eq!((shares.used(), places.len()), (1_024, 1_024));
    }

    #[test]
    fn what_is_taken_in_a_forged_name_is_not_counted_against_who_proves_its_address() {
        let mut shares = Shares::new(1_024, 1);
        let proven = Payer { proven: true, ..subscriber(1) };
        let _forged = fill(&mut shares, &[subscriber(1)]);
        assert_eq!(shares.admit(subscriber(1)), Err(NoShare));
        assert_eq!(fill(&mut shares, &[proven]).len(), FEW);
        let mut shares = Shares::new(1_024, 1);
        let _forged = fill(&mut shares, &(1..1_000).map(subscriber).collect::<Vec<_>>());
        assert_eq!(fill(&mut shares, &[proven]).len(), 1, "one of the last sixteenth");
    }

    #[test]
    fn hosts_of_a_subscriber_leave_each_other_room_and_no_subscriber_has_more_for_its_hosts() {
        let mut shares = Shares::new(8_192, 1);
        let one = fill(&mut shares, &[host("2001:db8::1")]);
        assert_eq!(one.len(), 7_680 / 3);
        let neighbour = fill(&mut shares, &[host("2001:db8::2")]);
        assert!(neighbour.len() > 800, "{}", neighbour.len());
        let mut shares = Shares::new(8_192, 1);
        let many: Vec<Payer> = (1..200).map(|number| host(&format!("2001:db8::{number:x}"))).collect();
        assert!(fill(&mut shares, &many).len() <= 7_680 / 2);
        assert!(fill(&mut shares, &[host("2001:db8:1::1")]).len() > 1_000);
    }

    #[test]
    fn a_subscriber_is_a_prefix_or_an_ipv4_address() {
        let of = |text: &str, length| Payer::of(text.parse().unwrap(), length, false).subscriber;
        assert_eq!(of("2001:db8::1", 64), of("2001:db8::2", 64));
        assert_ne!(of("2001:db8:0:1::1", 64), of("2001:db8::1", 64));
        assert_eq!(of("2001:db8:0:1::1", 56), of("2001:db8::1", 56));
        assert_eq!(of("192.0.2.1", 56), of("::ffff:192.0.2.1", 64));
        assert_ne!(of("192.0.2.1", 32), of("192.0.2.2", 32));
        assert_ne!(of("2001:db8::1", 128), of("2001:db8::2", 128));
    }

    #[test]
    fn who_holds_more_than_a_quarter_of_what_is_free_holds_much() {
        let mut shares = Shares::new(1_000, 1);
        let one = subscriber(1);
        let places: Vec<Place> = (0..200).map(|_| shares.admit(one).expect("there is room")).collect();
        assert!(!shares.holds_much(one), "200 of 800");
        let more = shares.admit(one).expect("there is room");
        assert!(shares.holds_much(one) && !shares.holds_much(subscriber(2)));
        places.into_iter().chain([more]).for_each(|place| shares.leave(place));
        assert!(shares.used() == 0 && shares.by_subscriber.0.is_empty() && shares.by_host.0.is_empty());
    }

    /// The rule in its slowest form: everybody is counted each time.
    fn has_room(most: usize, places: &[Place], payer: Payer) -> bool {
        let of_subscriber = || places.iter().filter(|place| place.0.subscriber == payer.subscriber);
        let held = of_subscriber().count();
        let own = if payer.proven { of_subscriber().filter(|place| place.0.proven).count() } else { held };
        let of_host = places.iter().filter(|place| place.0.host == payer.host).count();
        let free = (most - most / 16).saturating_sub(places.len());
        match (free, payer.host == payer.subscriber) {
            (0, _) => places.len() < most && own == 0 && payer.proven,
            _ if own < 8.min(most / 64) => true,
            (_, true) => held < free,
            (_, false) => held < free && of_host + held < free,
        }
    }

    proptest! {
        #[test]
        fn shares_are_those_of_a_model_that_counts_everybody(
            most in prop::sample::select(vec![1_usize, 7, 64, 200, 1_024]),
            steps in prop::collection::vec((0_u32..6, 0_u32..4, any::<bool>(), 0_u8..4, any::<prop::sample::Index>()), 1..400),
        ) {
            let (mut shares, mut places) = (Shares::new(most, 5), Vec::new());
            for (number, below, proven, kind, gone) in steps {
                let text = format!("2001:db8:{number}::{below}");
                let payer = match number {
                    0 | 1 => Payer { proven, ..subscriber(number) },
                    _ => Payer { proven, ..host(&text) },
                };
                if kind == 0 && !places.is_empty() {
                    shares.leave(places.swap_remove(gone.index(places.len())));
                    continue;
                }
                // Several of each, so that tables fill.
                for _ in 0..=kind * 8 {
                    let expected = has_room(most, &places, payer);
                    prop_assert_eq!(shares.has_room(payer), expected);
                    let place = shares.admit(payer);
                    prop_assert_eq!(place.is_ok(), expected);
                    places.extend(place);
                }
                prop_assert_eq!(shares.used(), places.len());
                prop_assert!(places.len() <= most);
            }
        }
    }
}
