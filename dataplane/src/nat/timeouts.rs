//! How long sessions live without packets (RFC 6146 §4), and time as they measure it.
//!
//! Sessions count whole seconds. The second a timer starts is rounded up and the second it is examined is rounded down, so
//! a session never lives shorter than its lifetime, and less than two seconds longer.

use super::protocol::NatProtocol;
use super::session_state::SessionState;
use crate::instant::Instant;
use core::fmt;
use core::ops::RangeInclusive;
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
/// RFC 6888 REQ-8, 120 s, for which a port is not given to another binding.
pub const QUARANTINE: Duration = Duration::from_secs(120);

/// The least lifetime of a TCP session that is not open yet, by choice: RFC 7857 §2.1 allows less than [`TCP_TRANS`]. A lost SYN is sent again
/// after 1, 3 and 7 s.
pub const TCP_OPENING_MIN: Duration = Duration::from_secs(10);
/// The least lifetime of UDP sessions with well-known ports, by choice: RFC 4787 REQ-5 a allows less than [`UDP_MIN`] there.
pub const UDP_WELL_KNOWN_MIN: Duration = Duration::from_secs(10);

/// A lifetime of sessions with certain remote ports (RFC 4787 REQ-5 a).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortTimeout {
    /// TCP: its established sessions; or UDP.
    pub protocol: NatProtocol,
    /// The remote ports.
    pub ports: RangeInclusive<u16>,
    /// The lifetime; at least [`PortTimeout::least`].
    pub timeout: Duration,
}

impl PortTimeout {
    /// The least that is allowed for such ports, and the clause that says so.
    pub fn least(protocol: NatProtocol, ports: &RangeInclusive<u16>) -> (Duration, &'static str) {
        match protocol {
            NatProtocol::Tcp => (TCP_EST, "RFC 5382 REQ-5"),
            NatProtocol::Icmp => (ICMP_DEFAULT, "RFC 5508 REQ-2"),
            NatProtocol::Udp if *ports.end() < 1_024 => {
                (UDP_WELL_KNOWN_MIN, "the floor for well-known ports, RFC 4787 REQ-5 a")
            }
            NatProtocol::Udp => (UDP_MIN, "RFC 4787 REQ-5 for ports from 1024 on"),
        }
    }
}

/// The lifetimes of sessions. The defaults are the RFC's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// UDP sessions; at least [`UDP_MIN`].
    pub udp: Duration,
    /// ICMP Query sessions; at least [`ICMP_DEFAULT`].
    pub icmp: Duration,
    /// Established TCP sessions, until they become transitory; at least [`TCP_EST`].
    pub tcp_est: Duration,
    /// TCP sessions that are not open yet; at least [`TCP_OPENING_MIN`].
    pub tcp_opening: Duration,
    /// TCP sessions that close, were reset or do not answer; at least [`TCP_TRANS`].
    pub tcp_closing: Duration,
    /// How long an inbound SYN is stored; at least [`TCP_INCOMING_SYN`].
    pub tcp_incoming_syn: Duration,
    /// How long a UDP port or ICMP identifier is not another subscriber's after its binding has ended; zero: given immediately.
    pub quarantine: Duration,
    /// Other lifetimes for certain remote ports; the first that fits.
    pub ports: Vec<PortTimeout>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            udp: UDP_DEFAULT,
            icmp: ICMP_DEFAULT,
            tcp_est: TCP_EST,
            tcp_opening: TCP_TRANS,
            tcp_closing: TCP_TRANS,
            tcp_incoming_syn: TCP_INCOMING_SYN,
            quarantine: QUARANTINE,
            ports: Vec::new(),
        }
    }
}

/// A lifetime shorter than the RFCs allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutTooShort {
    /// Which: the name of the field of [`Timeouts`].
    pub name: &'static str,
    /// The request.
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
            ("tcp_opening", self.tcp_opening, TCP_OPENING_MIN, "a SYN that is lost is sent again"),
            ("tcp_closing", self.tcp_closing, TCP_TRANS, "RFC 5382 REQ-5, TCP_TRANS"),
            ("tcp_incoming_syn", self.tcp_incoming_syn, TCP_INCOMING_SYN, "RFC 5382 REQ-4, TCP_INCOMING_SYN"),
        ]
        .into_iter()
        .filter(|(_, given, least, _)| given < least)
        .map(|(name, given, least, clause)| TimeoutTooShort { name, given, least, clause })
    }

    /// The seconds of a quarantine, rounded up.
    pub(super) fn quarantine_seconds(&self) -> u32 {
        whole_seconds(self.quarantine)
    }

    /// The lifetime of each state, in whole seconds, those that are too short raised to the least allowed.
    pub(crate) fn lifetimes(&self) -> Lifetimes {
        let seconds = |given: Duration, least: Duration| whole_seconds(given.max(least));
        let est = seconds(self.tcp_est, TCP_EST);
        let opening = seconds(self.tcp_opening, TCP_OPENING_MIN);
        let closing = seconds(self.tcp_closing, TCP_TRANS);
        let plain = SessionState::ALL.map(|state| match state {
            SessionState::Free => 0,
            SessionState::Udp | SessionState::UdpUnanswered => seconds(self.udp, UDP_MIN),
            SessionState::Icmp | SessionState::IcmpUnanswered => seconds(self.icmp, ICMP_DEFAULT),
            SessionState::OutsideInitStored => seconds(self.tcp_incoming_syn, TCP_INCOMING_SYN),
            SessionState::OutsideInit | SessionState::InsideInit => opening,
            SessionState::Established | SessionState::FinFromOutside | SessionState::FinFromInside => est,
            SessionState::FinFromBoth | SessionState::Trans => closing,
        });
        let of_ports = self.ports.iter().map(|port| {
            let (least, _) = PortTimeout::least(port.protocol, &port.ports);
            let seconds = seconds(port.timeout, least);
            PortLifetime { protocol: port.protocol, ports: port.ports.clone(), seconds }
        });
        Lifetimes::new(plain, of_ports.collect())
    }
}

