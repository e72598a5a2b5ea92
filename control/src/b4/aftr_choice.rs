//! The one AFTR in use of those that a name leads to (RFC 6334 §5): a B4 has one tunnel at a time.
//!
//! The address in use stays as long as the DNS returns it. Another one follows only after it is given up: packets went into the tunnel for
//! [`GIVEN_UP_AFTER`], [`SENT`] of them at least, and none came out. Each AFTR has other bindings, so sessions end by that. If none of the
//! others answers either, the time doubles with each change, up to [`LONGEST`].

use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_dataplane::Instant;

/// How long an AFTR may be silent while packets are sent to it.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);

/// Packets that must have been sent meanwhile.
const SENT: u64 = 8;

/// The longest time after several changes.
const LONGEST: Duration = Duration::from_secs(600);

/// Addresses that are used of an answer.
const MOST: usize = 16;

/// Packets that were sent and not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    since: Instant,
    last: Instant,
    sent: u64,
}

/// The choice of a B4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AftrChoice {
    candidates: Vec<Ipv6Addr>,
    current: Option<Ipv6Addr>,
    /// How long nothing came back.
    silent: Option<Silence>,
    /// Changes since the last packet that came back.
    given_up: u32,
}

impl AftrChoice {
    /// The address in use.
    pub const fn current(&self) -> Option<Ipv6Addr> {
        self.current
    }

    /// Those that may be used, in the order of the answer.
    pub fn candidates(&self) -> &[Ipv6Addr] {
        &self.candidates
    }

    /// The name leads to these addresses. Without any, those before stay: a fault of the DNS must not cut the customer off.
    pub fn set(&mut self, addresses: &[Ipv6Addr]) {
        if addresses.is_empty() {
            return;
        }
        self.candidates = addresses[..addresses.len().min(MOST)].to_vec();
        if !self.current.is_some_and(|current| self.candidates.contains(&current)) {
            self.current = self.candidates.first().copied();
            (self.silent, self.given_up) = (None, 0);
        }
    }

    /// The packets that went into the tunnel and came out of it since the last time. Whether another address is in use by that.
    pub fn observe(&mut self, now: Instant, sent: u64, received: u64) -> bool {
        if received > 0 {
            (self.silent, self.given_up) = (None, 0);
            return false;
        }
        if sent == 0 {
            return false;
        }
        // After a pause, the next packets count on their own.
        let before = self.silent.filter(|silent| now.since(silent.last) < GIVEN_UP_AFTER);
        let Silence { since, sent: before, .. } =
            before.unwrap_or(Silence { since: now, last: now, sent: 0 });
        let all = before.saturating_add(sent);
        self.silent = Some(Silence { since, last: now, sent: all });
        if self.candidates.len() < 2 || all < SENT || now.since(since) < self.patience() {
            return false;
        }
        let at = self.candidates.iter().position(|one| Some(*one) == self.current);
        let next = at.map_or(0, |at| (at + 1) % self.candidates.len());
        self.current = self.candidates.get(next).copied();
        self.silent = None;
        self.given_up = self.given_up.saturating_add(1);
        true
    }

    fn patience(&self) -> Duration {
        GIVEN_UP_AFTER.saturating_mul(1 << self.given_up.min(6)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [Ipv6Addr; 3] = [
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3),
    ];

    fn second(seconds: u64) -> Instant {
        Instant::from_secs(100 + seconds)
    }

    /// Sends this many packets a second into silence; the seconds at which the address changed.
    fn changes(choice: &mut AftrChoice, each: u64, seconds: u64) -> Vec<u64> {
        (0..seconds).filter(|at| choice.observe(second(*at), each, 0)).collect()
    }

    #[test]
    fn the_address_in_use_stays_while_the_name_leads_to_it_in_whatever_order() {
        let mut choice = AftrChoice::default();
        assert_eq!(choice.current(), None);
        choice.set(&[A[0], A[1]]);
        choice.set(&[A[1], A[0]]);
        assert_eq!(choice.current(), Some(A[0]));
        choice.set(&[]);
        assert_eq!(choice.current(), Some(A[0]));
        choice.set(&[A[2], A[1]]);
        assert_eq!(choice.current(), Some(A[2]));
    }

    #[test]
    fn a_silent_aftr_is_given_up_after_ten_seconds_of_packets_and_each_next_one_after_twice_as_long() {
        let mut choice = AftrChoice::default();
        choice.set(&A);
        assert_eq!(changes(&mut choice, 1, 80), [10, 31, 72]);
        assert_eq!(choice.current(), Some(A[0]));
    }

    #[test]
    fn an_aftr_that_answers_or_is_not_used_stays() {
        let mut choice = AftrChoice::default();
        choice.set(&A);
        assert_eq!(changes(&mut choice, 0, 1_000), []);
        // Fewer packets than tell anything, and packets with pauses.
        assert!(!choice.observe(second(0), 7, 0));
        assert!((10..900).step_by(10).all(|at| !choice.observe(second(at), 7, 0)));
        // An answer each nine seconds.
        for at in 1_000..2_000 {
            assert!(!choice.observe(second(at), 5, u64::from(at % 9 == 0)));
        }
        assert_eq!(choice.current(), Some(A[0]));
    }

    #[test]
    fn a_single_address_stays_in_use_whatever_happens() {
        let mut choice = AftrChoice::default();
        choice.set(&A[..1]);
        assert_eq!(changes(&mut choice, 100, 10_000), []);
        assert_eq!(choice.current(), Some(A[0]));
    }

    #[test]
    fn an_answer_makes_the_time_short_again_and_it_never_exceeds_ten_minutes() {
        let mut choice = AftrChoice::default();
        choice.set(&A);
        let at = changes(&mut choice, 1, 10_000);
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= 601), "{at:?}");
        choice.observe(second(10_000), 1, 1);
        assert!((10_001..10_013).any(|at| choice.observe(second(at), 1, 0)));
    }
}
