//! The rows of problems, and of the use of pools.

use super::problem_kind::ProblemKind;
use serde::{Deserialize, Serialize};
use sixway_wire::Prefix4;

/// Something that needs the operator's attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRow {
    /// How bad it is.
    pub severity: Severity,
    /// What sort of problem: the name of a [`ProblemKind`].
    pub kind: String,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub advice: String,
}

/// How bad a problem is. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Packets are lost.
    Error,
    /// Packets may be lost, or soon will be.
    Warning,
}

impl ProblemRow {
    /// Packets are lost.
    pub fn error(kind: ProblemKind, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Error, kind: kind.name().into(), text: text.into(), advice: advice.into() }
    }

    /// Packets may be lost.
    pub fn warning(kind: ProblemKind, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(kind, text, advice) }
    }
}

/// The ports of a mechanism's pool, for one protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolRow {
    /// The mechanism that allocates them.
    pub mechanism: String,
    /// The pool's name.
    pub pool: String,
    /// `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// Ports in use, all addresses together.
    pub used: u64,
    /// Ports that are free.
    pub free: u64,
    /// Each worker's part, by worker number.
    pub by_worker: Vec<PoolShareRow>,
}

/// The port blocks of a pool, where subscribers have blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolBlocksRow {
    /// The mechanism that allocates them.
    pub mechanism: String,
    /// The pool's name.
    pub pool: String,
    /// Ports of a block.
    pub block_size: u16,
    /// Blocks that subscribers have.
    pub given: u64,
    /// Those of them without a port in use.
    pub unused: u64,
    /// Blocks that subscribers may get.
    pub free: u64,
    /// The addresses with the fewest free blocks, a thousand at most.
    pub by_address: Vec<AddressBlocksRow>,
    /// How many addresses have been in use.
    pub addresses: u64,
}

/// The port blocks of an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressBlocksRow {
    /// The address.
    pub address: std::net::Ipv4Addr,
    /// Blocks that subscribers have.
    pub given: u64,
    /// Blocks that subscribers may get: none while the address is drained.
    pub free: u64,
}

/// The remaining use of addresses of a pool that are being drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainingRow {
    /// The mechanism that has the pool.
    pub mechanism: String,
    /// The pool's name.
    pub pool: String,
    /// The addresses.
    #[serde(with = "prefix_text")]
    pub prefix: Prefix4,
    /// Bindings there, static ones included.
    pub bindings: u64,
    /// Inside hosts that have bindings there, and subscribers that have only port blocks there.
    pub hosts: u64,
    /// Sessions and static bindings of protocols without ports.
    pub portless: u64,
}

impl DrainingRow {
    /// Whether nothing is left, so that the addresses can be removed.
    pub const fn is_empty(&self) -> bool {
        self.bindings == 0 && self.hosts == 0 && self.portless == 0
    }
}

/// A prefix as text.
mod prefix_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use sixway_wire::Prefix4;

    pub(super) fn serialize<S: Serializer>(prefix: &Prefix4, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(prefix)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Prefix4, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A worker's part of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolShareRow {
    /// Ports in use.
    pub used: u64,
    /// Ports that are free.
    pub free: u64,
}

impl PoolShareRow {
    /// The used part; 0 of an empty pool.
    pub fn share(self) -> f64 {
        share(self.used, self.free)
    }
}

impl PoolRow {
    /// The used part; 0 of an empty pool.
    pub fn share(&self) -> f64 {
        share(self.used, self.free)
    }

    /// The worker whose part is the fullest, and how full that is; the first of several.
    pub fn fullest(&self) -> Option<(usize, f64)> {
        let shares = self.by_worker.iter().map(|row| row.share()).enumerate();
        shares.reduce(|worst, one| if one.1 > worst.1 { one } else { worst })
    }
}

fn share(used: u64, free: u64) -> f64 {
    match used.saturating_add(free) {
        0 => 0.0,
        all => used as f64 / all as f64,
    }
}