/// The longest lifetime, 34 years: beyond it, seconds would overflow.
const MOST_SECONDS: u32 = 1 << 30;

/// In whole seconds, rounded up.
fn whole_seconds(time: Duration) -> u32 {
    let whole = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(whole).unwrap_or(u32::MAX).min(MOST_SECONDS)
}

/// The lifetime of sessions with certain remote ports.
#[derive(Clone, Debug)]
struct PortLifetime {
    protocol: NatProtocol,
    ports: RangeInclusive<u16>,
    seconds: u32,
}

/// Seconds that a session lives, by state, and by remote port.
#[derive(Clone, Debug)]
pub(crate) struct Lifetimes {
    plain: [u32; SessionState::ALL.len()],
    /// The least that any session in this state lives.
    least: [u32; SessionState::ALL.len()],
    ports: Box<[PortLifetime]>,
}

impl Lifetimes {
    fn new(plain: [u32; SessionState::ALL.len()], ports: Box<[PortLifetime]>) -> Self {
        let mut lifetimes = Self { plain, least: plain, ports };
        lifetimes.least = SessionState::ALL.map(|state| {
            let of_ports = lifetimes.ports.iter().filter(|port| state.has_port_timeout(port.protocol));
            of_ports.map(|port| port.seconds).fold(lifetimes.plain[state as usize], u32::min)
        });
        lifetimes
    }

    /// The least that a session in this state lives, whatever its remote port.
    #[inline]
    pub(crate) const fn least(&self, state: SessionState) -> u32 {
        self.least[state as usize]
    }

    /// The lifetime of a session with this remote port in this state.
    pub(crate) fn of(&self, state: SessionState, remote_port: u16) -> u32 {
        let is_it =
            |port: &&PortLifetime| state.has_port_timeout(port.protocol) && port.ports.contains(&remote_port);
        self.ports.iter().find(is_it).map_or(self.plain[state as usize], |port| port.seconds)
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
    /// The first instant.
    #[cfg(test)]
    pub const START: Self = Self::at(Instant(0));

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
        let of = |state| lifetimes.of(state, 80);
        assert_eq!((of(SessionState::Udp), of(SessionState::Icmp)), (300, 60));
        assert_eq!(of(SessionState::Established) + of(SessionState::Trans), 7_440);
        assert_eq!((of(SessionState::InsideInit), of(SessionState::OutsideInitStored)), (240, 6));
    }

    #[test]
    fn a_lifetime_that_is_too_short_is_named_and_raised_to_its_floor() {
        let second = Duration::from_secs(1);
        let timeouts = Timeouts {
            udp: second,
            icmp: second,
            tcp_est: second,
            tcp_opening: second,
            tcp_closing: second,
            tcp_incoming_syn: second,
            quarantine: Duration::ZERO,
            ports: Vec::new(),
        };
        let names: Vec<_> = timeouts.too_short().map(|fault| fault.name).collect();
        assert_eq!(names, ["udp", "icmp", "tcp_est", "tcp_opening", "tcp_closing", "tcp_incoming_syn"]);
        assert_eq!(timeouts.lifetimes().of(SessionState::Udp, 80), 120);
        let fault = timeouts.too_short().next().unwrap();
        assert_eq!(fault.to_string(), "1 s is too short; at least 120 s (RFC 6146 §3.5.1, UDP_MIN)");
    }

    #[test]
    fn a_remote_port_may_have_a_lifetime_of_its_own_and_the_first_row_that_fits_holds() {
        let port =
            |protocol, ports, seconds| PortTimeout { protocol, ports, timeout: Duration::from_secs(seconds) };
        let timeouts = Timeouts {
            ports: vec![
                port(NatProtocol::Udp, 53..=53, 20),
                port(NatProtocol::Udp, 0..=1_023, 1),
                port(NatProtocol::Udp, 1_000..=2_000, 1),
                port(NatProtocol::Tcp, 22..=22, 100_000),
            ],
            tcp_opening: Duration::from_secs(30),
            ..Timeouts::default()
        };
        let lifetimes = timeouts.lifetimes();
        use SessionState::{Established, FinFromInside, InsideInit, Trans, Udp, UdpUnanswered};
        let udp = [53, 54, 1_023, 1_500, 2_001].map(|port| lifetimes.of(Udp, port));
        assert_eq!(udp, [20, 10, 10, 120, 300], "with the floors for well-known and for other ports");
        assert_eq!((lifetimes.of(UdpUnanswered, 53), lifetimes.least(Udp)), (20, 10));
        let tcp = [Established, FinFromInside, InsideInit, Trans].map(|state| lifetimes.of(state, 22));
        assert_eq!(tcp, [100_000, 100_000, 30, 240]);
        assert_eq!((lifetimes.of(Established, 53), lifetimes.least(Established)), (7_200, 7_200));
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
