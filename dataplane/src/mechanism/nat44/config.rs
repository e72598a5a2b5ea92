//! The configuration of a NAT44.

use super::portless::PortlessConfig;
use crate::frame::Realm;
use crate::identity::Identity;
use crate::nat::{
    AddressesInUse, Config, Filtering, PoolConfig, StateLimits, StaticBinding, StaticBindingError,
    SubscriberPolicy, Timeouts,
};
use crate::translate::Policy;
use alloc::sync::Arc;
use alloc::vec::Vec;
use sixway_wire::{Endpoint4, Prefix4};

/// Configuration of one NAT44.
#[derive(Clone, Debug)]
pub struct Nat44Config {
    /// The device that inside hosts are behind.
    pub realm: Realm,
    /// Its identity, for sessions that outlive this process.
    pub identity: Identity,
    /// Prefixes of the inside hosts.
    pub inside: Vec<Prefix4>,
    /// Destinations that the inside hosts reach with their own addresses, in addition to `inside`: nothing is translated on the way there.
    pub except: Vec<Prefix4>,
    /// Remote addresses with which sessions are not allowed (RFC 6888 REQ-6).
    pub excluded: Vec<Prefix4>,
    /// This host's IPv4 addresses that inside hosts may create sessions to.
    pub allow_own: Vec<Prefix4>,
    /// The outside addresses and ports.
    pub pool: PoolConfig,
    /// Which packets from outside are admitted.
    pub filtering: Filtering,
    /// Bindings that the administrator configures; their hosts are inside.
    pub static_bindings: Vec<StaticBinding<Endpoint4>>,
    /// Protocols without ports.
    pub portless: PortlessConfig,
    /// Lifetimes; those below the RFCs' floors are raised to them.
    pub timeouts: Timeouts,
    /// How large the tables of a worker may become. A subscriber is an IPv4 address.
    pub limits: StateLimits,
    /// The prefix length of a subscriber, and the subscribers without limits.
    pub subscribers: SubscriberPolicy<Prefix4>,
    /// Options of the translation; of them, NAT44 uses `clamp_mss`.
    pub policy: Policy,
    /// Tunnel packets of this gateway with a source that is inside are translated, too.
    pub translate_own_tunnels: bool,
    /// Whether control connections of FTP are read, and their data connections let in.
    pub ftp_alg: bool,
    /// Addresses of the pool that no further host gets.
    pub draining: Vec<Prefix4>,
    /// State of the pool's addresses that the workers share.
    pub in_use: Option<Arc<AddressesInUse>>,
}

impl Nat44Config {
    /// A NAT44 with the defaults of the configuration file.
    pub fn new(inside: Vec<Prefix4>, pool: PoolConfig) -> Self {
        Self {
            realm: Realm(0),
            identity: Identity::of_nat44(),
            inside,
            except: Vec::new(),
            excluded: Vec::new(),
            allow_own: Vec::new(),
            pool,
            filtering: Filtering::default(),
            static_bindings: Vec::new(),
            portless: PortlessConfig::default(),
            timeouts: Timeouts::default(),
            limits: StateLimits::default(),
            subscribers: SubscriberPolicy::new(Config::<Endpoint4>::SUBSCRIBER_BITS),
            policy: Policy::default(),
            translate_own_tunnels: false,
            ftp_alg: false,
            draining: Vec::new(),
            in_use: None,
        }
    }

    /// The configuration of its NAT.
    pub fn nat(&self) -> Config<Endpoint4> {
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
