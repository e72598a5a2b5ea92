//! The sessions of protocols without ports, found from inside and from outside.
//!
//! The table is bounded, for all hosts and for each subscriber. When it is full a new session is refused; live ones are never evicted. A
//! session ends when no packet came for its lifetime.

use super::first_answer::FirstAnswers;
use super::protocol::{Id, PortlessProtocol};
use super::received_ids::ReceivedIds;
use super::tuple::{Seen, Sent};
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::nat::{Inside, NatEvent, Outside, PortlessEvent, SubscriberCounts};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

/// Sessions that are examined to make room, or to find the one that an ICMP error is about.
const EXAMINED: usize = 32;

/// The lowest address, where a range begins.
const FIRST: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) inside: Ipv4Addr,
    pub(super) seen: Seen,
    /// The id of what goes out.
    sent: Id,
    /// The ids of what comes in, as far as they are known.
    received: ReceivedIds,
    /// The field of its first packet that a log shows instead of ports.
    shown: Option<u32>,
    made: Instant,
    pub(super) last: Instant,
    /// When it is examined next.
    due: Instant,
    /// By [`Direction`].
    pub(super) packets: [u64; 2],
    pub(super) octets: [u64; 2],
}

impl Session {
    fn event(&self) -> PortlessEvent {
        let Seen { outside, remote, protocol } = self.seen;
        PortlessEvent {
            protocol: protocol.number(),
            inside: Inside(self.inside),
            outside: Outside(outside),
            remote,
            id: self.shown,
        }
    }
}

/// The table.
pub(super) struct Table {
    sessions: Vec<Option<Session>>,
    free: Vec<u32>,
    most: u32,
    lifetime: Duration,
    subscribers: SubscriberCounts<Ipv4Addr>,
    by_sent: BTreeMap<Sent, u32>,
    by_received: BTreeMap<(Seen, Id), u32>,
    by_seen: BTreeSet<(Seen, Ipv4Addr, u32)>,
    /// Sessions whose inbound ids are not known; of those that are seen alike only one.
    waiting: FirstAnswers,
    due: BTreeSet<(Instant, u32)>,
    /// Events, for a log; `None`: there is no log.
    events: Option<Vec<NatEvent>>,
}

impl Table {
    /// For `most` sessions, `most_of_each` for each subscriber (0: no limit), which has a prefix of `bits`.
    pub(super) fn new(
        (most, most_of_each): (u32, u32),
        bits: u8,
        lifetime: Duration,
        seed: [u64; 2],
    ) -> Self {
        Self {
            sessions: Vec::new(),
            free: Vec::new(),
            most,
            lifetime,
            subscribers: SubscriberCounts::new(bits, most_of_each, most, seed),
            by_sent: BTreeMap::new(),
            by_received: BTreeMap::new(),
            by_seen: BTreeSet::new(),
            waiting: FirstAnswers::default(),
            due: BTreeSet::new(),
            events: None,
        }
    }

    /// Keeps events from now on, until they are taken.
    pub(super) fn keep_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<NatEvent> {
        self.events.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Whether events wait.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        self.events.as_ref().is_some_and(|events| !events.is_empty())
    }

