//! What a NAT64 is built from.

use crate::nat::{Filtering, PoolConfig, StaticBinding, StaticBindingError, Timeouts};
use crate::translate::Policy;
use crate::translate::address::rfc6052::Rfc6052;
use std::collections::BTreeSet;

/// Configuration of one NAT64.
#[derive(Clone, Debug)]
pub struct Nat64Config {
    /// Pref64::/n, and whether it stands for non-global addresses.
    pub prefix: Rfc6052,
    /// The outside addresses and ports.
    pub pool: PoolConfig,
    /// What packets from outside are let in.
    pub filtering: Filtering,
    /// Bindings that the administrator makes.
    pub static_bindings: Vec<StaticBinding>,
    /// Lifetimes; those below the RFCs' floors are raised to them.
    pub timeouts: Timeouts,
    /// Most bindings of a worker; when they are used up, new ones are refused.
    pub max_bindings: u32,
    /// Most dynamic bindings of a subscriber, an IPv6 /64, at a worker (RFC 6888 REQ-4); 0: no limit of its own.
    pub max_bindings_per_subscriber: u32,
    /// Most sessions of a worker; when they are used up, new ones are refused.
    pub max_sessions: u32,
    /// Translation options.
    pub policy: Policy,
}

impl Nat64Config {
    /// The static bindings that cannot be made, by their place in the list.
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
            } else if made == self.max_bindings {
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
