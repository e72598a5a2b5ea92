//! The ids (SPIs) of inbound packets of a session. A packet from outside does not identify its inside host, and its source may be forged,
//! so an id is learnt on trial: it is confirmed when a packet with it comes after the host has sent again. One that is not confirmed is
//! given up to another waiting host after [`TRIAL`] without packets.

use super::protocol::Id;
use crate::instant::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;

/// Ids of a session: the remote host may change its id at any time, and ids may be forged.
const MOST: usize = 4;

/// How long an id that is not confirmed is held without packets.
const TRIAL: Duration = Duration::from_secs(10);

/// An id of what comes in.
#[derive(Clone, Copy, Debug)]
struct Received {
    id: Id,
    last: Instant,
    /// Whether the host has sent since.
    is_followed: bool,
    is_confirmed: bool,
}

/// Those of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedIds(ArrayVec<Received, MOST>);

impl ReceivedIds {
    /// All of them.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.0.iter().map(|received| received.id)
    }

    /// Whether any is confirmed.
    pub(super) fn is_confirmed(&self) -> bool {
        self.0.iter().any(|received| received.is_confirmed)
    }

    /// Whether packets with an id certainly belong to the session.
    pub(super) fn holds(&self, id: Id, now: Instant) -> bool {
        let mut these = self.0.iter().filter(|received| received.id == id);
        these.any(|received| received.is_confirmed || now.since(received.last) < TRIAL)
    }

    /// A packet with an id came again; whether it is confirmed.
    pub(super) fn again(&mut self, id: Id, now: Instant) -> bool {
        let Some(received) = self.0.iter_mut().find(|received| received.id == id) else { return false };
        received.last = now;
        received.is_confirmed |= received.is_followed;
        received.is_confirmed
    }

    /// The host has sent.
    pub(super) fn sent(&mut self) {
        self.0.iter_mut().for_each(|received| received.is_followed = true);
    }

    /// A packet with a new id came. One may be replaced: of those that are not confirmed, else of all, the one whose last packet is
    /// the longest ago.
    pub(super) fn learn(&mut self, id: Id, now: Instant) -> Option<Id> {
        self.forget(id);
        let replaced = if self.0.is_full() {
            let oldest = self.0.iter().enumerate().min_by_key(|(_, it)| (it.is_confirmed, it.last));
            oldest.map(|(at, _)| at).and_then(|at| self.0.pop_at(at)).map(|received| received.id)
        } else {
            None
        };
        self.0.push(Received { id, last: now, is_followed: false, is_confirmed: false });
        replaced
    }

    /// An id is another session's.
    pub(super) fn forget(&mut self, id: Id) {
        self.0.retain(|received| received.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn an_id_is_confirmed_when_it_comes_again_after_the_host_has_sent() {
        let mut ids = ReceivedIds::default();
        ids.sent();
        assert_eq!(ids.learn(Id::of(1), at(0)), None);
        assert!(!ids.again(Id::of(1), at(1)) && !ids.is_confirmed());
        assert!(
            ids.holds(Id::of(1), at(10)) && !ids.holds(Id::of(1), at(11)) && !ids.holds(Id::of(2), at(1))
        );
        ids.sent();
        assert!(!ids.is_confirmed(), "not by what the host sends alone");
        assert!(ids.again(Id::of(1), at(20)) && ids.is_confirmed());
        assert!(ids.holds(Id::of(1), at(10_000)));
        assert!(!ids.again(Id::of(2), at(20)));
    }

    #[test]
    fn the_oldest_that_is_not_confirmed_is_replaced() {
        let mut ids = ReceivedIds::default();
        ids.learn(Id::of(1), at(0));
        ids.sent();
        ids.again(Id::of(1), at(0));
        for id in [2, 3, 4] {
            assert_eq!(ids.learn(Id::of(id), at(id.into())), None);
        }
        ids.again(Id::of(2), at(5));
        assert_eq!(ids.learn(Id::of(5), at(6)), Some(Id::of(3)));
        assert_eq!(ids.ids().collect::<Vec<_>>(), [1, 2, 4, 5].map(Id::of));
        assert_eq!(ids.learn(Id::of(5), at(7)), None, "it has it already");
        for id in [2, 4, 5] {
            ids.sent();
            ids.again(Id::of(id), at(8));
        }
        assert_eq!(ids.learn(Id::of(6), at(9)), Some(Id::of(1)));
    }
}