    /// Live sessions, those included that are overdue and not examined yet.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        (self.sessions.len() - self.free.len()) as u32
    }

    /// Maximum number of sessions.
    pub(super) const fn most(&self) -> u32 {
        self.most
    }

    /// How long sessions live without packets.
    pub(super) const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Slots that were ever used: dumps run from zero to here.
    pub(super) fn slots(&self) -> u32 {
        self.sessions.len() as u32
    }

    /// The session in a slot, unless it has expired.
    pub(super) fn live(&self, slot: u32, now: Instant) -> Option<&Session> {
        let session = self.sessions.get(slot as usize)?.as_ref()?;
        (now.since(session.last) < self.lifetime).then_some(session)
    }

    /// The outside address of a session, by its packets from inside.
    pub(super) fn find_sent(&self, sent: &Sent, now: Instant) -> Option<(u32, Ipv4Addr)> {
        let slot = *self.by_sent.get(sent)?;
        self.live(slot, now).map(|session| (slot, session.seen.outside))
    }

    /// The session that a packet from outside belongs to, and its inside host: the one that has its id, or that waits for one; or any of the
    /// only host that sends to this remote host with this address.
    pub(super) fn find_received(&mut self, seen: Seen, id: Id, now: Instant) -> Option<(u32, Ipv4Addr)> {
        let of = |table: &Self, slot: u32| table.live(slot, now).map(|session| (slot, session.inside));
        let owner = self.by_received.get(&(seen, id)).copied();
        if !seen.protocol.learns() {
            let only = || self.only_host(seen, now).map(|(_, _, slot)| slot);
            return of(self, owner.or_else(only)?);
        }
        if let Some(slot) = owner.filter(|slot| self.is_owner(*slot, id, now)) {
            self.received_again(slot, id, now);
            return of(self, slot);
        }
        let waiting = self.waiting.waiting(seen).filter(|slot| self.live(*slot, now).is_some());
        let slot = waiting.or_else(|| self.only_host(seen, now).map(|(_, _, slot)| slot)).or(owner)?;
        let found = of(self, slot)?;
        self.learn(slot, id, now);
        Some(found)
    }

    /// Whether packets with an id are certainly those of a session.
    fn is_owner(&self, slot: u32, id: Id, now: Instant) -> bool {
        self.live(slot, now).is_some_and(|session| session.received.holds(id, now))
    }

    /// A packet with an id that was learnt: its session no longer waits if its host has sent in between.
    fn received_again(&mut self, slot: u32, id: Id, now: Instant) {
        let Some(session) = self.session_mut(slot) else { return };
        let (seen, is_confirmed) = (session.seen, session.received.again(id, now));
        if is_confirmed {
            self.waiting.stop(seen, slot);
        }
    }

    /// Packets with an id belong to a session from now on.
    fn learn(&mut self, slot: u32, id: Id, now: Instant) {
        let Some(session) = self.session_mut(slot) else { return };
        let (seen, replaced) = (session.seen, session.received.learn(id, now));
        if let Some(replaced) = replaced {
            remove(&mut self.by_received, &(seen, replaced), slot);
        }
        let before = self.by_received.insert((seen, id), slot).filter(|before| *before != slot);
        if let Some(before) = before.and_then(|before| self.session_mut(before)) {
            before.received.forget(id);
        }
        self.waiting.answered(seen, slot);
    }

    /// The newest session of the only host with live sessions that are seen so. `None`: there are several such hosts, or none.
    fn only_host(&self, seen: Seen, now: Instant) -> Option<(Seen, Ipv4Addr, u32)> {
        let is_live = |entry: &&(Seen, Ipv4Addr, u32)| self.live(entry.2, now).is_some();
        let first = self.seen_so(seen).take(EXAMINED).find(is_live)?;
        let last = self.seen_so(seen).rev().take(EXAMINED).find(is_live)?;
        if first.1 != last.1 {
            return None;
        }
        let of_host = self.by_seen.range((seen, first.1, 0)..=(seen, first.1, u32::MAX));
        let made = |entry: &&(Seen, Ipv4Addr, u32)| self.live(entry.2, now).map(|session| session.made);
        of_host.take(EXAMINED).max_by_key(made).copied()
    }

    fn seen_so(&self, seen: Seen) -> impl DoubleEndedIterator<Item = &(Seen, Ipv4Addr, u32)> + Clone {
        self.by_seen.range((seen, FIRST, 0)..=(seen, Ipv4Addr::BROADCAST, u32::MAX))
    }

    /// Whether any session is seen so.
    pub(super) fn has_seen(&self, seen: Seen) -> bool {
        self.seen_so(seen).next().is_some()
    }

    /// Whether a new session of a host may have this outside address: its inbound packets can be distinguished from those of other hosts.
    pub(super) fn may_be_seen(&self, inside: Ipv4Addr, seen: Seen, id: Id, now: Instant) -> bool {
        if !seen.protocol.learns() {
            return self.by_received.get(&(seen, id)).is_none_or(|slot| self.live(*slot, now).is_none());
        }
        self.waiting.may_wait(seen, inside, now)
    }

    /// Whether a host may have one more session.
    ///
    /// # Errors
    /// The table is full, or the host has its share.
    pub(super) fn may_begin(&self, inside: Ipv4Addr) -> Result<(), DropReason> {
        if !self.subscribers.may_have_more(inside) {
            return Err(DropReason::SubscriberLimit);
        }
        if self.len() >= self.most { Err(DropReason::SessionTableFull) } else { Ok(()) }
    }

    /// Makes a session, which may be seen so, and of which a log shows `shown`.
    ///
    /// # Errors
    /// The table is full, or the host has its share.
    pub(super) fn insert(
        &mut self,
        sent: Sent,
        seen: Seen,
        shown: Option<u32>,
        now: Instant,
    ) -> Result<u32, DropReason> {
        self.may_begin(sent.inside)?;
        let due = now + self.lifetime;
        let session = Session {
            inside: sent.inside,
            seen,
            sent: sent.id,
            received: ReceivedIds::default(),
            shown,
            made: now,
            last: now,
            due,
            packets: [0; 2],
            octets: [0; 2],
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.sessions.push(None);
                self.sessions.len() as u32 - 1
            }
        };
        if let Some(events) = &mut self.events {
            events.push(NatEvent::PortlessCreated(session.event()));
        }
        self.sessions[slot as usize] = Some(session);
        self.by_sent.insert(sent, slot);
        self.by_seen.insert((seen, sent.inside, slot));
        if seen.protocol.learns() {
            self.waiting.wait(seen, sent.inside, slot, now);
        } else {
            self.by_received.insert((seen, sent.id), slot);
        }
        self.due.insert((due, slot));
        self.subscribers.has_more(sent.inside);
        Ok(slot)
    }

    /// A packet of a session.
    pub(super) fn count(
        &mut self,
        slot: u32,
        direction: Direction,
        (segments, octets): (u32, u32),
        now: Instant,
    ) {
        let Some(session) = self.session_mut(slot) else { return };
        if direction == Direction::Out && session.seen.protocol.learns() {
            session.received.sent();
        }
        session.last = session.last.max(now);
        session.packets[direction as usize] += u64::from(segments);
        session.octets[direction as usize] += u64::from(octets);
    }

    /// A session sends whose inbound ids are not confirmed: it waits for the answers that no other host waits for.
    pub(super) fn wait_again(&mut self, slot: u32, now: Instant) {
        let Some(Session { inside, seen, received, .. }) =
            self.sessions.get(slot as usize).and_then(Option::as_ref)
        else {
            return;
        };
        if seen.protocol.learns() && !received.is_confirmed() {
            self.waiting.wait_again(*seen, *inside, slot, now);
        }
    }

    fn session_mut(&mut self, slot: u32) -> Option<&mut Session> {
        self.sessions.get_mut(slot as usize)?.as_mut()
    }

    /// The inside host that an ICMP error from outside is for: it quotes a packet with this id, if that can be read.
    pub(super) fn find_quoted(&self, seen: Seen, id: Option<Id>, now: Instant) -> Option<Ipv4Addr> {
        let of = |slot: u32| self.live(slot, now).map(|session| session.inside);
        if let Some((_, _, slot)) = self.only_host(seen, now) {
            return of(slot);
        }
        let sent = |slot: u32| self.sessions[slot as usize].as_ref().map(|session| session.sent);
        let mut all = self.seen_so(seen).take(EXAMINED);
        all.find(|(_, _, slot)| id.is_some() && sent(*slot) == id).and_then(|(_, _, slot)| of(*slot))
    }

    /// A session between these two.
    pub(super) fn find_between(
        &self,
        inside: Ipv4Addr,
        remote: Ipv4Addr,
        protocol: PortlessProtocol,
        now: Instant,
    ) -> Option<(u32, Ipv4Addr)> {
        let mut live = self
            .between(inside, remote, protocol)
            .take(EXAMINED)
            .filter_map(|slot| Some((slot, self.live(slot, now)?)));
        live.next().map(|(slot, session)| (slot, session.seen.outside))
    }

    fn between(
        &self,
        inside: Ipv4Addr,
        remote: Ipv4Addr,
        protocol: PortlessProtocol,
    ) -> impl Iterator<Item = u32> {
        let first = Sent { inside, remote, protocol, id: Id::NONE };
        let these =
            self.by_sent.range(first..).take_while(move |(sent, _)| Sent { id: Id::NONE, ..**sent } == first);
        these.map(|(_, slot)| *slot)
    }

    /// Ends the sessions between these two, a bounded number of them; how many ended.
    pub(super) fn end_between(
        &mut self,
        inside: Ipv4Addr,
        remote: Ipv4Addr,
        protocol: PortlessProtocol,
    ) -> u64 {
        let these: Vec<u32> = self.between(inside, remote, protocol).take(EXAMINED).collect();
        these.iter().for_each(|slot| self.end(*slot));
        these.len() as u64
    }

    /// Ends what is overdue, examining at most `budget` sessions; how many ended.
    pub(super) fn expire(&mut self, now: Instant, budget: usize) -> u64 {
        let mut ended = 0;
        for _ in 0..budget {
            let Some((due, slot)) = self.due.first().copied().filter(|(due, _)| *due <= now) else { break };
            if self.live(slot, now).is_none() {
                self.end(slot);
                ended += 1;
                continue;
            }
            self.due.remove(&(due, slot));
            let lifetime = self.lifetime;
            if let Some(session) = self.session_mut(slot) {
                session.due = session.last + lifetime;
                let due = session.due;
                self.due.insert((due, slot));
            }
        }
        ended
    }

    /// The same for a packet that needs room.
    pub(super) fn make_room(&mut self, now: Instant) -> u64 {
        self.expire(now, EXAMINED)
    }

    /// Ends a session.
    pub(super) fn end(&mut self, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot as usize).and_then(Option::take) else { return };
        let Session { inside, seen, sent: id, ref received, due, .. } = session;
        if let Some(events) = &mut self.events {
            events.push(NatEvent::PortlessDeleted(session.event()));
        }
        // A session that was overdue may have a successor in an index.
        let sent = Sent { inside, remote: seen.remote, protocol: seen.protocol, id };
        remove(&mut self.by_sent, &sent, slot);
        self.by_seen.remove(&(seen, inside, slot));
        if seen.protocol.learns() {
            received.ids().for_each(|id| remove(&mut self.by_received, &(seen, id), slot));
            self.waiting.stop(seen, slot);
            if !self.has_seen(seen) {
                self.waiting.forget(seen);
            }
        } else {
            remove(&mut self.by_received, &(seen, id), slot);
        }
        self.due.remove(&(due, slot));
        self.subscribers.has_fewer(inside);
        self.free.push(slot);
    }
}

