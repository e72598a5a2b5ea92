//! A translator's handle to the fast path, and the sessions that are being moved there.
//!
//! ```text
//!     ripe ── arm ──▶ moving ── the quiet point of both halves ──▶ carried there
//!              │       ▲ │ no quiet point for half a second ──▶ carried there all the same
//!              │       │ └ many move, and one half had no packet ─┐
//!              │       └────── few move, and it had one ─┐        ▼
//!              └ too many move ───────────────────────────▶ waiting ── silent for a while ──▶ carried there
//!                                                             └ never looked at, and never silent ──▶ stays
//! ```
//!
//! A half may be forwarded there once no packet of it is in flight here: the last one sent here is the last one that passed there.
//! Packets that passed before the half was armed left no mark, so a half without mark has to be silent first: for a while during which the
//! queue before the engine was empty once. The marks of a waiting half are not watched: if a mark is found, it is cleared, and the half
//! waits once more.

use crate::direction::Direction;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, HalfUsage, OffloadedFlow, Usage};
use arrayvec::ArrayVec;
use core::time::Duration;
use std::collections::VecDeque;

/// Sessions of a translator whose packets are examined on their way to the fast path, at a time.
const MOST_MOVING: usize = 64;

/// The number of them that leaves room for others.
const FEW_MOVING: usize = MOST_MOVING / 2;

/// Halves that wait for their silence, at a time: those that half a million new flows a second leave behind in it.
const MOST_WAITING: usize = 65_536;

/// After this time a half without mark has no packet in flight, if the queue before the engine was empty meanwhile: another worker
/// may take this long to hand one over.
const SILENCE: Duration = Duration::from_millis(50);

/// A session without an idle moment for this time moves without one: its queue is never empty.
const PATIENCE: Duration = Duration::from_millis(500);

/// A SYN/ACK that comes later is the engine's: others may wait in the fast path.
const ANSWERED: Duration = Duration::from_secs(4);

/// A session that got a half-open entry. It may have ended since, or have another entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfOpen {
    pub(super) slot: u32,
    pub(super) handle: FlowHandle,
    since: Instant,
}

/// One direction of a session that moves.
#[derive(Clone, Copy, Debug)]
struct Half {
    /// The mark of the last packet that was decided on since the last look; `None`: there was none.
    mark: Option<u32>,
    /// When a packet was last decided on, or the entry made.
    last: Instant,
    /// Whether there was any while its session moved.
    was_seen: bool,
    /// Nothing is left to do about it: it is active, or it waits.
    is_done: bool,
}

/// A session that moves.
#[derive(Clone, Copy, Debug)]
struct Moving {
    slot: u32,
    handle: FlowHandle,
    since: Instant,
    halves: [Half; 2],
}

/// A half that had no packet while its session moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) slot: u32,
    pub(super) handle: FlowHandle,
    direction: Direction,
    /// When its session was armed.
    armed: Instant,
    /// When its silence began.
    since: Instant,
    /// Whether its session's packets have been examined.
    was_moving: bool,
}

/// The outcome of the sessions that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Those that found no quiet point.
    pub(crate) unquietly: u64,
    /// The one that was examined does not move: it had packets all the time, and they had not been examined.
    pub(crate) stays: bool,
}

/// A translator's share of the fast path: a handle of its own, so that nothing is locked.
#[derive(Default)]
pub(crate) struct Offloading {
    fast_path: Option<Box<dyn FastPath>>,
    /// The translator; `None`: it never had a fast path.
    mechanism: Option<Identity>,
    moving: ArrayVec<Moving, MOST_MOVING>,
    /// In the order of their time.
    waiting: VecDeque<Waiting>,
    filter: Filter,
    /// In the order of their time.
    half_open: VecDeque<HalfOpen>,
    /// The session whose SYN was decided on last; its half-open entry is made when that has been sent.
    pub(super) opening: Option<u32>,
    /// When nothing waited before the engine.
    emptied: Option<Instant>,
}

/// A bit for each session that moves, by the lower bits of its slot: who finds none here does not move.
#[derive(Clone, Debug)]
struct Filter([u64; 64]);

impl Filter {
    const NOBODY: Self = Self([0; 64]);

    /// Its place, and the bit there.
    const fn place(slot: u32) -> (usize, u64) {
        (slot as usize >> 6 & 63, 1 << (slot & 63))
    }

    const fn add(&mut self, slot: u32) {
        let (at, bit) = Self::place(slot);
        self.0[at] |= bit;
    }

    const fn may_have(&self, slot: u32) -> bool {
        let (at, bit) = Self::place(slot);
        self.0[at] & bit != 0
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::NOBODY
    }
}

