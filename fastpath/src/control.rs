//! Data from the gateway to the running programs: one shared page.

use crate::layout::{self, AWAY_TICKS, ENABLED, HALF_OPEN_ALLOWED, LAYOUT_VERSION, MAGIC};
use crate::memory::{Mapping, SharedControl};
use crate::slots::Slots;
use crate::ticks;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The control map. Each method is a memory access; none blocks, none fails.
#[derive(Debug)]
pub struct Control {
    memory: Mapping,
    /// The last argument of [`Self::allow_half_open`]. It takes effect whenever the programs may forward.
    allows_half_open: AtomicBool,
}

impl Control {
    /// The control map of the programs.
    ///
    /// # Errors
    /// The kernel does not map it.
    pub fn of_map(map: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self::of(Mapping::of_map(map, size_of::<SharedControl>())?))
    }

    /// One of this process alone, with these buckets and a secret.
    pub(crate) fn anonymous(buckets: u32) -> io::Result<Self> {
        let control = Self::of(Mapping::anonymous(size_of::<SharedControl>())?);
        control.begin("", buckets)?;
        Ok(control)
    }

    fn of(memory: Mapping) -> Self {
        Self { memory, allows_half_open: AtomicBool::new(false) }
    }

    fn page(&self) -> &SharedControl {
        // A mapping that holds less than one was never made.
        &self.memory.elements()[0]
    }

    /// Initialises the page: a new secret, disabled.
    ///
    /// # Errors
    /// The kernel has no randomness to give.
    pub fn begin(&self, gateway: &str, buckets: u32) -> io::Result<()> {
        let page = self.page();
        page.enabled.store(0, Relaxed);
        for key in &page.keys {
            key.store(random()?, Relaxed);
        }
        for (place, octet) in page.gateway.iter().zip(padded(gateway)) {
            place.store(octet, Relaxed);
        }
        self.set_slots(&Slots::default());
        page.buckets.store(buckets, Relaxed);
        page.generation.store(1, Relaxed);
        page.version.store(LAYOUT_VERSION, Relaxed);
        self.beat();
        page.magic.store(MAGIC, Release);
        Ok(())
    }

    /// Why the maps were made by another version, or for something else; `None`: they are ours.
    pub fn strange(&self, gateway: &str, buckets: u32) -> Option<String> {
        let page = self.page();
        if page.magic.load(Acquire) != MAGIC {
            return Some("they were not finished".into());
        }
        if let Some(version) = self.strange_version() {
            return Some(version);
        }
        if page.gateway.iter().zip(padded(gateway)).any(|(place, octet)| place.load(Relaxed) != octet) {
            return Some("another gateway's".into());
        }
        let theirs = page.buckets.load(Relaxed);
        (theirs != buckets).then(|| format!("a table of {theirs} buckets, not {buckets}"))
    }

    /// The layout version of the maps, if it differs from ours. Reads only the first two fields, which every version has.
    pub(crate) fn strange_version(&self) -> Option<String> {
        let page = self.page();
        let version = page.version.load(Relaxed);
        let is_other = page.magic.load(Acquire) == MAGIC && version != LAYOUT_VERSION;
        is_other.then(|| format!("layout version {version}, not {LAYOUT_VERSION}"))
    }

    /// The secret of the hash.
    pub(crate) fn keys(&self) -> [u64; 4] {
        let page = self.page();
        [0, 1, 2, 3].map(|number: usize| page.keys[number].load(Relaxed))
    }

    /// Buckets of the flow table.
    pub(crate) fn buckets(&self) -> u32 {
        self.page().buckets.load(Relaxed)
    }

    /// Whose the slots are that the flows in the table name.
    pub fn slots(&self) -> Slots {
        let page = self.page();
        Slots::from_numbers(std::array::from_fn(|slot| page.slots[slot].load(Relaxed)))
    }

    /// Sets the owners. No flow may remain in the table that names a slot with a changed owner.
    pub(crate) fn set_slots(&self, slots: &Slots) {
        for (place, number) in self.page().slots.iter().zip(slots.numbers()) {
            place.store(number, Release);
        }
    }

    /// The gateway's heartbeat. After 2 s without it the programs look up the kernel's tables once a second; after the configured time they
    /// pass everything to the kernel. The first beat after such a pause starts a new generation, because changes went unnoticed.
    pub fn beat(&self) {
        let (page, now) = (self.page(), ticks::now());
        if now.wrapping_sub(page.heartbeat.load(Relaxed)) > AWAY_TICKS {
            self.bump();
        }
        page.heartbeat.store(now, Release);
    }

    /// Time since the last heartbeat.
    pub fn absent(&self) -> std::time::Duration {
        ticks::duration(ticks::since(ticks::now(), self.page().heartbeat.load(Relaxed)))
    }

    /// Starts a new generation because routes, neighbours, links or addresses changed: the programs repeat their lookups in the
    /// kernel's tables, packet by packet.
    pub fn bump(&self) {
        self.page().generation.fetch_add(1, Release);
    }

    /// How often [`Self::bump`] was called since the maps were made.
    pub fn generation(&self) -> u32 {
        self.page().generation.load(Relaxed)
    }

    /// Lets the programs forward, or makes them pass everything on.
    pub fn enable(&self, on: bool) {
        self.page().enabled.store(if on { self.allowed() } else { 0 }, Release);
    }

    /// Whether the programs may forward.
    pub fn is_enabled(&self) -> bool {
        self.page().enabled.load(Acquire) & ENABLED != 0
    }

    /// Whether programs that may forward do so with SYN/ACKs by half-open entries: this host's connection tracking may have to see them.
    pub fn allow_half_open(&self, on: bool) {
        self.allows_half_open.store(on, Relaxed);
        let changed = |word| (word & ENABLED != 0).then_some(self.allowed());
        // Otherwise they forward nothing, and this holds when they do again.
        let _ = self.page().enabled.fetch_update(Release, Relaxed, changed);
    }

    /// What programs may do that may forward.
    fn allowed(&self) -> u32 {
        match self.allows_half_open.load(Relaxed) {
            true => ENABLED | HALF_OPEN_ALLOWED,
            false => ENABLED,
        }
    }

    /// Whether they may.
    pub fn has_half_open(&self) -> bool {
        self.page().enabled.load(Acquire) & HALF_OPEN_ALLOWED != 0
    }
}

/// A gateway's name as the map has it: cut at 64 octets.
fn padded(gateway: &str) -> impl Iterator<Item = u8> {
    gateway.bytes().chain(std::iter::repeat(0)).take(size_of::<layout::Control>() - GATEWAY)
}

const GATEWAY: usize = std::mem::offset_of!(layout::Control, gateway);

fn random() -> io::Result<u64> {
    let mut octets = [0; 8];
    // SAFETY: eight octets, valid for the call; getrandom(2) fills up to 256 octets without a short read.
    let result = unsafe { libc::getrandom(octets.as_mut_ptr().cast(), octets.len(), 0) };
    if result != 8 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::from_ne_bytes(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_begins_a_new_generation_before_he_is_there() {
        let control = Control::anonymous(1).unwrap();
        let before = control.generation();
        control.beat();
        assert_eq!(control.generation(), before, "it was there all the time");
        control.page().heartbeat.store(ticks::now().wrapping_sub(AWAY_TICKS + 2), Relaxed);
        control.beat();
        assert_eq!(control.generation(), before + 1);
    }
}
