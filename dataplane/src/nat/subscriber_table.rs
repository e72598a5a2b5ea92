//! Inside subscribers: what each uses, and whether it may use more (RFC 6888 REQ-4, REQ-5).
//!
//! A subscriber is a prefix of configured length: an IPv6 /64 or one IPv4 address, unless something else is configured. All of its hosts belong
//! to one worker, so its counts and limits are exact.
//!
//! Two things bound what a subscriber has. Limits are what the operator configures. The share always applies: a subscriber with much may have
//! more only while
//! several times less than that is left for others (the dynamic thresholds of Choudhury and Hahne, 1998).
//!
//! ```text
//!     one subscriber that takes all it can   ████████████████████████████████░░░░   8/9 of the sessions
//!     two                                    ████████████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░     8/17 each
//! ```
//!
//! So someone with few sessions or ports always finds room, whatever the others do.

use super::block_policy::MOST_BLOCKS;
use super::growing_index::GrowingIndex;
use super::inside_key::{InsideHost, Subscriber};
use super::keyed::{Purpose, TupleHash};
use super::protocol::NatProtocol;
use super::rate::{NewRate, RateLimit};
use super::slab::{NONE, Slab};
use super::state_limits::SubscriberLimits;
use super::timeouts::Clock;
use crate::drop_reason::DropReason;
use core::marker::PhantomData;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A subscriber has at most this many times the sessions that are left.
const SESSIONS_PER_LEFT: u32 = 8;

/// And at most this many times the ports that are left at the outside address that it shares with others.
const PORTS_PER_LEFT: u32 = 32;

/// A subscriber with fewer may have more as long as any are left.
const FEW: u32 = 64;

/// Of the limit on sessions, the part that packets from outside may create in addition.
const OUTSIDE_PART: u32 = 4;

/// The free entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Ports of the protocol, at the host's outside address or, if it has none, at any.
    pub(super) ports: u32,
    /// Bindings.
    pub(super) bindings: u32,
}

/// Whether a subscriber that has `has` may have one more while `left` are left.
const fn is_within_share(has: u32, left: u32, times: u32) -> bool {
    has < FEW || has / times <= left
}

/// The use by a subscriber.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    subscriber: Subscriber,
    hosts: u32,
    /// Dynamic bindings, by protocol.
    bindings: [u32; 3],
    /// Sessions from inside, and those that a packet from inside has answered.
    sessions: u32,
    /// Sessions from outside that none has answered.
    from_outside: u32,
    /// Sessions that do not count to its limits, with exempt destinations.
    exempt_sessions: u32,
    new_bindings: RateLimit,
    new_sessions: RateLimit,
    rate: NewRate,
    /// New sessions since it has had a binding without a break.
    made: u64,
    /// New sessions and bindings that its limits or its share refused.
    refused: u64,
    /// Whether no limit holds for it.
    is_exempt: bool,
    /// Softwires whose hosts have bindings.
    softwires: u16,
    /// The newest of its port blocks, and how many it has.
    blocks: BlockList,
}

/// The port blocks of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockList {
    /// The newest one, or [`NONE`].
    pub(super) first: u32,
    /// The number.
    pub(super) count: u32,
}

const _: () = assert!(size_of::<Row>() == 104);

impl BlockList {
    /// A list without blocks.
    pub(super) const EMPTY: Self = Self { first: NONE, count: 0 };
}

impl Row {
    /// Where such a session counts.
    const fn sessions_of(&mut self, session: Counted) -> &mut u32 {
        match session {
            Counted { is_exempt: true, .. } => &mut self.exempt_sessions,
            Counted { from_outside: true, .. } => &mut self.from_outside,
            Counted { .. } => &mut self.sessions,
        }
    }
}

/// A session, as it counts to its subscriber.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Whether its destination is exempt.
    pub(super) is_exempt: bool,
    /// Whether a packet from outside created it, and none from inside has answered it.
    pub(super) from_outside: bool,
}

