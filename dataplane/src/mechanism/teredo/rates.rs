//! Rate limits of bubbles and tests: to an IPv4 address, for a sender's packets, and in total.

use crate::instant::Instant;
use crate::rates::{Rate, Rates};
use core::net::Ipv4Addr;

const BUCKETS: usize = 16_384;
/// Bubbles a second to one address, and in a burst.
const TO_ADDRESS: Rate = Rate { rate: 500, burst: 1_000 };
/// The same to all.
const TO_ALL: Rate = Rate { rate: 20_000, burst: 20_000 };
/// The same because of the packets of one sender: less, so that one sender does not use up the rate of a server.
const OF_SENDER: Rate = Rate { rate: 100, burst: 200 };
/// Bubbles that a client sends only because of unknown senders' datagrams: answers to their bubbles.
const ANSWERS: Rate = Rate { rate: 500, burst: 1_000 };
/// Tests of native hosts because of an unknown sender's datagrams, by its IPv4 address, and of all unknown senders. Servers have a rate for each client, ours of
/// 20/s by default: most of it is left for this host's own tests and its qualification.
const TESTS_OF_STRANGER: Rate = Rate { rate: 2, burst: 4 };
const TESTS_OF_STRANGERS: Rate = Rate { rate: 5, burst: 10 };
/// Advertisements that are passed to control from one address of a server.
const CONTROL: Rate = Rate { rate: 100, burst: 200 };

/// All of these rates.
#[derive(Debug)]
pub(super) struct BubbleRates {
    addresses: Rates,
    all: Rates,
    senders: Rates,
    answered: Rates,
    answers: Rates,
    strangers: Rates,
    all_strangers: Rates,
    control: Rates,
}

impl BubbleRates {
    pub(super) fn new(seed: u64) -> Self {
        let many = |rate, number| Rates::new(rate, BUCKETS, seed.rotate_left(number));
        let one = |rate| Rates::new(rate, 1, seed);
        Self {
            addresses: many(TO_ADDRESS, 0),
            all: one(TO_ALL),
            senders: many(OF_SENDER, 8),
            answered: many(OF_SENDER, 40),
            answers: one(ANSWERS),
            strangers: many(TESTS_OF_STRANGER, 16),
            all_strangers: one(TESTS_OF_STRANGERS),
            control: many(CONTROL, 24),
        }
    }

    /// Octets of memory.
    pub(super) const fn memory_used(&self) -> usize {
        self.addresses.memory_used()
            + self.senders.memory_used()
            + self.answered.memory_used()
            + self.strangers.memory_used()
            + self.control.memory_used()
    }

    /// Takes a token for a bubble to an address. Returns whether there was one.
    pub(super) fn admit(&mut self, address: Ipv4Addr, now: Instant) -> bool {
        both((&mut self.addresses, address.to_bits()), &mut self.all, now)
    }

    /// Takes a token for a bubble because of a sender's packet. Returns whether there was one.
    pub(super) fn admit_sender(&mut self, creator: u16, now: Instant) -> bool {
        self.senders.admit(creator, now)
    }

    /// Takes a token for an answer to a bubble that names a sender. It is not one of those that the sender's own packets need.
    pub(super) fn admit_answer(&mut self, creator: u16, now: Instant) -> bool {
        both((&mut self.answered, creator.into()), &mut self.answers, now)
    }

    /// Takes a token for a test because of an unknown sender's datagram. Returns whether there was one.
    pub(super) fn admit_stranger(&mut self, from: Ipv4Addr, now: Instant) -> bool {
        both((&mut self.strangers, from.to_bits()), &mut self.all_strangers, now)
    }

    /// Takes a token for an advertisement from an address. Returns whether there was one.
    pub(super) fn admit_control(&mut self, from: Ipv4Addr, now: Instant) -> bool {
        self.control.admit(from.to_bits(), now)
    }
}

/// Takes a token of one and a token of all; neither, if there is not one of each.
fn both((each, whose): (&mut Rates, u32), all: &mut Rates, now: Instant) -> bool {
    all.has((), now) && each.admit(whose, now) && all.admit((), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn a_flood_to_one_address_leaves_the_others_their_rate() {
        let mut rates = BubbleRates::new(1);
        let [flooded, other] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        let now = Instant::from_secs(9);
        let admitted =
            |rates: &mut BubbleRates, address, now| (0..5_000).filter(|_| rates.admit(address, now)).count();
        assert_eq!(admitted(&mut rates, flooded, now), 1_000);
        assert_eq!(admitted(&mut rates, other, now), 1_000);
        assert_eq!(admitted(&mut rates, flooded, now + Duration::from_secs(1)), 500);
    }

    #[test]
    fn an_address_keeps_its_tokens_while_the_rate_of_all_is_used_up() {
        let mut rates = BubbleRates::new(1);
        let now = Instant::from_secs(9);
        let address = |number: u32| Ipv4Addr::from_bits(0xc000_0000 + number);
        let admitted = (0..30_000).filter(|number| rates.admit(address(*number), now)).count();
        assert_eq!(admitted, 20_000);
        assert!(!rates.admit(address(40_000), now));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..5_000).filter(|_| rates.admit(address(40_000), later)).count(), 1_000);
    }
}
