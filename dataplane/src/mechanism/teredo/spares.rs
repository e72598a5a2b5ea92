//! Spare UDP ports of a client behind a symmetric NAT (RFC 6081 §5.4, §5.5). Each is for one peer: its first datagram to that peer makes a mapping whose
//! number can be predicted.
//!
//! ```text
//!     fresh ──a peer is asked──▶ in use ──the peer is forgotten──▶ spent: control opens another one
//!       ▲                          │
//!       └── nothing was sent ──────┘
//! ```
//!
//! Peers that contact this host first get at most half of them, and one for each IPv4 address. If none is left, a peer is contacted without a prediction.

use super::config::{PortRule, Prediction};
use super::peers::Place;
use super::peers::{Stamp, stamp};
use super::row::SpareRow;
use super::shares::OWN;
use crate::instant::Instant;
use alloc::vec::Vec;
use core::time::Duration;
use sixway_wire::Endpoint4;

/// RFC 6081 §5.5.2.2: a test is repeated once.
const TRIES: u8 = 2;
/// RFC 6081 §5.4.2.1: bubbles that keep the mapping of a peer to which no data are sent.
const REFRESHES: u8 = 20;
/// Other hosts behind the same NAT may have mappings between the two of a test. With more than this number, the one in the middle cannot be predicted.
const FARTHEST: u16 = 64;

/// A test that determines the mapping of the first datagram to a peer (RFC 6081 §5.5.4.1.1).
#[derive(Clone, Copy, Debug)]
struct Test {
    /// The nonces are computed from it.
    began: Stamp,
    tries: u8,
    due: Instant,
    /// The mapped ports that the server's two addresses saw.
    seen: [Option<u16>; 2],
}

/// A port.
#[derive(Clone, Debug)]
struct Spare {
    port: u16,
    user: Option<Place>,
    /// The sender whose contact it was reserved for.
    creator: u16,
    /// Whether something was sent from it, so that the NAT has a mapping for it.
    is_known: bool,
    /// The port outside, as predicted.
    outside: Option<u16>,
    test: Option<Test>,
    refreshes: u8,
}

/// The next step of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestStep {
    /// Send its packets.
    Send(Stamp),
    /// Continue without a prediction.
    GiveUp,
}

/// All of these ports.
#[derive(Debug, Default)]
pub(super) struct Spares {
    rule: Option<PortRule>,
    all: Vec<Spare>,
}

impl Spares {
    /// Updates the list of open ports. Returns the users of those that were closed.
    pub(super) fn set(&mut self, prediction: &Prediction) -> Vec<Place> {
        self.rule = prediction.rule;
        let (kept, gone): (Vec<_>, Vec<_>) =
            self.all.drain(..).partition(|spare| prediction.ports.contains(&spare.port));
        self.all = kept;
        for port in &prediction.ports {
            if self.all.iter().all(|spare| spare.port != *port) {
                self.all.push(Spare::fresh(*port));
            }
        }
        gone.into_iter().filter_map(|spare| spare.user).collect()
    }

    /// How the NAT assigns mapped ports; `None`: no prediction is needed.
    pub(super) const fn rule(&self) -> Option<PortRule> {
        self.rule
    }