/// A subscriber, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberRow {
    /// The prefix, as [`super::InsideKey::mapped`] gives addresses.
    pub address: Ipv6Addr,
    /// Its length.
    pub bits: u8,
    /// Hosts with bindings.
    pub hosts: u32,
    /// Dynamic bindings, by protocol.
    pub bindings: [u32; 3],
    /// Sessions, those from outside included.
    pub sessions: u32,
    /// Sessions from outside that no packet from inside has answered.
    pub from_outside: u32,
    /// New sessions since it has had a binding without a break.
    pub made: u64,
    /// New sessions a second, in the last ten to twenty seconds.
    pub per_second: u32,
    /// New sessions and bindings that its limits or its share refused.
    pub refused: u64,
    /// Its port blocks.
    pub blocks: RowBlocks,
}

/// The port blocks of a subscriber, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowBlocks {
    /// The outside address of all of them.
    pub address: Option<Ipv4Addr>,
    /// Ports of each.
    pub size: u16,
    /// The number.
    pub count: u8,
    /// The first port of each.
    pub first: [u16; MOST_BLOCKS as usize],
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct SubscriberTable<H> {
    bits: u8,
    limits: SubscriberLimits,
    rows: Slab<Row>,
    by_subscriber: GrowingIndex,
    hash: TupleHash,
    hosts: PhantomData<H>,
}

impl<H: InsideHost> SubscriberTable<H> {
    /// Each has a prefix of `bits` bits; there are at most `most`.
    pub(super) fn new(bits: u8, limits: SubscriberLimits, most: u32, seed: [u64; 2]) -> Self {
        Self {
            bits,
            limits,
            rows: Slab::new(most),
            by_subscriber: GrowingIndex::new(most),
            hash: TupleHash::new(seed, Purpose::Subscribers),
            hosts: PhantomData,
        }
    }

    fn tag(&self, Subscriber([a, b]): Subscriber) -> u32 {
        self.hash.pair(a, b)
    }

    /// The host's subscriber.
    pub(super) fn subscriber_of(&self, host: H) -> Subscriber {
        host.subscriber(self.bits)
    }

    /// A hash of the host's subscriber.
    pub(super) fn tag_of(&self, host: H) -> u32 {
        self.tag(self.subscriber_of(host))
    }

    /// The row of the host's subscriber.
    pub(super) fn find(&self, host: H) -> Option<u32> {
        let subscriber = self.subscriber_of(host);
        self.by_subscriber.find(self.tag(subscriber), |slot| self.rows[slot].subscriber == subscriber)
    }

    /// A host has its first binding; the row of its subscriber, which has been looked for: `known`. `None`: the table is full.
    pub(super) fn join(&mut self, host: H, known: Option<u32>, is_exempt: bool) -> Option<u32> {
        if let Some(slot) = known {
            self.rows[slot].hosts += 1;
            return Some(slot);
        }
        let subscriber = self.subscriber_of(host);
        let slot = self.rows.insert(Row {
            subscriber,
            hosts: 1,
            bindings: [0; 3],
            sessions: 0,
            from_outside: 0,
            exempt_sessions: 0,
            new_bindings: RateLimit::default(),
            new_sessions: RateLimit::default(),
            rate: NewRate::default(),
            made: 0,
            refused: 0,
            is_exempt,
            softwires: 0,
            blocks: BlockList::EMPTY,
        })?;
        self.by_subscriber.insert(self.tag(subscriber), slot);
        Some(slot)
    }

    /// A host has no binding any more.
    pub(super) fn leave(&mut self, slot: u32) {
        self.rows[slot].hosts -= 1;
        self.release_unused(slot);
    }

    /// A subscriber without hosts and blocks is forgotten.
    fn release_unused(&mut self, slot: u32) {
        let Row { hosts, subscriber, blocks, .. } = self.rows[slot];
        if hosts == 0 && blocks.count == 0 {
            self.by_subscriber.remove(self.tag(subscriber), slot);
            self.rows.release(slot);
        }
    }

