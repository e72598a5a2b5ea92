//! The session table (RFC 6146 §3.2): one table for the three protocols, the protocol being part of the key.
//!
//! Each session has one cache line with all that a packet of an established flow reads and writes, and a colder record
//! with its place in lists. Two indexes lead to it: by inside endpoint and remote, and by outside endpoint and remote. The
//! table is bounded; when it is full new sessions are refused, and live ones are never evicted.

use super::growing_index::GrowingIndex;
use super::inside_key::{InsideKey, address_word};
use super::keyed::{Purpose, TupleHash};
use super::protocol::NatProtocol;
use super::session_links::SessionLinks;
use super::session_state::{Segment, SessionState, Timer, next_state};
use super::sides::{Inside, Outside};
use super::slab::{NONE, Slab};
use super::softwire::Softwire;
use super::timeouts::{Clock, Lifetimes};
use super::wheel::{MOST_SLOTS, Wheel};
use crate::direction::Direction;
use crate::instant::Instant;
use crate::nat::offload::Usage;
use sixway_wire::{Endpoint4, Endpoint6};

/// What a packet of the session reads and writes. It fills a cache line; with an IPv4 host, all but eight octets of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Session<I: InsideKey> {
    alignment: [I::Alignment; 0],
    pub(crate) inside: Inside<I>,
    pub(crate) outside: Outside<Endpoint4>,
    /// The remote endpoint; its port is 0 for ICMP.
    pub(crate) remote: Endpoint4,
    pub(crate) protocol: NatProtocol,
    pub(crate) state: SessionState,
    /// The second at which the lifetime last started.
    pub(crate) started: u32,
    /// The second of the last packet.
    pub(crate) last_packet: u32,
    /// Low halves of the packet counts, out and in.
    packets: [u32; 2],
    /// Octets out and in.
    octets: [u64; 2],
}

const _: () = assert!(size_of::<Session<Endpoint6>>() == 64 && align_of::<Session<Endpoint6>>() == 64);
const _: () = assert!(size_of::<Session<Softwire>>() == 64 && align_of::<Session<Softwire>>() == 64);
const _: () = assert!(size_of::<Session<Endpoint4>>() == 64 && align_of::<Session<Endpoint4>>() == 64);

impl<I: InsideKey> Session<I> {
    /// Whether its inside endpoint is known: a stored SYN whose outside endpoint no binding uses has none.
    pub(crate) fn has_inside(&self) -> bool {
        self.inside != Inside(I::UNSPECIFIED)
    }
}

/// One session of this many is reserved for inside hosts: sessions created from outside take at most the others. A host
/// outside can make sessions with one port of an inside host and as many of its own as it likes, so what it may take
/// is a matter of policy (RFC 6146 §3.5.1, §3.5.2.2: "if resources and policy permit"; §5.3).
pub const KEPT_FOR_INSIDE: u32 = 4;

/// The data of a new session.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewSession<I> {
    pub(super) inside: Option<Inside<I>>,
    pub(super) outside: Outside<Endpoint4>,
    pub(super) remote: Endpoint4,
    pub(super) protocol: NatProtocol,
    pub(super) state: SessionState,
    /// The direction of the packet that creates it.
    pub(super) opened: Direction,
}

/// The packets that [`SessionTable::count`] reports.
#[derive(Clone, Copy, Debug)]
struct Notable {
    /// One less than a power of two: packets by which a direction's count reaches that power or a later one.
    below: u32,
    /// All ones while any session moves to the fast path, so that every packet is.
    moving: u32,
}

impl Notable {
    /// Whether the highest bit that is set is another than before, and none of those below.
    #[inline(always)]
    const fn is_ripe(self, before: u32, packets: u32) -> bool {
        (before ^ packets) > (before | self.below)
    }
}

/// A session that was withdrawn is due again after at most this many times the packets after which it was due first, half of them new.
const MOST_TIMES: u32 = 8;

