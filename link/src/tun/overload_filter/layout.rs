//! Where the numbers of a queue's table are, in octets.

use sixway_dataplane::fair_share::{BUCKETS, Bucket};
use std::mem::offset_of;

/// Until when packets may be dropped, in nanoseconds of CLOCK_MONOTONIC; 0: none are.
pub(super) const UNTIL: i16 = 0;
/// The limit of all levels.
pub(super) const LIMIT: i16 = 8;
/// The keys of the hash, six of them.
pub(super) const KEYS: i16 = 16;
/// Packets that were dropped. It changes all the time, unlike those before, so it is in another cache line.
pub(super) const DROPPED: i16 = 64;
/// The buckets: what was offered, and the level, of 32 bits each.
pub(super) const BUCKETS_AT: i16 = 128;
pub(super) const OFFERED: i16 = BUCKETS_AT + offset_of!(Bucket, offered) as i16;
pub(super) const LEVEL: i16 = BUCKETS_AT + offset_of!(Bucket, level) as i16;
/// A bucket's size is two to the power of this.
pub(super) const BUCKET_SHIFT: i32 = 3;
/// A table.
pub(super) const TABLE: i16 = BUCKETS_AT + (BUCKETS << BUCKET_SHIFT) as i16;

const _: () = assert!(size_of::<Bucket>() == 1 << BUCKET_SHIFT && TABLE % 64 == 0);
