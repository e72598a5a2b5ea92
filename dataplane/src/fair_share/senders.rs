//! Senders in buckets, and how far each has used its share. A filter in front of the queue may count in the same table.

use crate::frame::Realm;
use alloc::boxed::Box;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU32, Ordering};

/// Buckets of senders.
pub const BUCKETS: usize = 1 << BUCKET_BITS;
/// The bucket is this many bits of a sum.
pub const BUCKET_BITS: u32 = 10;
/// What a packet adds to the level of its sender: where there are more senders than packets to admit, a share is less than a packet.
pub const PACKET: u32 = 256;

/// A keyed hash of senders: a sum of the words of the address, and of the realm and port, each times its key (multilinear hashing). The bucket
/// is its highest bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderHash {
    /// The sum without words, the keys of the four words of an address, and that of the realm and port.
    pub keys: [u64; 6],
}

impl SenderHash {
    /// The hash that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        // SplitMix64 (G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators, 2014).
        let mut state = seed;
        let keys = [(); 6].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        });
        Self { keys }
    }

    /// The bucket of a sender, below [`BUCKETS`]. `source`: an IPv6 prefix, or an IPv4-mapped address. `port`: 0 unless several senders share the
    /// address.
    pub fn bucket(&self, realm: Realm, source: u128, port: u16) -> usize {
        let [mut sum, keys @ ..] = self.keys;
        let words = [96, 64, 32, 0].map(|shift| (source >> shift) as u32);
        let of_network = u32::from(realm.0) << 16 | u32::from(port);
        for (word, key) in words.into_iter().chain([of_network]).zip(keys) {
            sum = sum.wrapping_add(u64::from(word).wrapping_mul(key));
        }
        (sum >> (u64::BITS - BUCKET_BITS)) as usize
    }
}

/// The bits of an address that identify a sender.
pub fn sender_bits(source: IpAddr, mask: u128) -> u128 {
    match source {
        IpAddr::V4(source) => source.to_ipv6_mapped().to_bits(),
        IpAddr::V6(source) => source.to_bits() & mask,
    }
}

/// By what a filter in front of the queue decides: a packet whose sender's level is below the limit passes, and adds [`PACKET`] to it. Another
/// one is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// The bucket of a sender.
    pub hash: SenderHash,
    /// The limit of all levels.
    pub limit: u32,
}

/// What is counted in a bucket, which a filter in front of a queue may raise as well.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Bucket {
    /// [`PACKET`] for each packet of its senders, modulo 2^32.
    pub offered: AtomicU32,
    /// How far the share is used.
    pub level: AtomicU32,
}

/// The buckets of senders.
pub trait SenderTable: Send {
    /// [`BUCKETS`] of them.
    fn buckets(&self) -> &[Bucket];

    /// What the filter decides by, for a fraction of a second: it is to be renewed in each interval ([`super::INTERVAL`]). `None`: all packets
    /// pass uncounted.
    fn set(&mut self, rule: Option<&FilterRule>);

    /// Packets that the filter has dropped, modulo 2^64.
    fn dropped(&self) -> u64;
}

/// A table without a filter.
pub(super) struct OwnTable(Box<[Bucket]>);

impl OwnTable {
    pub(super) fn new() -> Self {
        Self((0..BUCKETS).map(|_| Bucket::default()).collect())
    }
}

impl SenderTable for OwnTable {
    fn buckets(&self) -> &[Bucket] {
        &self.0
    }

    fn set(&mut self, _rule: Option<&FilterRule>) {}

    fn dropped(&self) -> u64 {
        0
    }
}

impl FilterRule {
    /// Counts a packet of the senders in this bucket. Returns whether it passes. The filter in front of the queue decides the same.
    #[inline]
    pub fn admits(&self, buckets: &[Bucket], bucket: usize) -> bool {
        let Some(bucket) = buckets.get(bucket) else { return true };
        bucket.offered.fetch_add(PACKET, Ordering::Relaxed);
        let is_below = bucket.level.load(Ordering::Relaxed) < self.limit;
        if is_below {
            bucket.level.fetch_add(PACKET, Ordering::Relaxed);
        }
        is_below
    }
}