/// Of no packet.
const NONE_NOTABLE: Notable = Notable { below: u32::MAX, moving: 0 };

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct SessionTable<I: InsideKey> {
    hot: Slab<Session<I>>,
    links: Vec<SessionLinks>,
    by_inside: GrowingIndex,
    by_outside: GrowingIndex,
    hash_inside: TupleHash,
    hash_outside: TupleHash,
    wheel: Wheel,
    lifetimes: Lifetimes,
    notable: Notable,
    /// Sessions that packets from outside made and none from inside has answered, and the most of them.
    from_outside: u32,
    most_from_outside: u32,
    /// How often a session was put into an index.
    added: u64,
}

impl<I: InsideKey> SessionTable<I> {
    pub(super) fn new(most: u32, lifetimes: Lifetimes, seed: [u64; 2]) -> Self {
        let most = most.min(MOST_SLOTS);
        Self {
            hot: Slab::new(most),
            links: Vec::with_capacity(most as usize),
            by_inside: GrowingIndex::new(most),
            by_outside: GrowingIndex::new(most),
            hash_inside: TupleHash::new(seed, Purpose::SessionsOut),
            hash_outside: TupleHash::new(seed, Purpose::SessionsIn),
            wheel: Wheel::new(most),
            lifetimes,
            notable: NONE_NOTABLE,
            from_outside: 0,
            most_from_outside: most - most / KEPT_FOR_INSIDE,
            added: 0,
        }
    }

    /// The tag of an outbound tuple.
    #[inline]
    pub(crate) fn tag_inside(&self, inside: Inside<I>, remote: Endpoint4, protocol: NatProtocol) -> u32 {
        inside.0.session_tag(&self.hash_inside, remote, protocol)
    }

