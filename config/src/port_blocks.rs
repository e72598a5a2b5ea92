//! The keys of a NAT about port blocks: `block_size` and so on.

use crate::fault::Report;
use crate::pool::Pool;
use crate::section::Reader;
use crate::text;
use serde::Serialize;
use sixway_dataplane::nat::{BlockPolicy, Deterministic, DeterministicFault, SMALLEST_BLOCK, whole_blocks};
use sixway_wire::Prefix6;
use std::sync::Arc;
use std::time::Duration;

/// How subscribers get port blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortBlocks {
    /// Ports of a block; 0: no blocks, or with `deterministic` the largest size that suffices.
    #[serde(rename = "block_size")]
    pub size: u16,
    /// The most blocks of a subscriber.
    #[serde(rename = "max_blocks_per_subscriber")]
    pub most: u32,
    /// When an unused block is returned.
    #[serde(rename = "block_idle_timeout", serialize_with = "text::as_duration")]
    pub idle: Duration,
    /// Whether each subscriber has its block by a formula.
    pub deterministic: bool,
}

/// Whom blocks are given to, and from what.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    /// Prefixes of inside hosts, those of IPv4 as mapped ones.
    pub inside: &'a [Prefix6],
    /// Length of a subscriber's prefix, as that of an IPv6 address.
    pub bits: u8,
    /// `None`: it has a fault.
    pub pool: Option<&'a Pool>,
}

impl PortBlocks {
    pub(crate) fn read(section: &Reader, given: Given, report: &mut Report) -> Option<Self> {
        let size = section.value("block_size", report);
        let most = section.value("max_blocks_per_subscriber", report).and_then(|v| v.integer(report));
        let idle = section.value("block_idle_timeout", report).and_then(|v| v.duration(report));
        let deterministic = section.value("deterministic", report);
        let is_deterministic = deterministic.as_ref().and_then(|v| v.boolean(report))?;
        let (place, size): (_, u16) = (size.as_ref()?.place.clone(), size?.integer(report)?);
        let is_size = size == 0 || size >= SMALLEST_BLOCK && size.is_power_of_two();
        if !is_size {
            let near = size.max(SMALLEST_BLOCK).next_power_of_two();
            report.fault(&place, format!("{size} is not a power of two from 64 to 16384; write {near}"));
            return None;
        }
        let blocks = Self { size, most: most?, idle: idle?, deterministic: is_deterministic };
        let Some(pool) = given.pool else { return Some(blocks) };
        if is_deterministic {
            let place = deterministic.map_or(place, |v| v.place.clone());
            if !pool.draining.is_empty() {
                let what = "cannot be combined with pool.draining: each subscriber's address follows from the list; remove the addresses from the pool";
                report.fault(&place, what);
            }
            if pool.interface.is_some() {
                report.fault(&place, "needs a pool with `addresses`: that of an interface may change");
            } else if let Err(fault) = blocks.mapping(given) {
                report.fault(&place, text_of(fault));
            }
        } else if size > 0 && whole_blocks(pool.ports.ranges(), size).next().is_none() {
            let ports = &pool.ports;
            report.fault(
                &place,
                format!(
                    "the pool has no complete block of {size} ports above 1023: its ports are {ports}, and a block begins at a multiple of its size; write smaller blocks, or more ports"
                ),
            );
        }
        Some(blocks)
    }

    /// How the engine allocates blocks; `None`: it does not.
    pub(crate) fn engine(&self, mapping: Option<&Deterministic>) -> Option<BlockPolicy> {
        let idle_seconds = u32::try_from(self.idle.as_secs()).unwrap_or(u32::MAX);
        match (mapping, self.size) {
            (Some(mapping), _) => Some(BlockPolicy { size: mapping.size(), most: 1, idle_seconds }),
            (None, 0) => None,
            (None, size) => Some(BlockPolicy { size, most: self.most, idle_seconds }),
        }
    }

    /// Which block each subscriber has.
    pub(crate) fn deterministic(&self, given: Given) -> Option<Arc<Deterministic>> {
        if self.deterministic { self.mapping(given).ok().map(Arc::new) } else { None }
    }

    fn mapping(&self, Given { inside, bits, pool }: Given) -> Result<Deterministic, DeterministicFault> {
        let pool = pool.ok_or(DeterministicFault::Inside)?;
        Deterministic::new(inside, bits, (&pool.addresses, pool.ports.ranges()), self.size)
    }
}

fn text_of(fault: DeterministicFault) -> String {
    match fault {
        DeterministicFault::Inside => "needs `inside`, with prefixes that are not longer than that of a subscriber (`subscriber_prefix_length`)".into(),
        DeterministicFault::TooManySubscribers { subscribers, blocks } => format!(
            "`inside` has {subscribers} subscribers, but the pool has {blocks} port blocks for them; write smaller blocks, more addresses, or fewer inside prefixes"
        ),
    }
}
