//! Rates of bubbles: to an IPv4 address, for a sender's packets, and of all. A bucket belongs to all with one hash, so that no flood makes one forget
//! what was sent.

use crate::instant::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;
use core::net::Ipv4Addr;
use core::time::Duration;
use foldhash::fast::FixedState;

const BUCKETS: usize = 16_384;
/// Bubbles a second to one address, and in a burst.
const TO_ADDRESS: (u64, u64) = (500, 1_000);
/// The same for the packets of one sender: less, so that he does not take the rate of a server from others.
const OF_SENDER: (u64, u64) = (100, 200);
/// What control may hear from the address of a server.
const CONTROL: (u64, u64) = (100, 200);
/// The same to all.
const TO_ALL: (u64, u64) = (20_000, 20_000);

/// Each bucket is the time at which it is full (the generic cell rate algorithm, ITU-T I.371 Annex A).
#[derive(Debug)]
pub(super) struct BubbleRates {
    hash: FixedState,
    addresses: Vec<Instant>,
    senders: Vec<Instant>,
    all: Instant,
    control: Vec<Instant>,
}

impl BubbleRates {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            hash: FixedState::with_seed(seed),
            addresses: vec![Instant::default(); BUCKETS],
            senders: vec![Instant::default(); BUCKETS],
            all: Instant::default(),
            control: vec![Instant::default(); BUCKETS],
        }
    }

    /// Octets of memory.
    pub(super) fn memory_used(&self) -> usize {
        (self.senders.len() + self.addresses.len() + self.control.len()) * size_of::<Instant>()
    }

    /// Takes a token for a bubble to an address. Whether there was one.
    pub(super) fn admit(&mut self, address: Ipv4Addr, now: Instant) -> bool {
        let at = self.hash.hash_one(address.to_bits()) as usize % BUCKETS;
        take(&mut self.addresses[at], TO_ADDRESS, now) && take(&mut self.all, TO_ALL, now)
    }

    /// Takes a token for an advertisement from an address. Whether there was one.
    pub(super) fn admit_control(&mut self, from: Ipv4Addr, now: Instant) -> bool {
        let at = self.hash.hash_one(from.to_bits()) as usize % BUCKETS;
        take(&mut self.control[at], CONTROL, now)
    }

    /// Takes a token for a bubble because of a sender's packet. Whether there was one.
    pub(super) fn admit_sender(&mut self, creator: u16, now: Instant) -> bool {
        take(&mut self.senders[usize::from(creator) % BUCKETS], OF_SENDER, now)
    }
}

fn take(bucket: &mut Instant, (rate, burst): (u64, u64), now: Instant) -> bool {
    let token = Duration::from_nanos(1_000_000_000 / rate);
    let full = (*bucket).max(now);
    if full.since(now) > token * (burst as u32 - 1) {
        return false;
    }
    *bucket = full + token;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