    /// The tag of an inbound tuple.
    #[inline]
    pub(crate) fn tag_outside(
        &self,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> u32 {
        let ports = u64::from(outside.0.port) << 16 | u64::from(remote.port);
        let addresses = address_word(outside.0.address) << 32 | address_word(remote.address);
        self.hash_outside.pair(addresses, ports << 8 | protocol as u64)
    }

    #[inline]
    pub(crate) fn touch_inside(&self, tag: u32) -> u64 {
        self.by_inside.touch(tag)
    }

    #[inline]
    pub(crate) fn touch_outside(&self, tag: u32) -> u64 {
        self.by_outside.touch(tag)
    }

    #[inline]
    pub(crate) fn candidate_inside(&self, tag: u32, touched: u64) -> Option<u32> {
        self.by_inside.candidate(tag, touched)
    }

    #[inline]
    pub(crate) fn candidate_outside(&self, tag: u32, touched: u64) -> Option<u32> {
        self.by_outside.candidate(tag, touched)
    }

    /// Puts the sessions that were inserted late into their places.
    pub(super) fn settle(&mut self) {
        self.by_outside.settle();
    }

    /// How often a session was put into an index: a lookup without a result stays valid as long as this is unchanged.
    #[inline]
    pub(crate) const fn added(&self) -> u64 {
        self.added
    }

    /// The session of an outbound tuple, if the slot holds it.
    #[inline]
    pub(crate) fn is_inside(
        &self,
        slot: u32,
        inside: Inside<I>,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> bool {
        self.hot.get(slot).is_some_and(|session| {
            session.inside == inside
                && session.remote == remote
                && session.protocol == protocol
                && session.state != SessionState::Free
        })
    }

    /// The session of an inbound tuple, if the slot holds it.
    #[inline]
    pub(crate) fn is_outside(
        &self,
        slot: u32,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> bool {
        self.hot.get(slot).is_some_and(|session| {
            session.outside == outside
                && session.remote == remote
                && session.protocol == protocol
                && session.state != SessionState::Free
        })
    }

    pub(crate) fn find_inside(
        &self,
        inside: Inside<I>,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> Option<u32> {
        let tag = self.tag_inside(inside, remote, protocol);
        self.by_inside.find(tag, |slot| self.is_inside(slot, inside, remote, protocol))
    }

    pub(crate) fn find_outside(
        &self,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> Option<u32> {
        let tag = self.tag_outside(outside, remote, protocol);
        self.by_outside.find(tag, |slot| self.is_outside(slot, outside, remote, protocol))
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Session<I> {
        &self.hot[slot]
    }

    pub(super) fn links(&self, slot: u32) -> &SessionLinks {
        &self.links[slot as usize]
    }

    pub(super) fn links_mut(&mut self, slot: u32) -> &mut SessionLinks {
        &mut self.links[slot as usize]
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.hot.len()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.hot.is_full()
    }

    /// Whether packets from outside have reached their limit of sessions.
    pub(crate) const fn is_full_for_outside(&self) -> bool {
        self.from_outside >= self.most_from_outside
    }

    /// Sessions that are left.
    pub(super) fn left(&self) -> u32 {
        self.hot.most() - self.hot.len()
    }

    /// Sessions that are left for packets from outside.
    pub(super) const fn left_for_outside(&self) -> u32 {
        self.most_from_outside.saturating_sub(self.from_outside)
    }

    /// Slots that were ever used: dumps run from zero to here.
    pub(crate) fn slots(&self) -> u32 {
        self.hot.slots()
    }

    /// The second in which the session's lifetime ends.
    #[inline]
    pub(crate) fn ends(&self, session: &Session<I>) -> u32 {
        session.started.saturating_add(self.lifetimes.of(session.state, session.remote.port))
    }

    /// The second in which the session is removed if no packet comes: an established one becomes transitory first.
    pub(crate) fn closes(&self, session: &Session<I>) -> u32 {
        session.started.saturating_add(self.longest(session.state, session.remote.port))
    }

    /// Seconds that a session lives from the start of its lifetime in this state, if no packet comes.
    pub(crate) fn longest(&self, state: SessionState, remote_port: u16) -> u32 {
        let lifetime = self.lifetimes.of(state, remote_port);
        if matches!(state, SessionState::Established) {
            return lifetime.saturating_add(self.lifetimes.of(SessionState::Trans, remote_port));
        }
        lifetime
    }

    /// Whether the lifetime has ended.
    #[inline]
    pub(crate) fn is_overdue(&self, slot: u32, clock: Clock) -> bool {
        let session = &self.hot[slot];
        clock.floor >= session.started.saturating_add(self.lifetimes.least(session.state))
            && self.is_past_its_end(slot, clock)
    }

    /// The same, by the lifetime that holds for the remote port.
    #[cold]
    #[inline(never)]
    fn is_past_its_end(&self, slot: u32, clock: Clock) -> bool {
        clock.floor >= self.ends(&self.hot[slot])
    }

    /// Packets out and in.
    pub(crate) fn packets(&self, slot: u32) -> [u64; 2] {
        let (low, rest) = (self.hot[slot].packets, self.links[slot as usize].packets());
        [0, 1].map(|direction| rest[direction].wrapping_add(u64::from(low[direction])))
    }

    /// Octets out and in.
    pub(crate) fn octets(&self, slot: u32) -> [u64; 2] {
        self.hot[slot].octets
    }

    /// Counts a packet. Whether it is one notable: its session may be moving to the fast path, or is ripe for it.
    #[inline]
    pub(crate) fn count(
        &mut self,
        slot: u32,
        direction: Direction,
        segments: u32,
        octets: u32,
        clock: Clock,
    ) -> bool {
        let session = &mut self.hot[slot];
        session.last_packet = clock.floor;
        session.octets[direction as usize] =
            session.octets[direction as usize].wrapping_add(u64::from(octets));
        let before = session.packets[direction as usize];
        let (packets, carry) = before.overflowing_add(segments);
        session.packets[direction as usize] = packets;
        if carry {
            self.links[slot as usize].add_packets(direction as usize, 1 << 32);
        }
        ((before ^ packets) | self.notable.moving) > (before | self.notable.below)
    }

    /// Whether a packet from outside has come to this engine since the session was made or restored: one that the fast path has forwarded does
    /// not count.
    pub(super) fn has_received(&self, slot: u32) -> bool {
        self.hot[slot].packets[Direction::In as usize] != 0
    }

    /// Whether these segments made the session due for the fast path in this direction.
    pub(super) fn is_ripe(&self, slot: u32, direction: Direction, segments: u32) -> bool {
        let packets = self.hot[slot].packets[direction as usize];
        self.notable.is_ripe(packets.wrapping_sub(segments), packets)
    }

    /// Which packets are notable: those by which a direction's count reaches `ripe`, rounded up to a power of two, or a later power
    /// of two. `None`: none.
    pub(super) fn note_ripe(&mut self, ripe: Option<u32>) {
        let below = |packets: u32| packets.clamp(1, 1 << 31).next_power_of_two() - 1;
        self.notable = Notable { below: ripe.map_or(u32::MAX, below), moving: 0 };
    }

    /// And, while any session moves, all others.
    pub(super) const fn note_moving(&mut self, is_any_moving: bool) {
        self.notable.moving = if is_any_moving { u32::MAX } else { 0 };
    }

    /// The session was withdrawn, or was not eligible when it was due. Those that it is due again after are bounded: resets, which anyone can
    /// forge, would double them each time without limit.
    pub(super) fn bound_wait(&mut self, slot: u32) {
        let most = self.notable.below.saturating_mul(MOST_TIMES).saturating_add(MOST_TIMES);
        if self.notable.below == NONE_NOTABLE.below {
            return;
        }
        let (session, links) = (&mut self.hot[slot], &mut self.links[slot as usize]);
        for (direction, counted) in session.packets.iter_mut().enumerate() {
            if *counted >= most {
                // The sum stays: what is taken off here is counted there.
                links.add_packets(direction, u64::from(*counted - most / 2));
                *counted = most / 2;
            }
        }
    }

    /// The session had a packet elsewhere.
    pub(super) fn lived(&mut self, slot: u32, last: Instant) {
        lived(&mut self.hot[slot], last);
    }

    /// Adds the session's traffic in the fast path. It does not make the session due for offloading.
    pub(super) fn absorb(&mut self, slot: u32, usage: &Usage) {
        let (session, links) = (&mut self.hot[slot], &mut self.links[slot as usize]);
        for (direction, half) in usage.iter().enumerate() {
            links.add_packets(direction, half.packets);
            session.octets[direction] = session.octets[direction].wrapping_add(half.octets);
            if let Some(last) = half.last {
                lived(session, last);
            }
        }
    }

    /// Makes a session what it was in another process: since when its lifetime runs, and its last packet.
    pub(super) fn resume(&mut self, slot: u32, started: u32, last_packet: u32) {
        let session = &mut self.hot[slot];
        (session.started, session.last_packet) = (started, last_packet);
        self.park_again(slot);
    }

    /// A packet of the session passes the state machine.
    #[inline]
    pub(crate) fn advance(&mut self, slot: u32, direction: Direction, segment: Segment, clock: Clock) {
        let session = &mut self.hot[slot];
        let (state, timer) = next_state(session.state, direction, segment);
        if state == session.state {
            if timer == Timer::Restart {
                session.started = clock.ceil;
            }
            return;
        }
        self.change(slot, state, timer, clock);
    }

    #[cold]
    fn change(&mut self, slot: u32, state: SessionState, timer: Timer, clock: Clock) {
        let ended = self.ends(&self.hot[slot]);
        let session = &mut self.hot[slot];
        session.state = state;
        if timer == Timer::Restart {
            session.started = clock.ceil;
        }
        // A longer lifetime is noticed when the wheel fires; a shorter one would be noticed too late.
        let ends = self.ends(&self.hot[slot]);
        if ends < ended {
            self.wheel.park(slot, ends);
        }
    }

    /// Puts the session into a state whose lifetime began at the second `started`.
    pub(super) fn set_state(&mut self, slot: u32, state: SessionState, started: u32) {
        let session = &mut self.hot[slot];
        (session.state, session.started) = (state, started);
        let ends = self.ends(&self.hot[slot]);
        self.wheel.park(slot, ends);
    }

    /// Has the slot loaded that a new session will take.
    #[inline]
    pub(super) fn touch_next(&self) {
        if let Some(slot) = self.hot.next_slot() {
            let links = self.links.get(slot as usize).map(|links| links.binding);
            core::hint::black_box((self.hot.get(slot).map(|session| session.started), links));
            core::hint::black_box(self.wheel.touch(slot));
        }
    }

    /// Adds a session whose lifetime starts at this clock; `None`: the table is full.
    pub(super) fn insert(&mut self, new: NewSession<I>, clock: Clock) -> Option<u32> {
        let session = Session {
            alignment: [],
            inside: new.inside.unwrap_or(Inside(I::UNSPECIFIED)),
            outside: new.outside,
            remote: new.remote,
            protocol: new.protocol,
            state: new.state,
            started: clock.ceil,
            last_packet: clock.floor,
            packets: [0; 2],
            octets: [0; 2],
        };
        let ends = self.ends(&session);
        let slot = self.hot.insert(session)?;
        self.added += 1;
        let from_outside = new.opened == Direction::In;
        self.from_outside += u32::from(from_outside);
        let links = SessionLinks::new(from_outside);
        match self.links.get_mut(slot as usize) {
            Some(old) => *old = links,
            None => self.links.push(links),
        }
        if let Some(inside) = new.inside {
            self.by_inside.insert(self.tag_inside(inside, new.remote, new.protocol), slot);
        }
        self.by_outside.insert_late(self.tag_outside(new.outside, new.remote, new.protocol), slot);
        self.wheel.enter(slot, ends);
        Some(slot)
    }

    /// Sets the inside endpoint of a session without one, for a packet from inside.
    pub(super) fn set_inside(&mut self, slot: u32, inside: Inside<I>) {
        self.forget_outside(slot);
        self.hot[slot].inside = inside;
        self.added += 1;
        let Session { remote, protocol, .. } = self.hot[slot];
        self.by_inside.insert(self.tag_inside(inside, remote, protocol), slot);
    }

    /// The inside endpoint of a session with a stored SYN is not known any more.
    pub(super) fn forget_inside(&mut self, slot: u32) {
        let Session { inside, remote, protocol, .. } = self.hot[slot];
        self.by_inside.remove(self.tag_inside(inside, remote, protocol), slot);
        self.hot[slot].inside = Inside(I::UNSPECIFIED);
        self.links[slot as usize].binding = NONE;
    }

    /// The session is no longer one of those that packets from outside made; whether it was.
    pub(super) fn forget_outside(&mut self, slot: u32) -> bool {
        let was_from_outside = std::mem::take(&mut self.links[slot as usize].from_outside);
        self.from_outside -= u32::from(was_from_outside);
        was_from_outside
    }

    /// Takes a session out and returns what it was.
    pub(super) fn remove(&mut self, slot: u32) -> Session<I> {
        self.forget_outside(slot);
        let session = self.hot[slot];
        if session.has_inside() {
            self.by_inside.remove(self.tag_inside(session.inside, session.remote, session.protocol), slot);
        }
        self.by_outside.remove(self.tag_outside(session.outside, session.remote, session.protocol), slot);
        self.wheel.unpark(slot);
        self.hot[slot].state = SessionState::Free;
        self.hot.release(slot);
        session
    }

    /// A session that the wheel says may be due in this second.
    pub(super) fn fire(&mut self, clock: Clock) -> Option<u32> {
        self.wheel.fire(clock.floor)
    }

    /// Parks a session again that fired too early.
    pub(super) fn park_again(&mut self, slot: u32) {
        let ends = self.ends(&self.hot[slot]);
        self.wheel.park(slot, ends);
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        self.hot.memory()
            + self.links.capacity() * size_of::<SessionLinks>()
            + self.by_inside.memory()
            + self.by_outside.memory()
            + self.wheel.memory()
    }
}

/// A packet that went by elsewhere starts the lifetime again, as it would have here in these states.
pub(super) fn lived<I: InsideKey>(session: &mut Session<I>, last: Instant) {
    if let SessionState::Udp | SessionState::Established | SessionState::Icmp = session.state {
        let clock = Clock::at(last);
        session.started = session.started.max(clock.ceil);
        session.last_packet = session.last_packet.max(clock.floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instant::Instant;
    use crate::nat::timeouts::Timeouts;

    fn table() -> SessionTable<Endpoint6> {
        SessionTable::new(4, Timeouts::default().lifetimes(), [1, 2])
    }

    fn udp(remote_port: u16) -> NewSession<Endpoint6> {
        NewSession {
            inside: Some(Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), 1_000))),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 2_000)),
            remote: Endpoint4::new("203.0.113.1".parse().unwrap(), remote_port),
            protocol: NatProtocol::Udp,
            state: SessionState::Udp,
            opened: Direction::Out,
        }
    }

    #[test]
    fn a_session_is_found_from_both_sides_until_it_is_removed() {
        let mut table = table();
        let new = udp(53);
        let slot = table.insert(new, Clock::default()).unwrap();
        assert_eq!(table.find_inside(new.inside.unwrap(), new.remote, NatProtocol::Udp), Some(slot));
        assert_eq!(table.find_outside(new.outside, new.remote, NatProtocol::Udp), Some(slot));
        assert_eq!(table.find_outside(new.outside, new.remote, NatProtocol::Tcp), None);
        table.remove(slot);
        assert_eq!(table.find_inside(new.inside.unwrap(), new.remote, NatProtocol::Udp), None);
        assert_eq!(table.find_outside(new.outside, new.remote, NatProtocol::Udp), None);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn packet_counts_do_not_stop_at_32_bits() {
        let mut table = table();
        let slot = table.insert(udp(53), Clock::default()).unwrap();
        table.count(slot, Direction::Out, u32::MAX, 1_500, Clock::default());
        table.count(slot, Direction::Out, 2, 100, Clock::default());
        table.count(slot, Direction::In, 3, 7, Clock::default());
        assert_eq!(table.packets(slot), [u64::from(u32::MAX) + 2, 3]);
        assert_eq!(table.octets(slot), [1_600, 7]);
    }

    #[test]
    fn a_lifetime_ends_at_its_very_second() {
        let mut table = table();
        let slot = table.insert(udp(53), Clock::at(Instant::from_secs(10))).unwrap();
        assert!(!table.is_overdue(slot, Clock::at(Instant(309_999_999_999))));
        assert!(table.is_overdue(slot, Clock::at(Instant::from_secs(310))));
        assert_eq!(table.fire(Clock::at(Instant::from_secs(309))), None);
        assert_eq!(table.fire(Clock::at(Instant::from_secs(310))), Some(slot));
    }

    #[test]
    fn a_state_with_a_shorter_lifetime_fires_by_it() {
        let mut table = table();
        let new = NewSession { protocol: NatProtocol::Tcp, state: SessionState::Established, ..udp(80) };
        let slot = table.insert(new, Clock::default()).unwrap();
        table.advance(slot, Direction::In, Segment::Rst, Clock::at(Instant::from_secs(100)));
        assert_eq!(table.get(slot).state, SessionState::Trans);
        assert_eq!(table.fire(Clock::at(Instant::from_secs(339))), None);
        assert_eq!(table.fire(Clock::at(Instant::from_secs(340))), Some(slot));
    }
}
