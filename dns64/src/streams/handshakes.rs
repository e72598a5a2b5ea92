//! TLS handshakes take more CPU time than any query: their number in a window of time is limited, by shares.
//!
//! A handshake takes a place for the length of the window. Each subscriber has a limit of its own, and among many that reach it the places are
//! [shared](sixway_control::dns64::Shares).

use sixway_control::dns64::{Payer, Place, Shares};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// How long a handshake takes a place.
const WINDOW: Duration = Duration::from_secs(5);
/// Handshakes of one subscriber in a window: 20 in a second, or all together. A host needs one or two in a minute.
pub(super) const OF_ONE: usize = 100;
/// Handshakes in a window. With 1 ms for an RSA key of 2,048 bits that is all that a thread can do; with an elliptic curve a sixth of it.
const OF_ALL: usize = 5_000;

/// The handshakes of the last window.
#[derive(Debug)]
pub(super) struct Handshakes {
    shares: Shares,
    of: HashMap<u128, usize>,
    begun: VecDeque<(Instant, u128, Place)>,
}

impl Handshakes {
    pub(super) fn new(seed: u64) -> Self {
        Self { shares: Shares::new(OF_ALL, seed), of: HashMap::new(), begun: VecDeque::new() }
    }

    /// Whether a handshake may begin; it is counted then.
    pub(super) fn begin(&mut self, now: Instant, subscriber: u128, payer: Payer) -> bool {
        while self.begun.front().is_some_and(|(begun, ..)| now.duration_since(*begun) >= WINDOW)
            && let Some((_, subscriber, place)) = self.begun.pop_front()
        {
            self.shares.leave(place);
            if let Some(count) = self.of.get_mut(&subscriber) {
                *count -= 1;
                if *count == 0 {
                    self.of.remove(&subscriber);
                }
            }
        }
        if self.of.get(&subscriber).is_some_and(|count| *count >= OF_ONE) {
            return false;
        }
        let Ok(place) = self.shares.admit(payer) else { return false };
        *self.of.entry(subscriber).or_default() += 1;
        self.begun.push_back((now, subscriber, place));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn begin(handshakes: &mut Handshakes, now: Instant, number: u32) -> bool {
        let address = IpAddr::V4(Ipv4Addr::from_bits(number));
        handshakes.begin(now, number.into(), Payer::of(address, 64, true))
    }

    #[test]
    fn a_subscriber_has_its_limit_and_many_at_it_leave_others_theirs() {
        let mut handshakes = Handshakes::new(1);
        let now = Instant::now();
        let begun = (0..1_000).filter(|_| begin(&mut handshakes, now, 1)).count();
        assert_eq!(begun, OF_ONE);
        for number in 2..600 {
            for _ in 0..10 {
                begin(&mut handshakes, now, number);
            }
        }
        assert!(begin(&mut handshakes, now, 5_000), "one more client");
        let later = now + WINDOW;
        assert!(begin(&mut handshakes, later, 1));
        assert_eq!((handshakes.begun.len(), handshakes.of.len(), handshakes.shares.used()), (1, 1, 1));
    }
}