    /// All of their numbers.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> {
        self.all.iter().map(|spare| spare.port)
    }

    /// The peer that a port is for.
    pub(super) fn user(&self, port: u16) -> Option<Place> {
        self.all.iter().find(|spare| spare.port == port).and_then(|spare| spare.user)
    }

    fn of(&mut self, place: Place) -> Option<&mut Spare> {
        self.all.iter_mut().find(|spare| spare.user == Some(place))
    }

    /// The port of a peer.
    pub(super) fn port_of(&self, place: Place) -> Option<u16> {
        self.all.iter().find(|spare| spare.user == Some(place)).map(|spare| spare.port)
    }

    /// The port that the NAT is predicted to map it to.
    pub(super) fn outside(&self, place: Place) -> Option<u16> {
        self.all.iter().find(|spare| spare.user == Some(place))?.outside
    }

    /// Gives a port to a peer that has none. Whether it has one then.
    pub(super) fn assign(&mut self, place: Place, creator: u16) -> bool {
        let Some(rule) = self.rule else { return false };
        if let Some(spare) = self.of(place) {
            // A contact of this host itself does not count for an unknown sender.
            spare.creator = if creator == OWN { OWN } else { spare.creator };
            return true;
        }
        // Used ones count, too: an unknown sender that used them up waits until they are replaced.
        let of_strangers = |spare: &&Spare| spare.creator != OWN;
        if creator != OWN {
            let taken = self.all.iter().filter(of_strangers).count();
            let has_one = self.all.iter().any(|spare| spare.creator == creator);
            if has_one || taken >= self.all.len() / 2 {
                return false;
            }
        }
        let Some(spare) = self.all.iter_mut().find(|spare| spare.is_free()) else { return false };
        let outside = (rule == PortRule::Preserved).then_some(spare.port);
        (spare.user, spare.creator, spare.outside) = (Some(place), creator, outside);
        true
    }

    /// Something is sent from a peer's port.
    pub(super) fn sends(&mut self, place: Place) {
        if let Some(spare) = self.of(place) {
            spare.is_known = true;
        }
    }

    /// A peer does not need its port.
    pub(super) fn release(&mut self, place: Place) {
        let Some(spare) = self.of(place) else { return };
        spare.user = None;
        if !spare.is_known {
            *spare = Spare::fresh(spare.port);
        }
    }

    /// Whether a peer's first bubble waits for a test that is running or begins now.
    pub(super) fn tests(&mut self, place: Place, now: Instant) -> bool {
        let Some(PortRule::Sequential { .. }) = self.rule else { return false };
        let Some(spare) = self.of(place) else { return false };
        match &spare.test {
            None => spare.test = Some(Test { began: stamp(now), tries: 0, due: now, seen: [None; 2] }),
            Some(test) if spare.outside.is_some() || test.is_over() => return false,
            Some(_) => {}
        }
        true
    }

    /// Whether a peer's test is running or about to begin: nothing else is sent from its port until it has ended.
    pub(super) fn awaits(&self, place: Place) -> bool {
        let of = self.all.iter().find(|spare| spare.user == Some(place));
        matches!(self.rule, Some(PortRule::Sequential { .. }))
            && of.is_some_and(|spare| {
                spare.outside.is_none() && spare.test.as_ref().is_none_or(|test| !test.is_over())
            })
    }

    /// A peer whose test has something to do.
    pub(super) fn due(&self, now: Instant) -> Option<Place> {
        let is_due = |test: &Test| !test.is_over() && test.due <= now;
        let due = self.all.iter().filter(|spare| spare.outside.is_none());
        due.filter(|spare| spare.test.as_ref().is_some_and(is_due)).find_map(|spare| spare.user)
    }

    /// What a test that is due does.
    pub(super) fn step(&mut self, place: Place, now: Instant) -> Option<TestStep> {
        let test = self.of(place)?.test.as_mut()?;
        test.tries += 1;
        if test.is_over() {
            return Some(TestStep::GiveUp);
        }
        test.due = now + Duration::from_secs(test.tries.into());
        Some(TestStep::Send(test.began))
    }

    /// When a peer's test began.
    pub(super) fn began(&mut self, place: Place) -> Option<Stamp> {
        self.of(place)?.test.as_ref().map(|test| test.began)
    }

    /// One of the server's two addresses saw this mapped port. Whether the test is finished now.
    pub(super) fn saw(&mut self, place: Place, address: usize, port: u16) -> bool {
        let Some(spare) = self.of(place) else { return false };
        let Some(test) = spare.test.as_mut().filter(|test| !test.is_over()) else { return false };
        let Some(seen) = test.seen.get_mut(address).filter(|seen| seen.is_none()) else { return false };
        *seen = Some(port);
        let [Some(first), Some(last)] = test.seen else { return false };
        spare.outside = between(first, last);
        test.tries = TRIES + 1;
        true
    }

    /// Whether a peer at its port, to which no data were sent for 30 s, is to get a bubble that keeps the mapping.
    pub(super) fn refreshes(&mut self, place: Place, was_sent: bool) -> bool {
        let Some(spare) = self.of(place) else { return false };
        spare.refreshes = if was_sent { 0 } else { spare.refreshes.saturating_add(1) };
        !was_sent && spare.refreshes <= REFRESHES
    }

    /// Their state for control.
    pub(super) fn row(&self) -> SpareRow {
        let in_use = self.all.iter().filter(|spare| spare.user.is_some()).count();
        let spent = self.all.iter().find(|spare| spare.user.is_none() && spare.is_known);
        SpareRow { open: self.all.len() as u32, in_use: in_use as u32, spent: spent.map(|spare| spare.port) }
    }
}

impl Spare {
    const fn fresh(port: u16) -> Self {
        let (user, outside, test) = (None, None, None);
        Self { port, user, creator: OWN, is_known: false, outside, test, refreshes: 0 }
    }

    const fn is_free(&self) -> bool {
        self.user.is_none() && !self.is_known
    }
}

impl Test {
    const fn is_over(&self) -> bool {
        self.tries > TRIES
    }
}

/// The mapped port between two (RFC 6081 §5.5.4.4: their average, rounded down). NATs count upwards or downwards.
fn between(first: u16, last: u16) -> Option<u16> {
    let apart = last.wrapping_sub(first);
    let (low, apart) = if apart > FARTHEST { (last, first.wrapping_sub(last)) } else { (first, apart) };
    (apart <= FARTHEST).then(|| low.wrapping_add(apart / 2)).filter(|port| *port != 0)
}

