//! The running fast path: its counters for the admin API, and its removal.

use sixway_fastpath::{AttachPoint, Counts, FastPath, FastPathError};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fast path, until it is ended.
pub struct FastPathHandle {
    fast_path: Mutex<Option<FastPath>>,
    /// What the programs had counted before this process.
    before: Counts,
    capacity: u32,
    /// Why it is suspended; `None`: it is not.
    resting: Mutex<Option<&'static str>>,
}

impl fmt::Debug for FastPathHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastPathHandle").finish_non_exhaustive()
    }
}

/// What is shown of it at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct FastPathState {
    /// What the programs have counted since this process began.
    pub counts: Counts,
    /// Flows in the table.
    pub flows: u32,
    /// Next hops in use.
    pub next_hops: usize,
}

impl FastPathHandle {
    pub(super) fn new(fast_path: FastPath, capacity: u32) -> Self {
        let before = fast_path.counts().unwrap_or_default();
        Self { fast_path: Mutex::new(Some(fast_path)), before, capacity, resting: Mutex::default() }
    }

    /// Why it carries nothing, for as long as that is so.
    pub(super) fn set_resting(&self, why: Option<&'static str>) {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Why it carries nothing.
    pub(super) fn resting(&self) -> Option<&'static str> {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was removed.
    pub(super) fn is_ended(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<FastPath>> {
        self.fast_path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with it, if it is still there.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut FastPath) -> Result<T, FastPathError>,
    ) -> Result<Option<T>, FastPathError> {
        self.lock().as_mut().map(work).transpose()
    }

    /// Maximum number of flows.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Where programs are attached: `eth0 XDP · eth1 tc (why)`.
    pub(super) fn attached(&self) -> String {
        let fast_path = self.lock();
        let Some(fast_path) = fast_path.as_ref() else { return "off".into() };
        let place = |it: &sixway_fastpath::Attached| {
            let how = if it.place == AttachPoint::Xdp { "XDP" } else { "tc" };
            let why = if it.why.is_empty() { String::new() } else { format!(" ({})", it.why) };
            format!("{} {how}{why}", it.interface)
        };
        let places: Vec<String> = fast_path.attached().iter().map(place).collect();
        let places = if places.is_empty() { "no interface attached yet".into() } else { places.join(" · ") };
        match self.resting() {
            Some(why) => format!("suspended: {why} · {places}"),
            None => places,
        }
    }

    /// Problems where they are attached, with a remedy: `eth0: why`.
    pub(super) fn warnings(&self) -> Vec<String> {
        let fast_path = self.lock();
        let attached = fast_path.as_ref().map(FastPath::attached).unwrap_or_default();
        attached.iter().filter_map(|it| Some(format!("{}: {}", it.interface, it.warning.as_ref()?))).collect()
    }

    /// Where they should be attached but are not, and why: `not eth2: why`.
    pub(super) fn left_out(&self) -> Vec<String> {
        let fast_path = self.lock();
        let left_out = fast_path.as_ref().map(FastPath::left_out).unwrap_or_default();
        left_out.iter().map(|it| format!("not {}: {}", it.interface, it.why)).collect()
    }

    /// How an offloaded session's packets go: `fast (tc)`, `fast (xdp)`, or `fast` where that depends on the interface; `engine` while the
    /// programs pass everything on.
    pub(super) fn path(&self) -> &'static str {
        let fast_path = self.lock();
        let Some(fast_path) = fast_path.as_ref().filter(|it| it.control().is_enabled()) else {
            return "engine";
        };
        let attached = fast_path.attached();
        let xdp = attached.iter().filter(|it| it.place == AttachPoint::Xdp).count();
        match xdp {
            0 => "fast (tc)",
            all if all == attached.len() => "fast (xdp)",
            _ => "fast",
        }
    }

    /// Its current counters; `None`: it was removed.
    pub(super) fn seen(&self) -> Option<FastPathState> {
        let fast_path = self.lock();
        let fast_path = fast_path.as_ref()?;
        let mut counts = fast_path.counts().ok()?;
        for (now, before) in counts.values.iter_mut().zip(self.before.values) {
            now.packets = now.packets.saturating_sub(before.packets);
            now.octets = now.octets.saturating_sub(before.octets);
        }
        let flows = fast_path.table().used();
        Some(FastPathState { counts, flows, next_hops: fast_path.next_hops().in_use().len() })
    }

    /// Ends it: programs, links and maps are removed. Returns whether there was one.
    ///
    /// # Errors
    /// The kernel's; something may be left.
    pub(super) fn end(&self) -> Result<bool, FastPathError> {
        let Some(fast_path) = self.lock().take() else { return Ok(false) };
        fast_path.end().map(|_| true)
    }
}
