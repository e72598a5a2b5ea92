//! How long sessions live without packets (RFC 6146 §4), and time as they measure it.
//!
//! Sessions count whole seconds. The second a timer starts is rounded up and the second it is looked at is rounded down, so
//! a session never lives shorter than its lifetime, and less than two seconds longer.

use super::session_state::SessionState;
use crate::instant::Instant;
use core::fmt;
use core::time::Duration;

/// RFC 6146 §4: UDP_MIN, 2 min, the least lifetime of a UDP session.
pub const UDP_MIN: Duration = Duration::from_secs(2 * 60);
/// RFC 6146 §4: UDP_DEFAULT, 5 min.
pub const UDP_DEFAULT: Duration = Duration::from_secs(5 * 60);
/// RFC 6146 §4: TCP_TRANS, 4 min, the transitory connection idle timeout of RFC 5382.
pub const TCP_TRANS: Duration = Duration::from_secs(4 * 60);
/// RFC 6146 §4: TCP_EST, 2 h; with TCP_TRANS it makes the 2 h 4 min of RFC 5382 REQ-5.
pub const TCP_EST: Duration = Duration::from_secs(2 * 60 * 60);
/// RFC 6146 §4: TCP_INCOMING_SYN, 6 s (RFC 5382 REQ-4).
pub const TCP_INCOMING_SYN: Duration = Duration::from_secs(6);
/// RFC 6146 §4: FRAGMENT_MIN, 2 s, the least time that fragments wait for the rest of their packet.
pub const FRAGMENT_MIN: Duration = Duration::from_secs(2);
/// RFC 6146 §4: ICMP_DEFAULT, 60 s, which is also the least that RFC 5508 REQ-2 allows.
pub const ICMP_DEFAULT: Duration = Duration::from_secs(60);

/// The lifetimes of sessions. The defaults are the RFC's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// UDP sessions; at least [`UDP_MIN`].
    pub udp: Duration,
    /// ICMP Query sessions; at least [`ICMP_DEFAULT`].
    pub icmp: Duration,
    /// Established TCP sessions, until they become transitory; at least [`TCP_EST`].
    pub tcp_est: Duration,
    /// Transitory TCP sessions; at least [`TCP_TRANS`].
    pub tcp_trans: Duration,
    /// How long an inbound SYN is stored; at least [`TCP_INCOMING_SYN`].
    pub tcp_incoming_syn: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            udp: UDP_DEFAULT,
            icmp: ICMP_DEFAULT,
            tcp_est: TCP_EST,
            tcp_trans: TCP_TRANS,
            tcp_incoming_syn: TCP_INCOMING_SYN,
        }
    }
}

/// A lifetime shorter than the RFCs allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutTooShort {
    /// Which: the name of the field of [`Timeouts`].
    pub name: &'static str,
    /// What was asked for.
    pub given: Duration,
    /// What is allowed.
    pub least: Duration,
    /// The clause that says so.
    pub clause: &'static str,
}

impl fmt::Display for TimeoutTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} s is too short; at least {} s ({})",
            self.given.as_secs(),
            self.least.as_secs(),
            self.clause
        )
    }
}

impl Timeouts {
    /// Every lifetime that is shorter than allowed.
    pub fn too_short(&self) -> impl Iterator<Item = TimeoutTooShort> {
        [
            ("udp", self.udp, UDP_MIN, "RFC 6146 §3.5.1, UDP_MIN"),
            ("icmp", self.icmp, ICMP_DEFAULT, "RFC 5508 REQ-2"),
            ("tcp_est", self.tcp_est, TCP_EST, "RFC 6146 §3.5.2.2, TCP_EST"),
            ("tcp_trans", self.tcp_trans, TCP_TRANS, "RFC 5382 REQ-5, TCP_TRANS"),
            ("tcp_incoming_syn", self.tcp_incoming_syn, TCP_INCOMING_SYN, "RFC 5382 REQ-4, TCP_INCOMING_SYN"),
        ]
        .into_iter()
        .filter(|(_, given, least, _)| given < least)
        .map(|(name, given, least, clause)| TimeoutTooShort { name, given, least, clause })
    }

