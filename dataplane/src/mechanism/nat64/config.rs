//! The configuration of a NAT64.

use crate::nat::{
    AddressesInUse, Config, Filtering, PoolConfig, StateLimits, StaticBinding, StaticBindingError,
    SubscriberPolicy, Timeouts,
};
use crate::translate::Policy;
use crate::translate::address::rfc6052::Rfc6052;
use alloc::sync::Arc;
use sixway_wire::{Endpoint6, Prefix4, Prefix6};

/// Configuration of one NAT64.
#[derive(Clone, Debug)]
pub struct Nat64Config {
    /// Pref64::/n, and whether it represents non-global addresses.
    pub prefix: Rfc6052,
    /// Prefixes whose hosts may create bindings; empty: any.
    pub inside: Vec<Prefix6>,
    /// Remote IPv4 addresses with which sessions are not allowed (RFC 6888 REQ-6).
    pub excluded: Vec<Prefix4>,
    /// This host's IPv4 addresses that inside hosts may create sessions to.
    pub allow_own: Vec<Prefix4>,
    /// The outside addresses and ports.
    pub pool: PoolConfig,
    /// Which packets from outside are admitted.
    pub filtering: Filtering,
    /// Bindings that the administrator configures.
    pub static_bindings: Vec<StaticBinding>,
    /// Lifetimes; those below the RFCs' floors are raised to them.
    pub timeouts: Timeouts,
    /// How large the tables of a worker may become. A subscriber is an IPv6 /64.
    pub limits: StateLimits,
    /// The prefix length of a subscriber, and the subscribers without limits.
    pub subscribers: SubscriberPolicy<Prefix6>,
    /// Translation options.
    pub policy: Policy,
    /// Whether control connections of FTP are read, and their data connections let in.
    pub ftp_alg: bool,
    /// Addresses of the pool that no further host gets.
    pub draining: Vec<Prefix4>,
    /// State of the pool's addresses that the workers share.
    pub in_use: Option<Arc<AddressesInUse>>,
}

impl Nat64Config {
    /// A NAT64 with the defaults of the configuration file.
    pub fn new(prefix: Rfc6052, pool: PoolConfig) -> Self {
        Self {
            prefix,
            inside: Vec::new(),
            excluded: Vec::new(),
            allow_own: Vec::new(),
            pool,
            filtering: Filtering::default(),
            static_bindings: Vec::new(),
            timeouts: Timeouts::default(),
            limits: StateLimits::default(),
            subscribers: SubscriberPolicy::new(Config::<Endpoint6>::SUBSCRIBER_BITS),
            policy: Policy::default(),
            ftp_alg: false,
            draining: Vec::new(),
            in_use: None,
        }
    }

    /// The configuration of its NAT.
    pub fn nat(&self) -> Config {
        Config {
            pool: self.pool.clone(),
            filtering: self.filtering,
            static_bindings: self.static_bindings.clone(),
            timeouts: self.timeouts.clone(),
            limits: self.limits,
            subscribers: self.subscribers.clone(),
        }
    }

    /// The static bindings that cannot be created, by their index in the list.
    pub fn faults(&self) -> Vec<(usize, StaticBindingError)> {
        self.nat().faults()
    }
}
