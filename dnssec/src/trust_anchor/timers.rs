//! When the keys are asked for (RFC 5011 §2.3), and how long they wait (§2.4). All in seconds.

const HOUR: u64 = 3_600;
pub(super) const DAY: u64 = 86_400;

/// RFC 5011 §2.4.1: the add hold-down time is at least so long.
pub(super) const ADD_HOLD_DOWN: u64 = 30 * DAY;

/// RFC 5011 §2.4.2.
pub(super) const REMOVE_HOLD_DOWN: u64 = 30 * DAY;

/// RFC 5011 §2.3: the longest interval between queries.
pub(super) const LONGEST_REFRESH: u64 = 15 * DAY;

/// What the last verified keys said of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetimes {
    /// The original TTL of the DNSKEY RRset.
    pub(super) ttl: u64,
    /// From the reply to the end of its signature.
    pub(super) expire: u64,
}

/// RFC 5011 §2.3: queryInterval.
pub(super) fn refresh(of: Lifetimes) -> u64 {
    (of.ttl / 2).min(of.expire / 2).clamp(HOUR, LONGEST_REFRESH)
}

/// RFC 5011 §2.3: retryTime; an hour if no keys have been verified yet.
pub(super) fn retry(of: Option<Lifetimes>) -> u64 {
    of.map_or(HOUR, |of| (of.ttl / 10).min(of.expire / 10).clamp(HOUR, DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ttl: u64, expire: u64) -> Lifetimes {
        Lifetimes { ttl, expire }
    }

    #[test]
    fn keys_are_queried_at_half_their_ttl_or_expiration_within_an_hour_and_fifteen_days() {
        assert_eq!(refresh(of(2 * DAY, 14 * DAY)), DAY);
        assert_eq!(refresh(of(20 * DAY, 14 * DAY)), 7 * DAY);
        assert_eq!(refresh(of(60 * DAY, 60 * DAY)), 15 * DAY);
        assert_eq!(refresh(of(60, 14 * DAY)), HOUR);
    }

    #[test]
    fn after_a_failure_it_is_a_tenth_within_an_hour_and_a_day() {
        assert_eq!(retry(Some(of(2 * DAY, 14 * DAY))), 2 * DAY / 10);
        assert_eq!(retry(Some(of(20 * DAY, 5 * DAY))), DAY / 2);
        assert_eq!(retry(Some(of(60 * DAY, 60 * DAY))), DAY);
        assert_eq!(retry(Some(of(60, 60))), HOUR);
        assert_eq!(retry(None), HOUR);
    }
}
