//! How fast requests may come (RFC 6887 §8.2: an overloaded server discards them).

use super::counts::Ignored;
use super::settings::Settings;
use core::net::IpAddr;
use sixway_dataplane::Instant;
use sixway_dataplane::rates::Rates;

/// Buckets of subscribers.
const BUCKETS: usize = 4_096;

/// The rates of requests.
#[derive(Clone, Debug)]
pub(super) struct ClientRates {
    subscribers: Rates,
    total: Rates,
}

impl ClientRates {
    pub(super) fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            subscribers: Rates::new(settings.rate, BUCKETS, seed),
            total: Rates::new(settings.total_rate, 1, seed),
        }
    }

    /// Takes a token of a subscriber, and one of the common rate. A subscriber over its own rate takes none of the common rate.
    pub(super) fn admit(&mut self, subscriber: IpAddr, now: Instant) -> Result<(), Ignored> {
        if !self.subscribers.admit(subscriber, now) {
            return Err(Ignored::Rate);
        }
        if !self.total.admit((), now) {
            return Err(Ignored::TotalRate);
        }
        Ok(())
    }

    /// Takes further tokens of a subscriber, as many as there are: its request was as much work as that number of requests.
    pub(super) fn charge(&mut self, subscriber: IpAddr, tokens: u32, now: Instant) {
        for _ in 0..tokens {
            if !self.subscribers.admit(subscriber, now) {
                break;
            }
        }
    }
}
