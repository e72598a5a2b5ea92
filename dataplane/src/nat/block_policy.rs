//! The policy of port blocks: how subscribers get them, and which exist.
//!
//! Blocks are whole: all of their ports are the pool's, and none is well-known.

use core::ops::RangeInclusive;

/// The smallest block.
pub const SMALLEST_BLOCK: u16 = 64;

/// The largest block.
pub const LARGEST_BLOCK: u16 = 16_384;

/// The most blocks that a subscriber may have.
pub const MOST_BLOCKS: u32 = 16;

/// How subscribers get port blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPolicy {
    /// Ports of a block: a power of two, from [`SMALLEST_BLOCK`] to [`LARGEST_BLOCK`].
    pub size: u16,
    /// The most blocks of a subscriber, from 1 to [`MOST_BLOCKS`].
    pub most: u32,
    /// Seconds after which an unused block is returned.
    pub idle_seconds: u32,
}

/// The ports of the blocks of this size whose ports are all among these, and none well-known.
pub fn whole_blocks(ports: &[RangeInclusive<u16>], size: u16) -> impl Iterator<Item = RangeInclusive<u16>> {
    let firsts = (0..=u16::MAX).step_by(usize::from(size)).filter(|first| *first >= 1_024);
    let blocks = firsts.map(move |first| first..=first + (size - 1));
    blocks.filter(|block| block.clone().all(|port| ports.iter().any(|range| range.contains(&port))))
}
