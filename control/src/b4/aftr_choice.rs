//! The one AFTR in use of those that a name leads to (RFC 6334 §5): a B4 has one tunnel at a time.
//!
//! The address in use stays as long as the DNS returns it. Another one follows only after it is given up: packets went into the tunnel for
//! [`GIVEN_UP_AFTER`], [`SENT`] of them at least, and none came out, not even answers to echo requests (RFC 6333 §6.5), which are sent each second
//! for the last [`ASKED_FOR`]: what a site sends may have no answers. Each AFTR has other bindings, so sessions end by that. If none of
//! the others answers either, the time doubles with each change, up to [`LONGEST`].

use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_dataplane::Instant;

/// How long an AFTR may be silent while packets are sent to it.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);

/// Packets that must have been sent meanwhile.
const SENT: u64 = 8;

/// For how long the AFTR is asked before it is given up.
const ASKED_FOR: Duration = Duration::from_secs(3);

/// The longest time after several changes.
const LONGEST: Duration = Duration::from_secs(600);

/// Addresses that are used of an answer.
const MOST: usize = 16;

/// What follows from the packets of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Nothing.
    Nothing,
    /// The AFTR in use is to be sent an echo request, whose reply counts as received.
    Ask,
    /// Another address is in use.
    GivenUp,
}

/// Packets that were sent and not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    since: Instant,
    last: Instant,
    sent: u64,
    /// An echo request was to be sent since the last time: one of the packets that are seen the next time.
    asked: bool,
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

    /// The packets that went into the tunnel and came out of it since the last time, in seconds.
    pub fn observe(&mut self, now: Instant, sent: u64, received: u64) -> Observed {
        if received > 0 {
            (self.silent, self.given_up) = (None, 0);
            return Observed::Nothing;
        }
        let was_asked = self.silent.as_mut().is_some_and(|silent| core::mem::take(&mut silent.asked));
        let sent = sent.saturating_sub(was_asked.into());
        if sent == 0 {
            return Observed::Nothing;
        }
        // After a pause, the next packets count on their own.
        let before = self.silent.filter(|silent| now.since(silent.last) < GIVEN_UP_AFTER);
        let Silence { since, sent: before, .. } =
            before.unwrap_or(Silence { since: now, last: now, sent: 0, asked: false });
        let (all, silent_for) = (before.saturating_add(sent), now.since(since));
        let is_over = all >= SENT && silent_for >= self.patience();
        let asked = self.candidates.len() >= 2 && silent_for + ASKED_FOR >= self.patience() && !is_over;
        self.silent = Some(Silence { since, last: now, sent: all, asked });
        if asked {
            return Observed::Ask;
        }
        if self.candidates.len() < 2 || !is_over {
            return Observed::Nothing;
        }
        let at = self.candidates.iter().position(|one| Some(*one) == self.current);
        let next = at.map_or(0, |at| (at + 1) % self.candidates.len());
        self.current = self.candidates.get(next).copied();
        self.silent = None;
        self.given_up = self.given_up.saturating_add(1);
        Observed::GivenUp
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
        let mut asked = 0;
        let mut is_given_up = |at: &u64| {
            let observed = choice.observe(second(*at), each + asked, 0);
            asked = u64::from(observed == Observed::Ask);
            observed == Observed::GivenUp
        };
        (0..seconds).filter(|at| is_given_up(at)).collect()
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
        assert_eq!(choice.observe(second(0), 7, 0), Observed::Nothing);
        assert!((10..900).step_by(10).all(|at| choice.observe(second(at), 7, 0) == Observed::Nothing));
        // An answer each nine seconds.
        for at in 1_000..2_000 {
            assert_ne!(choice.observe(second(at), 5, u64::from(at % 9 == 0)), Observed::GivenUp);
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
        assert!((10_001..10_013).any(|at| choice.observe(second(at), 2, 0) == Observed::GivenUp));
    }

    #[test]
    fn an_aftr_that_answers_echo_requests_stays_whatever_the_site_sends_without_answers() {
        let mut choice = AftrChoice::default();
        choice.set(&A);
        let (mut asked, mut requests) = (0, 0);
        for at in 0..1_000 {
            let observed = choice.observe(second(at), 5 + asked, asked);
            asked = u64::from(observed == Observed::Ask);
            requests += asked;
            assert_ne!(observed, Observed::GivenUp, "{at}");
        }
        assert_eq!(choice.current(), Some(A[0]));
        assert!((90..=130).contains(&requests), "{requests} in 1,000 s");
    }

    #[test]
    fn an_aftr_is_asked_before_it_is_given_up_and_only_while_the_site_sends() {
        let mut choice = AftrChoice::default();
        choice.set(&A);
        let observed: Vec<Observed> =
            (0..11).map(|at| choice.observe(second(at), if at < 8 { 1 } else { 2 }, 0)).collect();
        assert_eq!(observed[..7], [Observed::Nothing; 7]);
        assert_eq!(observed[7..], [Observed::Ask, Observed::Ask, Observed::Ask, Observed::GivenUp]);
        // Its own requests are no traffic.
        let mut idle = AftrChoice::default();
        idle.set(&A);
        let last = (0..8).map(|at| idle.observe(second(at), 5, 0)).last();
        assert_eq!(last, Some(Observed::Ask));
        assert_eq!(idle.observe(second(8), 1, 0), Observed::Nothing);
        assert_eq!(idle.observe(second(16), 0, 0), Observed::Nothing);
        let mut alone = AftrChoice::default();
        alone.set(&A[..1]);
        assert!((0..100).all(|at| alone.observe(second(at), 5, 0) == Observed::Nothing), "there is no other");
    }
}