    /// Softwires whose hosts have bindings.
    pub(super) fn softwires(&self, slot: u32) -> u16 {
        self.rows[slot].softwires
    }

    /// A subscriber has one softwire more, or one less.
    pub(super) fn has_softwire(&mut self, slot: u32, is_more: bool) {
        let softwires = &mut self.rows[slot].softwires;
        *softwires = if is_more { softwires.saturating_add(1) } else { softwires.saturating_sub(1) };
    }

    /// The port blocks of a subscriber.
    pub(super) fn blocks(&self, slot: u32) -> BlockList {
        self.rows[slot].blocks
    }

    /// A subscriber has these port blocks from now on.
    pub(super) fn set_blocks(&mut self, slot: u32, blocks: BlockList) {
        self.rows[slot].blocks = blocks;
        self.release_unused(slot);
    }

    /// Whether a subscriber has hosts with bindings.
    pub(super) fn has_hosts(&self, slot: u32) -> bool {
        self.rows[slot].hosts > 0
    }

    /// A subscriber's first address, by its place, and the length of subscribers' prefixes.
    pub(super) fn place(&self, slot: u32) -> (u128, u8) {
        (H::place_of(self.rows[slot].subscriber), self.bits)
    }

    /// Whether a subscriber may have one more dynamic binding of a protocol.
    pub(super) fn may_bind(
        &mut self,
        slot: u32,
        protocol: NatProtocol,
        left: Left,
        clock: Clock,
    ) -> Result<(), DropReason> {
        let is_at_limit = self.is_at_limit(slot, protocol);
        let row = &mut self.rows[slot];
        if !is_within_share(row.bindings[protocol as usize], left.ports, PORTS_PER_LEFT)
            || !is_within_share(row.bindings.iter().sum(), left.bindings, SESSIONS_PER_LEFT)
        {
            return Err(DropReason::SubscriberShare);
        }
        if row.is_exempt {
            return Ok(());
        }
        let may = !is_at_limit && row.new_bindings.takes(self.limits.new_bindings_per_second, clock);
        if may { Ok(()) } else { Err(DropReason::SubscriberLimit) }
    }

    /// Whether the share of a subscriber is nearly reached: more ports should be requested.
    pub(super) fn is_near_share(&self, slot: u32, protocol: NatProtocol, left: u32) -> bool {
        let has = self.rows[slot].bindings[protocol as usize];
        !is_within_share(has, left.saturating_sub(2 * FEW), PORTS_PER_LEFT)
    }

    /// Whether a subscriber has all the bindings that it may have, rates left aside.
    pub(super) fn is_at_limit(&self, slot: u32, protocol: NatProtocol) -> bool {
        let row = &self.rows[slot];
        let is_at = |limit: u32, has: u32| limit > 0 && has >= limit;
        let limits = &self.limits;
        !row.is_exempt
            && (is_at(limits.bindings, row.bindings.iter().sum())
                || is_at(limits.bindings_of[protocol as usize], row.bindings[protocol as usize]))
    }

    /// Whether a subscriber may have one more session from inside; `left`: sessions that are left for all.
    pub(super) fn may_open(
        &mut self,
        slot: u32,
        (left, is_free): (u32, bool),
        clock: Clock,
    ) -> Result<(), DropReason> {
        let row = &mut self.rows[slot];
        if !is_within_share(row.sessions + row.exempt_sessions, left, SESSIONS_PER_LEFT) {
            return Err(DropReason::SubscriberShare);
        }
        if is_free || row.is_exempt {
            return Ok(());
        }
        let limits = &self.limits;
        let may = (limits.sessions == 0 || row.sessions < limits.sessions)
            && row.new_sessions.takes(limits.new_sessions_per_second, clock);
        if may { Ok(()) } else { Err(DropReason::SubscriberLimit) }
    }