impl Offloading {
    /// Uses this fast path from now on, or none. Entries of an earlier one have to be out.
    pub(super) fn set(&mut self, fast_path: Option<Box<dyn FastPath>>, mechanism: Identity) {
        (self.fast_path, self.mechanism) = (fast_path, Some(mechanism));
        self.moving.clear();
        self.waiting.clear();
        self.half_open.clear();
        self.filter = Filter::NOBODY;
    }

    /// Whether there is a fast path.
    pub(super) const fn is_on(&self) -> bool {
        self.fast_path.is_some()
    }

    /// The translator; `None`: it never had a fast path.
    pub(super) const fn mechanism(&self) -> Option<Identity> {
        self.mechanism
    }

    /// Makes a half-open entry for a session. `None`: refused.
    pub(super) fn half_open(&mut self, slot: u32, flow: &OffloadedFlow, now: Instant) -> Option<FlowHandle> {
        let handle = self.fast_path.as_mut()?.half_open(flow)?;
        self.half_open.push_back(HalfOpen { slot, handle, since: now });
        Some(handle)
    }

    /// Whether a session had a half-open entry that was not looked at again.
    #[inline]
    pub(super) fn has_half_open(&self) -> bool {
        !self.half_open.is_empty()
    }

    /// The oldest session that had a half-open entry, if it has waited for its SYN/ACK for long enough.
    pub(super) fn next_unanswered(&mut self, now: Instant) -> Option<HalfOpen> {
        let is_over = self.half_open.front().is_some_and(|oldest| now.since(oldest.since) >= ANSWERED);
        if is_over { self.half_open.pop_front() } else { None }
    }

    /// Whether an entry is half-open.
    pub(super) fn is_half_open(&self, handle: FlowHandle) -> bool {
        self.fast_path.as_ref().is_some_and(|fast_path| fast_path.is_half_open(handle))
    }

    /// Makes an armed entry for a session, which is on its way from now on. `None`: refused.
    pub(super) fn arm(&mut self, slot: u32, flow: &OffloadedFlow, now: Instant) -> Option<FlowHandle> {
        if self.moving.is_full() && self.waiting.len() + 2 > MOST_WAITING {
            return None;
        }
        let handle = self.fast_path.as_mut()?.arm(flow)?;
        if self.moving.is_full() {
            let wait =
                |direction| Waiting { slot, handle, direction, armed: now, since: now, was_moving: false };
            self.waiting.extend([Direction::Out, Direction::In].map(wait));
        } else {
            self.go_on(Moving { slot, handle, since: now, halves: [Half::unseen(now, false); 2] });
        }
        Some(handle)
    }

    /// A session's packets are examined from now on.
    fn go_on(&mut self, moving: Moving) {
        self.filter.add(moving.slot);
        self.moving.push(moving);
    }

    /// Whether any session moves.
    pub(super) fn is_any_moving(&self) -> bool {
        !self.moving.is_empty()
    }

    /// Whether the session moves.
    pub(super) fn is_moving(&self, slot: u32) -> bool {
        self.filter.may_have(slot) && self.moving.iter().any(|moving| moving.slot == slot)
    }

    /// A packet with this mark was decided on, and will be sent; whether its session moves.
    pub(super) fn sees(&mut self, slot: u32, direction: Direction, mark: u32, now: Instant) -> bool {
        let Some(moving) = self.moving.iter_mut().find(|moving| moving.slot == slot) else { return false };
        let half = &mut moving.halves[direction as usize];
        (half.mark, half.last, half.was_seen) = (Some(mark), now, true);
        true
    }

    /// No packet waits before the engine, and everything decided on has been sent.
    pub(super) const fn emptied(&mut self, now: Instant) {
        self.emptied = Some(now);
    }

    /// What was decided on has been sent: makes the halves active that have nothing under way.
    pub(super) fn settle(&mut self, now: Instant) -> Moved {
        let mut moved = Moved::default();
        let Some(fast_path) = &mut self.fast_path else { return moved };
        // While there is room, a half's first packet is awaited here: it makes the half active immediately.
        let is_crowded = self.moving.len() > FEW_MOVING;
        let (waiting, emptied) = (&mut self.waiting, self.emptied);
        self.moving.retain(|moving| {
            let Moving { slot, handle, since, halves } = moving;
            for (half, direction) in halves.iter_mut().zip([Direction::Out, Direction::In]) {
                half.settle(&mut **fast_path, (*handle, direction), emptied, now);
                if is_crowded && !half.is_done && !half.was_seen && waiting.len() < MOST_WAITING {
                    waiting.push_back(Waiting {
                        slot: *slot,
                        handle: *handle,
                        direction,
                        armed: *since,
                        since: half.last,
                        was_moving: true,
                    });
                    half.is_done = true;
                }
            }
            if halves.iter().all(|half| half.is_done) {
                return false;
            }
            if now.since(*since) < PATIENCE {
                return true;
            }
            fast_path.force(*handle);
            moved.unquietly += 1;
            false
        });
        self.rebuild_filter();
        moved
    }