/// Removes a key if it leads to this slot.
fn remove<K: Ord>(index: &mut BTreeMap<K, u32>, key: &K, slot: u32) {
    if index.get(key) == Some(&slot) {
        index.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Seen = Seen {
        outside: Ipv4Addr::new(192, 0, 2, 1),
        remote: Ipv4Addr::new(203, 0, 113, 1),
        protocol: PortlessProtocol::Esp,
    };

    fn sent(host: u8, id: u32) -> Sent {
        let Seen { remote, protocol, .. } = SEEN;
        Sent { inside: Ipv4Addr::new(10, 0, 0, host), remote, protocol, id: Id::of(id) }
    }

    #[test]
    fn what_ends_leaves_nothing_behind_and_nobody_waits_for_it() {
        let mut table = Table::new((8, 0), 32, Duration::from_secs(120), [1, 2]);
        let (now, seen) = (Instant(0), SEEN);
        let one = table.insert(sent(1, 1), seen, None, now).unwrap();
        for id in 101..=106 {
            assert_eq!(table.find_received(seen, Id::of(id), now).map(|found| found.0), Some(one));
        }
        assert_eq!(table.by_received.len(), 4, "what is forgotten is not found");
        let two = table.insert(sent(2, 2), seen, None, now).unwrap();
        assert_eq!(table.waiting.waiting(seen), Some(two));
        assert_eq!(table.find_received(seen, Id::of(200), now).map(|found| found.0), Some(two));
        table.end(two);
        assert_eq!(table.waiting.waiting(seen), None);
        table.end(one);
        assert!(table.by_received.is_empty() && table.by_sent.is_empty() && table.by_seen.is_empty());
        assert!(table.due.is_empty() && !table.waiting.knows(seen));
    }
}