/// The local endpoint of this client at another port.
pub(super) const fn at_port(local: Endpoint4, port: u16) -> Endpoint4 {
    Endpoint4::new(local.address, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(9);

    fn spares(rule: PortRule) -> Spares {
        let mut spares = Spares::default();
        assert!(spares.set(&Prediction { rule: Some(rule), ports: (1..=4).collect() }).is_empty());
        spares
    }

    #[test]
    fn the_port_in_the_middle_is_predicted_and_none_of_two_that_are_far_apart() {
        assert_eq!(between(1_200, 1_202), Some(1_201));
        assert_eq!(between(1_202, 1_200), Some(1_201));
        assert_eq!(between(1_200, 1_205), Some(1_202));
        assert_eq!(between(65_535, 1_026), None);
        assert_eq!(between(20_000, 20_065), None);
        assert_eq!(between(20_000, 60_000), None);
    }

    #[test]
    fn a_port_that_nothing_was_sent_from_is_used_again_and_another_one_is_spent() {
        let mut spares = spares(PortRule::Preserved);
        assert!(spares.assign(7, OWN));
        assert_eq!((spares.port_of(7), spares.outside(7), spares.user(1)), (Some(1), Some(1), Some(7)));
        spares.release(7);
        assert_eq!((spares.port_of(7), spares.row().spent), (None, None));
        assert!(spares.assign(8, OWN));
        spares.sends(8);
        spares.release(8);
        assert_eq!((spares.user(1), spares.row().spent), (None, Some(1)));
        assert!(spares.assign(9, OWN) && spares.port_of(9) == Some(2));
    }

    #[test]
    fn strangers_take_half_of_the_ports_at_most_and_one_for_each_of_them() {
        let mut spares = spares(PortRule::Preserved);
        assert!(spares.assign(1, 5) && !spares.assign(2, 5));
        assert!(spares.assign(3, 6) && !spares.assign(4, 7));
        spares.sends(1);
        spares.release(1);
        assert!(!spares.assign(4, 7), "a spent one counts");
        assert!(spares.assign(5, OWN) && spares.assign(6, OWN) && !spares.assign(7, OWN));
        // Control opened another one in its place.
        let others = spares.ports().map(|port| if port == 1 { 11 } else { port }).collect();
        assert!(spares.set(&Prediction { rule: Some(PortRule::Preserved), ports: others }).is_empty());
        assert!(spares.assign(4, 7));
    }

    #[test]
    fn a_port_that_is_gone_names_its_user() {
        let mut spares = spares(PortRule::Preserved);
        assert!(spares.assign(1, OWN) && spares.assign(2, OWN));
        assert_eq!(spares.set(&Prediction { rule: None, ports: vec![2, 3] }), [1]);
        assert_eq!((spares.user(2), spares.row().open), (Some(2), 2));
        assert!(!spares.assign(3, OWN), "no prediction is needed");
    }

    /// RFC 6081 §5.5.2.2.
    #[test]
    fn a_test_is_repeated_after_one_second_and_given_up_two_seconds_later() {
        let secondary = core::net::Ipv4Addr::new(198, 51, 100, 2);
        let mut spares = spares(PortRule::Sequential { secondary });
        assert!(spares.assign(1, OWN) && spares.outside(1).is_none());
        assert!(spares.tests(1, NOW) && spares.due(NOW) == Some(1));
        assert!(matches!(spares.step(1, NOW), Some(TestStep::Send(_))));
        assert!(spares.tests(1, NOW) && spares.due(NOW + Duration::from_millis(900)).is_none());
        let later = NOW + Duration::from_secs(1);
        assert_eq!(spares.due(later), Some(1));
        assert!(matches!(spares.step(1, later), Some(TestStep::Send(_))));
        let last = later + Duration::from_secs(2);
        assert_eq!((spares.due(later), spares.due(last)), (None, Some(1)));
        assert_eq!(spares.step(1, last), Some(TestStep::GiveUp));
        assert!(!spares.tests(1, last) && spares.due(last).is_none());
        assert!(!spares.saw(1, 0, 1_200), "it is too late");
    }

    #[test]
    fn both_answers_of_a_test_are_needed_and_each_counts_once() {
        let secondary = core::net::Ipv4Addr::new(198, 51, 100, 2);
        let mut spares = spares(PortRule::Sequential { secondary });
        assert!(spares.assign(1, OWN) && spares.tests(1, NOW));
        let _ = spares.step(1, NOW);
        assert!(!spares.saw(1, 0, 1_200) && !spares.saw(1, 0, 9_999));
        assert!(spares.saw(1, 1, 1_202));
        assert_eq!(spares.outside(1), Some(1_201));
        assert!(!spares.tests(1, NOW));
    }
}
