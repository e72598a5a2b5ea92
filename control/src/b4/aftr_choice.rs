//! Selection among the AFTRs of a name (RFC 6334 §5): a B4 has one tunnel at a time.
//!
//! The address in use stays as long as the DNS returns it. It is given up only if at least [`SENT`] packets entered the tunnel within
//! [`GIVEN_UP_AFTER`] and none came out, not even answers to echo requests (RFC 6333 §6.5). These are sent every second for the last
//! [`ASKED_FOR`], since a site's own packets may have no answers. Another AFTR has other bindings, so sessions end by the change. If none of
//! the others answers either, the time doubles with each change, up to [`LONGEST`].
//!
//! If there is no other address, or none of them answers, this is reported to the operator, and the AFTR gets an echo request every
//! [`GIVEN_UP_AFTER`] until it answers.

use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_dataplane::Instant;

/// How long an AFTR may be silent while packets are sent to it.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);

/// Packets that must have been sent meanwhile.
const SENT: u64 = 8;

/// For how long the AFTR gets echo requests before it is given up.
const ASKED_FOR: Duration = Duration::from_secs(3);

/// The longest time after several changes.
const LONGEST: Duration = Duration::from_secs(600);

/// The most addresses of a DNS answer that are used.
const MOST: usize = 16;

/// The result of the packets of a second.
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
}

/// An AFTR that does not answer, without another one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unanswered {
    since: Instant,
    sent: u64,
    /// When it got the last echo request.
    asked: Instant,
}

