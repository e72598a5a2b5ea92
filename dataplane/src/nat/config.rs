//! The configuration of a NAT.

use crate::nat::block_policy::{BlockPolicy, whole_blocks};
use crate::nat::deterministic::Deterministic;
use crate::nat::inside_key::{InsideHost, InsideKey};
use crate::nat::permit::Filtering;
use crate::nat::pool::PoolConfig;
use crate::nat::state_limits::StateLimits;
use crate::nat::static_binding::{StaticBinding, StaticBindingError};
use crate::nat::timeouts::Timeouts;
use alloc::sync::Arc;
use sixway_wire::{Endpoint6, Prefix4};
use std::collections::BTreeSet;

/// Configuration of a NAT.
#[derive(Clone, Debug)]
pub struct Config<I: InsideKey = Endpoint6> {
    /// The outside addresses and ports.
    pub pool: PoolConfig,
    /// Which packets from outside are admitted.
    pub filtering: Filtering,
    /// Bindings that the administrator configures.
    pub static_bindings: Vec<StaticBinding<I>>,
    /// Lifetimes; those below the RFCs' floors are raised to them.
    pub timeouts: Timeouts,
    /// How large the tables of a worker may become.
    pub limits: StateLimits,
    /// The prefix length of a subscriber, and the subscribers without limits.
    pub subscribers: SubscriberPolicy<I::Network>,
}

/// The prefix length of a subscriber, and the subscribers without limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberPolicy<N> {
    /// Bits of the inside prefix that a subscriber has.
    pub bits: u8,
    /// Hosts whose subscribers no limit holds for; their share does.
    pub exempt: Vec<N>,
    /// Destinations whose sessions do not count to a subscriber's limits.
    pub exempt_destinations: Vec<Prefix4>,
    /// How they get port blocks; `None`: they have none.
    pub blocks: Option<BlockPolicy>,
    /// Which block each of them has; `None`: any that is free.
    pub deterministic: Option<Arc<Deterministic>>,
}

impl<N> SubscriberPolicy<N> {
    /// Subscribers with prefixes of this length, none of them exempt, and without port blocks.
    pub const fn new(bits: u8) -> Self {
        Self { bits, exempt: Vec::new(), exempt_destinations: Vec::new(), blocks: None, deterministic: None }
    }
}

impl<I: InsideKey> Config<I> {
    /// Bits of a subscriber's prefix, unless something else is configured.
    pub const SUBSCRIBER_BITS: u8 = <I::Site as InsideHost>::SUBSCRIBER_BITS;

    /// The pool as it is given: of whole blocks, where subscribers have such.
    pub(super) fn given(&self) -> PoolConfig {
        let PoolConfig { addresses, ports } = self.pool.clone();
        let ports = match self.subscribers.blocks {
            Some(BlockPolicy { size, .. }) => whole_blocks(&ports, size).collect(),
            None => ports,
        };
        PoolConfig { addresses, ports }
    }

    /// The static bindings that cannot be created, by their index in the list.
    pub fn faults(&self) -> Vec<(usize, StaticBindingError)> {
        let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
        let mut made = 0;
        let mut faults = Vec::new();
        for (index, binding) in self.static_bindings.iter().enumerate() {
            let fault = if !self.pool.addresses.iter().any(|p| p.contains(binding.outside.0.address)) {
                Some(StaticBindingError::NotInPool)
            } else if inside.contains(&(binding.protocol, binding.inside)) {
                Some(StaticBindingError::InsideInUse)
            } else if outside.contains(&(binding.protocol, binding.outside)) {
                Some(StaticBindingError::OutsideInUse)
            } else if made == self.limits.bindings {
                Some(StaticBindingError::TableFull)
            } else {
                None
            };
            match fault {
                Some(fault) => faults.push((index, fault)),
                None => {
                    inside.insert((binding.protocol, binding.inside));
                    outside.insert((binding.protocol, binding.outside));
                    made += 1;
                }
            }
        }
        faults
    }
}