    /// A subscriber begins: its first binding and session count to what it may make in a second.
    pub(super) fn begin(&mut self, slot: u32, is_free: bool, clock: Clock) {
        let row = &mut self.rows[slot];
        if row.is_exempt {
            return;
        }
        row.new_bindings.takes(self.limits.new_bindings_per_second, clock);
        if !is_free {
            row.new_sessions.takes(self.limits.new_sessions_per_second, clock);
        }
    }

    /// Whether packets from outside may create one more session for a subscriber; `left`: sessions that are left for all, and such ones. What an
    /// inside host has answered counts, too: it may act together with who sends.
    pub(super) fn may_open_from_outside(&self, slot: u32, left: (u32, u32)) -> Result<(), DropReason> {
        let row = &self.rows[slot];
        let (limit, part) = (self.limits.sessions, (self.limits.sessions / OUTSIDE_PART).max(1));
        let is_below = limit == 0
            || row.is_exempt
            || row.from_outside < part && row.sessions + row.from_outside < limit.saturating_add(part);
        let all = row.sessions + row.from_outside + row.exempt_sessions;
        let is_within = is_within_share(all, left.0, SESSIONS_PER_LEFT)
            && is_within_share(row.from_outside + row.exempt_sessions, left.1, SESSIONS_PER_LEFT);
        if is_below && is_within { Ok(()) } else { Err(DropReason::OutsideSessionsFull) }
    }

    /// A host's subscriber was refused a session or binding.
    pub(super) fn was_refused(&mut self, host: H) {
        if let Some(slot) = self.find(host) {
            self.rows[slot].refused += 1;
        }
    }

    /// A subscriber has one more dynamic binding.
    pub(super) fn has_bound(&mut self, slot: u32, protocol: NatProtocol) {
        self.rows[slot].bindings[protocol as usize] += 1;
    }

    /// A subscriber has one dynamic binding less.
    pub(super) fn has_unbound(&mut self, slot: u32, protocol: NatProtocol) {
        self.rows[slot].bindings[protocol as usize] -= 1;
    }

    /// A subscriber has one more session.
    pub(super) fn has_opened(&mut self, slot: u32, session: Counted, second: u32) {
        let row = &mut self.rows[slot];
        row.made += 1;
        row.rate.count(second);
        *row.sessions_of(session) += 1;
    }

    /// A packet from inside has answered a session from outside.
    pub(super) fn has_answered(&mut self, slot: u32, session: Counted) {
        let row = &mut self.rows[slot];
        *row.sessions_of(session) -= 1;
        *row.sessions_of(Counted { from_outside: false, ..session }) += 1;
    }

    /// A subscriber has one session less.
    pub(super) fn has_closed(&mut self, slot: u32, session: Counted) {
        *self.rows[slot].sessions_of(session) -= 1;
    }

    /// Rows that were ever used: dumps run from zero to here.
    pub(super) fn slots(&self) -> u32 {
        self.rows.slots()
    }

    /// A row for display, of a subscriber that has hosts or blocks: its first address by its place.
    pub(super) fn row(&self, slot: u32, second: u32) -> Option<(u128, SubscriberRow)> {
        let row = self.rows.get(slot).filter(|row| row.hosts > 0 || row.blocks.count > 0)?;
        let shown = SubscriberRow {
            address: Ipv6Addr::UNSPECIFIED,
            bits: self.bits,
            hosts: row.hosts,
            bindings: row.bindings,
            sessions: row.sessions + row.from_outside + row.exempt_sessions,
            from_outside: row.from_outside,
            made: row.made,
            per_second: row.rate.per_second(second),
            refused: row.refused,
            blocks: RowBlocks::default(),
        };
        Some((H::place_of(row.subscriber), shown))
    }

    /// Memory in octets.
    pub(super) fn memory(&self) -> usize {
        self.rows.memory() + self.by_subscriber.memory()
    }
}

#[cfg(test)]
mod tests;
