//! The configuration of an AFTR.

use crate::identity::Identity;
use crate::nat::{
    AddressesInUse, Config, Filtering, PoolConfig, SoftwireNetwork, StateLimits, StaticBinding,
    SubscriberPolicy, Timeouts,
};
use crate::translate::Policy;
use crate::tunnel::{TunnelMtu, TunnelPolicy};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix4;
use sixway_wire::Prefix6;

/// RFC 6333 §5.7: the AFTR's own address, as hosts behind softwires know it.
pub const AFTR_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 1);

/// The configuration of an AFTR.
#[derive(Clone, Debug)]
pub struct DsLiteConfig {
    /// Its identity, for sessions that are handed over to another process.
    pub identity: Identity,
    /// Its IPv6 addresses, routed into the device.
    pub addresses: Vec<Ipv6Addr>,
    /// Prefixes of the B4s.
    pub clients: Vec<Prefix6>,
    /// Sources that hosts behind softwires may have (RFC 6333 §11).
    pub inside: Vec<Prefix4>,
    /// Remote addresses with which sessions are not allowed (RFC 6888 REQ-6).
    pub excluded: Vec<Prefix4>,
    /// This host's IPv4 addresses that hosts behind softwires may create sessions to.
    pub allow_own: Vec<Prefix4>,
    /// The outside addresses and ports.
    pub pool: PoolConfig,
    /// Filtering of packets from outside.
    pub filtering: Filtering,
    /// Bindings that the administrator configures, each with its softwire.
    pub static_bindings: Vec<StaticBinding>,
    /// Lifetimes; those below the RFCs' floors are raised to them.
    pub timeouts: Timeouts,
    /// How large the tables of a worker may become. A subscriber is a prefix of the B4's address.
    pub limits: StateLimits,
    /// Softwires of a worker, at most.
    pub max_softwires: u32,
    /// Who is a subscriber, and which subscribers have no limits.
    pub subscribers: SubscriberPolicy<SoftwireNetwork>,
    /// Options of the translation; of them, an AFTR uses `clamp_mss`.
    pub policy: Policy,
    /// Options of the softwires.
    pub tunnel: TunnelPolicy,
    /// Addresses of the pool that no further host gets.
    pub draining: Vec<Prefix4>,
    /// State of the pool's addresses that the workers share.
    pub in_use: Option<Arc<AddressesInUse>>,
}

impl DsLiteConfig {
    /// Softwires, unless something else is configured.
    pub const SOFTWIRES: u32 = 262_144;
    /// Bits of the prefix that one subscriber has, unless something else is configured (RFC 6177).
    pub const SUBSCRIBER_BITS: u8 = 56;

    /// An AFTR with the defaults of the configuration file.
    pub fn new(addresses: Vec<Ipv6Addr>, clients: Vec<Prefix6>, pool: PoolConfig) -> Self {
        Self {
            identity: Identity::of_ds_lite(),
            addresses,
            clients,
            inside: Self::inside_by_default(),
            excluded: Vec::new(),
            allow_own: Vec::new(),
            pool,
            filtering: Filtering::default(),
            static_bindings: Vec::new(),
            timeouts: Timeouts::default(),
            limits: StateLimits::default(),
            max_softwires: Self::SOFTWIRES,
            subscribers: SubscriberPolicy::new(Self::SUBSCRIBER_BITS),
            policy: Policy::default(),
            tunnel: Self::tunnel_by_default(),
            draining: Vec::new(),
            in_use: None,
        }
    }

    /// RFC 6333 §11: private addresses (RFC 1918) and those of B4s.
    pub fn inside_by_default() -> Vec<Prefix4> {
        let prefix = |[a, b, c, d]: [u8; 4], bits| Prefix4::holding(Ipv4Addr::new(a, b, c, d), bits);
        vec![
            prefix([10, 0, 0, 0], 8),
            prefix([172, 16, 0, 0], 12),
            prefix([192, 168, 0, 0], 16),
            prefix([192, 0, 0, 0], 29),
        ]
    }

    /// The path decides the MTU (RFC 2473 §7.2), the Traffic Class is carried both ways (RFC 6333 §7.1), and there is no encapsulation limit: no
    /// tunnel is expected between a B4 and its AFTR.
    pub fn tunnel_by_default() -> TunnelPolicy {
        let (mtu, encapsulation_limit) = (TunnelMtu::Dynamic, None);
        TunnelPolicy { mtu, encapsulation_limit, copies_dscp_out: true, ..TunnelPolicy::default() }
    }

    /// The configuration of its NAT. Static bindings are made later, when their softwires have numbers.
    pub(super) fn nat(&self) -> Config<crate::nat::Softwire> {
        Config {
            pool: self.pool.clone(),
            filtering: self.filtering,
            static_bindings: Vec::new(),
            timeouts: self.timeouts.clone(),
            limits: self.limits,
            subscribers: self.subscribers.clone(),
        }
    }
}