/// The choice of a B4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AftrChoice {
    candidates: Vec<Ipv6Addr>,
    current: Option<Ipv6Addr>,
    /// How long nothing has come back.
    silent: Option<Silence>,
    /// An echo request was to be sent since the last time: one of the packets that are seen the next time.
    asked: bool,
    unanswered: Option<Unanswered>,
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

    /// The name has these addresses. If the list is empty, the previous ones stay: a fault of the DNS must not disconnect the customer.
    pub fn set(&mut self, addresses: &[Ipv6Addr]) {
        if addresses.is_empty() {
            return;
        }
        self.candidates = addresses[..addresses.len().min(MOST)].to_vec();
        if !self.current.is_some_and(|current| self.candidates.contains(&current)) {
            self.current = self.candidates.first().copied();
            (self.silent, self.given_up, self.unanswered) = (None, 0, None);
        }
    }

    /// Since when the AFTR in use, without another that answers, has been silent, and the packets that were sent to it.
    pub fn unanswered(&self) -> Option<(Instant, u64)> {
        self.unanswered.map(|it| (it.since, it.sent))
    }

    /// The packets that went into the tunnel and came out of it since the last time, in seconds.
    pub fn observe(&mut self, now: Instant, sent: u64, received: u64) -> Observed {
        let was_asked = core::mem::take(&mut self.asked);
        if received > 0 {
            (self.silent, self.given_up, self.unanswered) = (None, 0, None);
            return Observed::Nothing;
        }
        let sent = sent.saturating_sub(was_asked.into());
        if sent == 0 || self.candidates.is_empty() {
            return self.ask_again(now);
        }
        // After a pause, the next packets count on their own.
        let before = self.silent.filter(|silent| now.since(silent.last) < GIVEN_UP_AFTER);
        let Silence { since, sent: before, .. } =
            before.unwrap_or(Silence { since: now, last: now, sent: 0 });
        let (all, silent_for) = (before.saturating_add(sent), now.since(since));
        self.silent = Some(Silence { since, last: now, sent: all });
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.sent = unanswered.sent.saturating_add(sent);
        }
        let is_over = all >= SENT && silent_for >= self.patience();
        let has_others = self.candidates.len() >= 2;
        match is_over {
            false
                if silent_for + ASKED_FOR >= self.patience() && (has_others || self.unanswered.is_none()) =>
            {
                self.asked = true;
                return Observed::Ask;
            }
            false => return self.ask_again(now),
            true => {}
        }
        let tried = usize::try_from(self.given_up).unwrap_or(usize::MAX).saturating_add(1);
        if tried >= self.candidates.len() && self.unanswered.is_none() {
            self.unanswered = Some(Unanswered { since, sent: all, asked: now });
        }
        if !has_others {
            return self.ask_again(now);
        }
        let at = self.candidates.iter().position(|one| Some(*one) == self.current);
        let next = at.map_or(0, |at| (at + 1) % self.candidates.len());
        self.current = self.candidates.get(next).copied();
        self.silent = None;
        self.given_up = self.given_up.saturating_add(1);
        Observed::GivenUp
    }

    /// An AFTR that is known not to answer gets an echo request regularly, whether or not other packets are sent to it.
    fn ask_again(&mut self, now: Instant) -> Observed {
        match &mut self.unanswered {
            Some(it) if now.since(it.asked) >= GIVEN_UP_AFTER => {
                it.asked = now;
                self.asked = true;
                Observed::Ask
            }
            Some(_) | None => Observed::Nothing,
        }
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
    fn of_an_answer_with_many_addresses_the_first_are_used() {
        let addresses: Vec<Ipv6Addr> = (1..100).map(Ipv6Addr::from_bits).collect();
        let mut choice = AftrChoice::default();
        choice.set(&addresses);
        assert_eq!(choice.candidates(), &addresses[..MOST]);
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
        // Too few packets to decide, and packets with pauses.
        assert_eq!(choice.observe(second(0), 7, 0), Observed::Nothing);
        assert!((10..900).step_by(10).all(|at| choice.observe(second(at), 7, 0) == Observed::Nothing));
        // An answer every nine seconds.
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
        // Its own echo requests do not count as traffic.
        let mut idle = AftrChoice::default();
        idle.set(&A);
        let last = (0..8).map(|at| idle.observe(second(at), 5, 0)).last();
        assert_eq!(last, Some(Observed::Ask));
        assert_eq!(idle.observe(second(8), 1, 0), Observed::Nothing);
        assert_eq!(idle.observe(second(16), 0, 0), Observed::Nothing);
    }

    #[test]
    fn an_aftr_without_another_is_known_to_be_silent_and_asked_until_it_answers() {
        let mut alone = AftrChoice::default();
        alone.set(&A[..1]);
        let mut observed = Vec::new();
        for at in 0..11 {
            let asked = u64::from(observed.last() == Some(&Observed::Ask));
            observed.push(alone.observe(second(at), 5 + asked, 0));
            assert_eq!(alone.unanswered().is_some(), at == 10, "{at}");
        }
        assert_eq!(observed[..7], [Observed::Nothing; 7]);
        assert_eq!(observed[7..], [Observed::Ask, Observed::Ask, Observed::Ask, Observed::Nothing]);
        assert_eq!(alone.unanswered(), Some((second(0), 55)));
        // Nothing is sent to it, and it comes back.
        let asked: Vec<u64> =
            (11..42).filter(|at| alone.observe(second(*at), 0, 0) == Observed::Ask).collect();
        assert_eq!(asked, [20, 30, 40]);
        assert_eq!(alone.observe(second(42), 1, 1), Observed::Nothing);
        assert_eq!(alone.unanswered(), None);
        // With little traffic there is no decision.
        let few = (100..400).step_by(2).map(|at| alone.observe(second(at), u64::from(at % 20 == 0), 0));
        assert!(few.into_iter().all(|it| it == Observed::Nothing));
        assert_eq!(alone.unanswered(), None);
    }

    #[test]
    fn if_none_of_several_answers_that_is_known_after_the_last_of_them() {
        let mut choice = AftrChoice::default();
        choice.set(&A);
        assert_eq!(changes(&mut choice, 1, 72), [10, 31]);
        assert_eq!(choice.unanswered(), None, "the third is tried");
        assert_eq!(choice.observe(second(72), 2, 0), Observed::GivenUp);
        assert!(choice.unanswered().is_some());
        choice.set(&[A[2]]);
        choice.set(&[Ipv6Addr::LOCALHOST]);
        assert_eq!(choice.unanswered(), None, "another one, which nobody has tried");
    }
}