    /// The lifetime of each state, in whole seconds, those that are too short raised to the least allowed.
    pub(crate) fn lifetimes(&self) -> Lifetimes {
        let seconds = |given: Duration, least: Duration| {
            let lifetime = given.max(least);
            let whole = lifetime.as_secs() + u64::from(lifetime.subsec_nanos() > 0);
            u32::try_from(whole).unwrap_or(u32::MAX).min(MOST_SECONDS)
        };
        let (est, trans) = (seconds(self.tcp_est, TCP_EST), seconds(self.tcp_trans, TCP_TRANS));
        Lifetimes(SessionState::ALL.map(|state| match state {
            SessionState::Free => 0,
            SessionState::Udp => seconds(self.udp, UDP_MIN),
            SessionState::Icmp => seconds(self.icmp, ICMP_DEFAULT),
            SessionState::OutsideInitStored => seconds(self.tcp_incoming_syn, TCP_INCOMING_SYN),
            SessionState::OutsideInit | SessionState::InsideInit => trans,
            SessionState::Established | SessionState::FinFromOutside | SessionState::FinFromInside => est,
            SessionState::FinFromBoth | SessionState::Trans => trans,
        }))
    }
}

/// The longest lifetime, 34 years: beyond it, seconds would overflow.
const MOST_SECONDS: u32 = 1 << 30;

/// Seconds that a session lives, by state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetimes([u32; SessionState::ALL.len()]);

impl Lifetimes {
    #[inline]
    pub(crate) const fn of(&self, state: SessionState) -> u32 {
        self.0[state as usize]
    }
}

/// An instant in whole seconds, rounded both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    now: Instant,
    /// The second that has begun.
    pub floor: u32,
    /// The second that begins next, or the present one at its very start.
    pub ceil: u32,
}

impl Clock {
    /// The clock at this instant.
    pub const fn at(now: Instant) -> Self {
        let floor = now.as_secs();
        let ceil = floor + !now.0.is_multiple_of(1_000_000_000) as u64;
        Self { now, floor: floor as u32, ceil: ceil as u32 }
    }

    /// The instant itself.
    #[inline]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Advances to `now`; an earlier instant than the last one is ignored.
    #[inline]
    pub fn set(&mut self, now: Instant) {
        if now > self.now {
            *self = Self::at(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_rfcs_and_none_is_too_short() {
        let timeouts = Timeouts::default();
        assert_eq!(timeouts.too_short().count(), 0);
        let lifetimes = timeouts.lifetimes();
        assert_eq!(lifetimes.of(SessionState::Udp), 300);
        assert_eq!(lifetimes.of(SessionState::Icmp), 60);
        assert_eq!(lifetimes.of(SessionState::Established) + lifetimes.of(SessionState::Trans), 7_440);
        assert_eq!(lifetimes.of(SessionState::OutsideInitStored), 6);
    }

    #[test]
    fn a_lifetime_that_is_too_short_is_named_and_raised_to_its_floor() {
        let second = Duration::from_secs(1);
        let timeouts = Timeouts {
            udp: second,
            icmp: second,
            tcp_est: second,
            tcp_trans: second,
            tcp_incoming_syn: second,
        };
        let names: Vec<_> = timeouts.too_short().map(|fault| fault.name).collect();
        assert_eq!(names, ["udp", "icmp", "tcp_est", "tcp_trans", "tcp_incoming_syn"]);
        assert_eq!(timeouts.lifetimes().of(SessionState::Udp), 120);
        let fault = timeouts.too_short().next().unwrap();
        assert_eq!(fault.to_string(), "1 s is too short; at least 120 s (RFC 6146 §3.5.1, UDP_MIN)");
    }

    #[test]
    fn a_clock_rounds_both_ways_and_never_runs_backwards() {
        let mut clock = Clock::at(Instant(1_500_000_000));
        assert_eq!((clock.floor, clock.ceil), (1, 2));
        clock.set(Instant::from_secs(3));
        assert_eq!((clock.floor, clock.ceil), (3, 3));
        clock.set(Instant::from_secs(2));
        assert_eq!(clock.floor, 3);
    }
}
