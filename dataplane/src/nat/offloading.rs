//! The fast path as a translator sees it, and the sessions that are on their way to it.
//!
//! ```text
//!     ripe ── arm ──▶ moving ── the quiet point of both halves ──▶ carried there
//!                       │ no quiet point for half a second ──▶ carried there all the same
//!                       └ many move, and one half had no packet ──▶ waiting ── still none ──▶ carried there
//! ```
//!
//! A half's packets may be forwarded there once none is under way here: the last that was sent here is the last that passed there.
//! Those that had passed before the half was armed left no mark, so a half without marks has to be silent for a while first.

use super::sides::Direction;
use crate::instant::Instant;
use crate::offload::{FastPath, FlowHandle, HalfUsage, OffloadedFlow, Usage};
use arrayvec::ArrayVec;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions of a translator that are on their way to the fast path at a time.
const MOST_MOVING: usize = 64;

/// Halves that wait for their silence, at a time: those that a hundred thousand new flows a second leave behind in it, ten times over.
const MOST_WAITING: usize = 65_536;

/// A half whose packets no longer come, and that has no mark, has none under way after so long: a queue that holds packets for longer
/// loses some.
const SILENCE: Duration = Duration::from_millis(50);

/// A session that finds no quiet point in so long moves without one: its queue is never empty.
const PATIENCE: Duration = Duration::from_millis(500);

/// A fast path that the translators of one engine share.
#[derive(Clone)]
pub(crate) struct SharedFastPath(Arc<Mutex<Box<dyn FastPath>>>);

impl SharedFastPath {
    pub(crate) fn new(fast_path: Box<dyn FastPath>) -> Self {
        Self(Arc::new(Mutex::new(fast_path)))
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn FastPath>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedFastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedFastPath")
    }
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
    way: Direction,
    since: Instant,
}

/// What became of the sessions that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Those that found no quiet point.
    pub(crate) unquietly: u64,
}

/// A translator's share of the fast path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offloading {
    fast_path: Option<SharedFastPath>,
    /// The translator's number.
    mechanism: u8,
    moving: ArrayVec<Moving, MOST_MOVING>,
    /// In the order of their time.
    waiting: VecDeque<Waiting>,
    /// A bit for each session that moves, by the lower bits of its slot: who finds none here does not move.
    filter: u64,
}

impl Offloading {
    /// Uses this fast path from now on, or none. Entries of an earlier one have to be out.
    pub(super) fn set(&mut self, fast_path: Option<SharedFastPath>, mechanism: u8) {
        (self.fast_path, self.mechanism) = (fast_path, mechanism);
        self.moving.clear();
        self.waiting.clear();
        self.filter = 0;
    }

    /// Whether there is a fast path.
    pub(super) const fn is_on(&self) -> bool {
        self.fast_path.is_some()
    }

    /// The translator's number.
    pub(super) const fn mechanism(&self) -> u8 {
        self.mechanism
    }

    /// Makes an armed entry for a session, which moves from now on. `None`: refused.
    pub(super) fn arm(&mut self, slot: u32, flow: &OffloadedFlow, now: Instant) -> Option<FlowHandle> {
        if self.moving.is_full() {
            return None;
        }
        let handle = self.fast_path.as_ref()?.lock().arm(flow)?;
        let half = Half { mark: None, last: now, was_seen: false, is_done: false };
        self.moving.push(Moving { slot, handle, since: now, halves: [half; 2] });
        self.filter = self.filtered();
        Some(handle)
    }

    /// Whether any session moves.
    pub(super) fn is_any_moving(&self) -> bool {
        !self.moving.is_empty()
    }

    /// Whether the session moves.
    pub(super) fn is_moving(&self, slot: u32) -> bool {
        self.filter >> (slot & 63) & 1 != 0 && self.moving.iter().any(|moving| moving.slot == slot)
    }

    /// A packet with this mark was decided on, and will be sent; whether its session moves.
    pub(super) fn sees(&mut self, slot: u32, way: Direction, mark: u32, now: Instant) -> bool {
        let Some(moving) = self.moving.iter_mut().find(|moving| moving.slot == slot) else { return false };
        let half = &mut moving.halves[way as usize];
        (half.mark, half.last, half.was_seen) = (Some(mark), now, true);
        true
    }

    /// What was decided on has been sent: makes the halves active that have nothing under way.
    pub(super) fn settle(&mut self, now: Instant) -> Moved {
        let mut moved = Moved::default();
        let Some(fast_path) = &self.fast_path else { return moved };
        let mut fast_path = fast_path.lock();
        // While there is room, a half's first packet is awaited here: it makes the half active at once.
        let is_crowded = self.moving.len() > MOST_MOVING / 2;
        let waiting = &mut self.waiting;
        self.moving.retain(|moving| {
            let Moving { slot, handle, since, halves } = moving;
            for (half, way) in halves.iter_mut().zip([Direction::Out, Direction::In]) {
                half.settle(|mark| fast_path.activate(*handle, way, mark), now);
                if is_crowded && !half.is_done && !half.was_seen && waiting.len() < MOST_WAITING {
                    waiting.push_back(Waiting { slot: *slot, handle: *handle, way, since: half.last });
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
        self.filter = self.filtered();
        moved
    }

    /// Whether any half waits.
    pub(super) fn is_any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next half whose silence is over.
    pub(super) fn next_silent(&mut self, now: Instant) -> Option<Waiting> {
        let is_over = self.waiting.front().is_some_and(|waiting| now.since(waiting.since) >= SILENCE);
        if is_over { self.waiting.pop_front() } else { None }
    }

    /// Makes a half active that waited, if no packet went by it; else its session moves again, so that its marks are seen.
    pub(super) fn end_wait(&mut self, waiting: Waiting, now: Instant) {
        let Waiting { slot, handle, way, .. } = waiting;
        let Some(fast_path) = &self.fast_path else { return };
        if fast_path.lock().activate(handle, way, 0) {
            return;
        }
        if self.moving.is_full() {
            // A packet later is as good.
            self.waiting.push_back(Waiting { since: now, ..waiting });
            return;
        }
        let half = |is_done| Half { mark: None, last: now, was_seen: true, is_done };
        let halves = [half(way != Direction::Out), half(way != Direction::In)];
        self.moving.push(Moving { slot, handle, since: now, halves });
        self.filter = self.filtered();
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, slot: u32, handle: FlowHandle) -> Usage {
        if let Some(at) = self.moving.iter().position(|moving| moving.slot == slot) {
            self.moving.swap_remove(at);
            self.filter = self.filtered();
        }
        self.fast_path.as_ref().map_or_else(Usage::default, |fast_path| fast_path.lock().remove(handle))
    }

    /// What an entry has seen.
    pub(super) fn usage(&self, handle: FlowHandle) -> Usage {
        self.fast_path.as_ref().map_or_else(Usage::default, |fast_path| fast_path.lock().usage(handle))
    }

    fn filtered(&self) -> u64 {
        self.moving.iter().fold(0, |filter, moving| filter | 1 << (moving.slot & 63))
    }
}

impl Half {
    /// Tries to become active: with the mark of the last packet, or with none if there was none for a while.
    fn settle(&mut self, activate: impl FnOnce(u32) -> bool, now: Instant) {
        let mark = self.mark.take().or_else(|| (now.since(self.last) >= SILENCE).then_some(0));
        if let Some(mark) = mark
            && !self.is_done
        {
            self.is_done = activate(mark);
        }
    }
}

/// When the last packet was, of either half.
pub(super) fn last_of(usage: &Usage) -> Option<Instant> {
    usage.iter().filter_map(|half: &HalfUsage| half.last).max()
}
