//! The port blocks of pools, all workers together.

use super::gateway::Gateway;
use crate::admin::AdminError;
use crate::view::{AddressBlocksRow, PoolBlocksRow};
use crate::worker::{Command, Position, Table};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Addresses of a pool in an answer.
const ADDRESSES: usize = 1_000;

/// Blocks of addresses, given and free, by the place of their mechanism.
type ByAddress = BTreeMap<(u16, Ipv4Addr), (u64, u64)>;

impl Gateway {
    /// The port blocks of each pool whose subscribers have blocks.
    pub(super) async fn pool_blocks_rows(&self, tables: &[Table]) -> Result<Vec<PoolBlocksRow>, AdminError> {
        let in_blocks = self.facts.mechanisms.iter().zip(tables).zip(0..);
        let in_blocks: Vec<_> = in_blocks.filter(|((_, table), _)| table.blocks.size > 0).collect();
        let blocks = if in_blocks.is_empty() { ByAddress::new() } else { self.blocks_by_address().await? };
        let row = |((mechanism, table), place): ((&super::facts::Mechanism, &Table), u16)| {
            let of_mechanism = blocks.range((place, Ipv4Addr::UNSPECIFIED)..=(place, Ipv4Addr::BROADCAST));
            let by_address = of_mechanism.map(|((_, address), (given, free))| AddressBlocksRow {
                address: *address,
                given: *given,
                free: *free,
            });
            let mut by_address: Vec<AddressBlocksRow> = by_address.collect();
            by_address.sort_by_key(|row| (row.free, row.address));
            let addresses = by_address.len() as u64;
            by_address.truncate(ADDRESSES);
            PoolBlocksRow {
                mechanism: mechanism.name.clone(),
                pool: mechanism.pool.clone().unwrap_or_default(),
                block_size: table.blocks.size,
                given: table.blocks.given.into(),
                unused: table.blocks.unused.into(),
                free: table.blocks.free,
                by_address,
                addresses,
            }
        };
        Ok(in_blocks.into_iter().map(row).collect())
    }

    async fn blocks_by_address(&self) -> Result<ByAddress, AdminError> {
        let mut all = ByAddress::new();
        for worker in 0..self.workers() {
            let mut from = Some(Position::default());
            while let Some(position) = from {
                let (rows, next) =
                    self.ask(worker, |answer| Command::AddressBlocks(position, answer)).await?;
                for (mechanism, row) in rows {
                    let (given, free) = all.entry((mechanism, row.address)).or_default();
                    *given += u64::from(row.given);
                    *free += u64::from(row.free);
                }
                from = next;
            }
        }
        Ok(all)
    }
}