    /// Whether any half waits.
    pub(super) fn is_any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next half that was silent for long enough, or that has waited for too long.
    pub(super) fn next_silent(&mut self, now: Instant) -> Option<Waiting> {
        let waiting = self.waiting.front()?;
        let is_over = is_silent(waiting.since, self.emptied, now) || now.since(waiting.armed) >= PATIENCE;
        if is_over { self.waiting.pop_front() } else { None }
    }

    /// Makes a half active that waited, if no packet went by it or it has waited for too long; else it is examined again, or waits once more.
    pub(super) fn end_wait(&mut self, waiting: Waiting, now: Instant) -> Moved {
        let Waiting { slot, handle, direction, armed, since, was_moving } = waiting;
        let Some(fast_path) = &mut self.fast_path else { return Moved::default() };
        // No packet waits that long.
        let is_silent = is_silent(since, self.emptied, now) || now.since(since) >= PATIENCE;
        if is_silent && fast_path.activate(handle, direction, 0) {
            return Moved::default();
        }
        if now.since(armed) >= PATIENCE {
            if !was_moving {
                return Moved { stays: true, ..Moved::default() };
            }
            // Its other half may have waited, too.
            return Moved { unquietly: fast_path.force(handle).into(), ..Moved::default() };
        }
        fast_path.rearm(handle, direction);
        let half = |is_done| Half::unseen(now, is_done);
        if let Some(moving) = self.moving.iter_mut().find(|moving| moving.slot == slot) {
            moving.halves[direction as usize] = half(false);
        } else if self.moving.len() <= FEW_MOVING {
            let halves = [half(direction != Direction::Out), half(direction != Direction::In)];
            self.go_on(Moving { slot, handle, since: armed, halves });
        } else {
            self.waiting.push_back(Waiting { since: now, ..waiting });
        }
        Moved::default()
    }

    /// The sessions that are on the way, each by its slot and its entry; one that has ended may be among them.
    pub(super) fn under_way(&self) -> Vec<(u32, FlowHandle)> {
        let moving = self.moving.iter().map(|moving| (moving.slot, moving.handle));
        moving.chain(self.waiting.iter().map(|waiting| (waiting.slot, waiting.handle))).collect()
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, slot: u32, handle: FlowHandle) -> Usage {
        if self.is_moving(slot) {
            self.moving.retain(|moving| moving.slot != slot);
            self.rebuild_filter();
        }
        self.fast_path.as_mut().map_or_else(Usage::default, |fast_path| fast_path.remove(handle))
    }

    /// The session of an entry had packets here, the last at this time.
    pub(super) fn touch(&mut self, handle: FlowHandle, last: Instant) {
        if let Some(fast_path) = &mut self.fast_path {
            fast_path.touch(handle, last);
        }
    }

    /// The usage of an entry.
    pub(super) fn usage(&self, handle: FlowHandle) -> Usage {
        self.fast_path.as_ref().map_or_else(Usage::default, |fast_path| fast_path.usage(handle))
    }

    fn rebuild_filter(&mut self) {
        self.filter = Filter::NOBODY;
        self.moving.iter().for_each(|moving| self.filter.add(moving.slot));
    }
}

impl Half {
    /// No packet was decided on since `last`.
    const fn unseen(last: Instant, is_done: bool) -> Self {
        Self { mark: None, last, was_seen: false, is_done }
    }

    /// Tries to become active: with the mark of the last packet, or with none if there was none for a while.
    fn settle(
        &mut self,
        path: &mut dyn FastPath,
        (handle, direction): (FlowHandle, Direction),
        emptied: Option<Instant>,
        now: Instant,
    ) {
        let is_silent = is_silent(self.last, emptied, now);
        let mark = self.mark.take().or_else(|| is_silent.then_some(0));
        let Some(mark) = mark.filter(|_| !self.is_done) else { return };
        self.is_done = path.activate(handle, direction, mark);
        if is_silent && !self.is_done {
            // One went by and never came here.
            path.rearm(handle, direction);
            self.last = now;
        }
    }
}

/// Whether a silence that began at `since` has lasted long enough, if no packet came in it.
fn is_silent(since: Instant, emptied: Option<Instant>, now: Instant) -> bool {
    now.since(since) >= SILENCE && emptied.is_some_and(|emptied| emptied > since)
}

/// When the last packet was, of either half.
pub(super) fn last_of(usage: &Usage) -> Option<Instant> {
    usage.iter().filter_map(|half: &HalfUsage| half.last).max()
}
