//! The configuration of a NAT64.

use crate::nat::{Config, Filtering, PoolConfig, StaticBinding, StaticBindingError, Timeouts};
use crate::translate::Policy;
use crate::translate::address::rfc6052::Rfc6052;

/// Configuration of one NAT64.
#[derive(Clone, Debug)]
pub struct Nat64Config {
    /// Pref64::/n, and whether it represents non-global addresses.
    pub prefix: Rfc6052,
    /// The outside addresses and ports.
    pub pool: PoolConfig,
    /// Which packets from outside are admitted.
    pub filtering: Filtering,
    /// Bindings that the administrator configures.
    pub static_bindings: Vec<StaticBinding>,
    /// Lifetimes; those below the RFCs' floors are raised to them.
    pub timeouts: Timeouts,
    /// Maximum number of bindings of a worker. When it is reached, new ones are refused.
    pub max_bindings: u32,
    /// Maximum number of dynamic bindings of a subscriber, an IPv6 /64, at a worker (RFC 6888 REQ-4); 0: unlimited.
    pub max_bindings_per_subscriber: u32,
    /// Maximum number of sessions of a worker. When it is reached, new ones are refused.
    pub max_sessions: u32,
    /// Translation options.
    pub policy: Policy,
}

impl Nat64Config {
    /// A NAT64 with the defaults of the configuration file: 1,048,576 sessions and bindings, no limit for a subscriber.
    pub fn new(prefix: Rfc6052, pool: PoolConfig) -> Self {
        Self {
            prefix,
            pool,
            filtering: Filtering::default(),
            static_bindings: Vec::new(),
            timeouts: Timeouts::default(),
            max_bindings: 1 << 20,
            max_bindings_per_subscriber: 0,
            max_sessions: 1 << 20,
            policy: Policy::default(),
        }
    }

    /// What its NAT is built from.
    pub fn nat(&self) -> Config {
        Config {
            pool: self.pool.clone(),
            filtering: self.filtering,
            static_bindings: self.static_bindings.clone(),
            timeouts: self.timeouts,
            max_bindings: self.max_bindings,
            max_bindings_per_subscriber: self.max_bindings_per_subscriber,
            subscriber_bits: Config::<sixway_wire::Endpoint6>::SUBSCRIBER_BITS,
            max_sessions: self.max_sessions,
        }
    }

    /// The static bindings that cannot be created, by their index in the list.
    pub fn faults(&self) -> Vec<(usize, StaticBindingError)> {
        self.nat().faults()
    }
}
