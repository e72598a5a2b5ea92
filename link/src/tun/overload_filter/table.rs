//! Tables of the overload filter, in memory that is shared with the kernel.

use super::layout::{BUCKETS_AT, DROPPED, KEYS, LIMIT, TABLE, UNTIL};
use crate::syscall::failed;
use crate::tun::ebpf::{BPF_F_MMAPABLE, array};
use nix::time::{ClockId, clock_gettime};
use sixway_dataplane::fair_share::{BUCKETS, Bucket, FilterRule, SenderTable};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a rule is valid, unless it is renewed.
pub const VALID: Duration = Duration::from_millis(100);

/// The filter in front of one queue. While it lives, its worker decides what the filter drops; then nothing is dropped.
pub struct OverloadFilter {
    tables: Arc<Mapping>,
    queue: usize,
}

/// The only element of the array.
struct Mapping {
    start: NonNull<AtomicU64>,
    octets: usize,
}

// SAFETY: what is reached through it is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no borrow of it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.octets) };
    }
}

impl OverloadFilter {
    /// An array with the tables of this many queues, and a filter for each.
    ///
    /// # Errors
    /// The kernel's error of BPF_MAP_CREATE or mmap.
    pub(super) fn tables(queues: u16) -> io::Result<(OwnedFd, Vec<Self>)> {
        let octets = TABLE.unsigned_abs() as usize * usize::from(queues);
        let map = array(u32::try_from(octets).map_err(io::Error::other)?, 1, BPF_F_MMAPABLE)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a free place; the mapping is ours until it is dropped.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), octets, access, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(failed("mmap"));
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let tables = Arc::new(Mapping { start, octets });
        let filters = (0..usize::from(queues)).map(|queue| Self { tables: Arc::clone(&tables), queue });
        Ok((map, filters.collect()))
    }

    /// The numbers of 64 bits in front of the buckets.
    fn head(&self) -> &[AtomicU64] {
        let (table, head) = (TABLE.unsigned_abs() as usize, BUCKETS_AT.unsigned_abs() as usize);
        // SAFETY: the mapping has a table for this queue and lives as long as what is borrowed; tables begin at multiples of 64 octets.
        unsafe {
            std::slice::from_raw_parts(self.tables.start.as_ptr().byte_add(self.queue * table), head / 8)
        }
    }

    fn store(&self, at: i16, value: u64) {
        if let Some(word) = self.head().get(at.unsigned_abs() as usize / 8) {
            word.store(value, Ordering::Release);
        }
    }
}

impl SenderTable for OverloadFilter {
    fn buckets(&self) -> &[Bucket] {
        let at = self.queue * TABLE.unsigned_abs() as usize + BUCKETS_AT.unsigned_abs() as usize;
        // SAFETY: as for the head; behind it are the buckets, of which every value is valid, and which are used as such only.
        unsafe { std::slice::from_raw_parts(self.tables.start.as_ptr().byte_add(at).cast(), BUCKETS) }
    }

    fn set(&mut self, rule: Option<&FilterRule>) {
        let Some(rule) = rule else { return self.store(UNTIL, 0) };
        for (key, at) in rule.hash.keys.into_iter().zip((KEYS..).step_by(8)) {
            self.store(at, key);
        }
        self.store(LIMIT, rule.limit.into());
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
        self.store(UNTIL, u64::try_from((now + VALID).as_nanos()).unwrap_or(u64::MAX));
    }

    fn dropped(&self) -> u64 {
        let word = self.head().get(DROPPED.unsigned_abs() as usize / 8);
        word.map_or(0, |dropped| dropped.load(Ordering::Relaxed))
    }
}

impl Drop for OverloadFilter {
    fn drop(&mut self) {
        self.set(None);
    }
}

impl std::fmt::Debug for OverloadFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OverloadFilter").field("queue", &self.queue).finish_non_exhaustive()
    }
}
