//! The engines that are fuzzed: everything that can be configured, with tables so small that they run full.

use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::fragment::FragmentLimits;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::isatap::{self, IsatapConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::mechanism::six_rd::{self, Domain, SixRdConfig};
use sixway_dataplane::mechanism::six_to_four::{self, NativeSources, SixToFourConfig};
use sixway_dataplane::nat::{Filtering, Inside, NatProtocol, Outside, PoolConfig, StaticBinding, Timeouts};
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::translate::{Policy, UdpZeroChecksum};
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{Limits, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6};
use std::sync::Arc;

pub const LIMITS: Limits = Limits { mtu4: 1_400, mtu6: 1_500 };

/// What an input's first octet chooses.
#[derive(Clone, Copy, Debug)]
pub struct Choice(pub u8);

impl Choice {
    /// Address-dependent filtering instead of endpoint-independent.
    const fn address_dependent(self) -> bool {
        self.0 & 1 != 0
    }

    /// A dynamic pool for hosts without a mapping.
    const fn dynamic_pool(self) -> bool {
        self.0 & 2 != 0
    }

    /// UDP without checksum is dropped, hairpins leave.
    const fn strict(self) -> bool {
        self.0 & 4 != 0
    }

    /// Two workers.
    pub const fn workers(self) -> u8 {
        if self.0 & 8 != 0 { 2 } else { 1 }
    }

    /// How much fits into the outbox: almost nothing, or everything.
    pub const fn outbox(self) -> usize {
        if self.0 & 16 != 0 { 3 } else { 4_096 }
    }

    /// Tunnels of each kind.
    pub const fn tunnels(self) -> bool {
        self.0 & 32 != 0
    }

    /// The tunnels end at a site, and their MTU follows the path; else they end at a relay.
    const fn is_site(self) -> bool {
        self.0 & 64 != 0
    }

    /// What comes out of tunnels is joined.
    pub const fn join(self) -> bool {
        self.0 & 128 != 0
    }

    pub fn engine(self, worker: u8) -> Engine {
        Engine::new(&self.configuration(WorkerId(worker))).unwrap()
    }

    fn configuration(self, worker: WorkerId) -> EngineConfig {
        let mut policy = Policy::default();
        if self.strict() {
            policy.udp_zero_checksum = UdpZeroChecksum::Drop;
            policy.clamp_mss = false;
        }
        EngineConfig {
            own4: Some("192.0.2.254".parse().unwrap()),
            own6: Some("2001:db8::fe".parse().unwrap()),
            limits: LIMITS,
            nat64: vec![self.nat64(policy)],
            siit: vec![self.siit(policy)],
            tunnels: if self.tunnels() { self.ends(self.is_site()) } else { Vec::new() },
            join: self.join(),
            fragments: FragmentLimits {
                memory: 64 << 10,
                packets: 8,
                packets_per_source: 4,
                fragments_per_packet: 16,
                ..FragmentLimits::default()
            },
            worker,
            workers: self.workers(),
            seed: [0x5eed, 0x1ab],
            ..EngineConfig::default()
        }
    }

    /// The tunnels of a site, or of a relay. Two end at one address.
    pub fn ends(self, is_site: bool) -> Vec<TunnelConfig> {
        let mut policy = TunnelPolicy::default();
        if is_site {
            policy.mtu = TunnelMtu::Dynamic;
        }
        if self.strict() {
            policy.outer_fragments = OuterFragments::Never;
        }
        let routers = vec!["10.0.0.1".parse().unwrap()];
        let (local, inner) = ("192.0.2.9".parse().unwrap(), if is_site { "10.1.2.3" } else { "10.0.0.1" });
        let inner = inner.parse().unwrap();
        vec![
            TunnelConfig::SixToFour(SixToFourConfig {
                role: if is_site { six_to_four::Role::Router } else { six_to_four::Role::Relay },
                address: local,
                nat_address: None,
                relay: is_site.then(|| "192.88.99.1".parse().unwrap()),
                native_sources: NativeSources::AnyRelay,
                subnets: vec!["192.0.2.0/24".parse().unwrap()],
                policy,
            }),
            TunnelConfig::Configured(ConfiguredConfig {
                local,
                remote: "198.51.100.7".parse().ok(),
                prefixes: vec!["2001:db8:7::/48".parse().unwrap()],
                strict_sources: !self.strict(),
                policy,
            }),
            TunnelConfig::SixRd(SixRdConfig {
                domain: Domain::new("2001:ddd::/32".parse().unwrap(), "10.0.0.0/8".parse().unwrap()).unwrap(),
                role: if is_site { six_rd::Role::CustomerEdge } else { six_rd::Role::BorderRelay },
                address: inner,
                border_relays: routers.clone(),
                other_relays: Vec::new(),
                subnets: Vec::new(),
                policy,
            }),
            TunnelConfig::Isatap(IsatapConfig {
                role: if is_site { isatap::Role::Host } else { isatap::Role::Router },
                address: inner,
                prefixes: vec!["2001:db8:1:2::/64".parse().unwrap()],
                routers: if is_site { routers } else { Vec::new() },
                locators: Vec::new(),
                subnets: Vec::new(),
                policy,
            }),
        ]
    }

    fn nat64(self, policy: Policy) -> Nat64Config {
        let filtering = if self.address_dependent() {
            Filtering::AddressDependent
        } else {
            Filtering::EndpointIndependent
        };
        Nat64Config {
            inside: Vec::new(),
            excluded: vec!["198.51.100.250/32".parse().unwrap()],
            allow_own: Vec::new(),
            prefix: prefix("64:ff9b::/96"),
            pool: PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![4_000..=4_063] },
            filtering,
            ftp_alg: self.address_dependent(),
            static_bindings: vec![StaticBinding {
                softwire: None,
                protocol: NatProtocol::Tcp,
                inside: Inside(Endpoint6::new("2001:db8:9::9".parse().unwrap(), 80)),
                outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 4_000)),
            }],
            timeouts: Timeouts::default(),
            limits: sixway_dataplane::nat::StateLimits { sessions: 32, bindings: 24, ..Default::default() },
            subscribers: sixway_dataplane::nat::SubscriberPolicy::new(64),
            policy,
            draining: Vec::new(),
            in_use: None,
        }
    }

    fn siit(self, policy: Policy) -> SiitConfig {
        let rows = [
            ("198.51.100.8/29".parse().unwrap(), "2001:db8:1::/125".parse().unwrap()),
            ("198.51.100.64/31".parse().unwrap(), "2001:db8:2::/120".parse().unwrap()),
        ];
        SiitConfig {
            prefix: Some(prefix("2001:db8:64::/96")),
            excluded: vec!["198.51.100.250/32".parse().unwrap()],
            eam: Arc::new(EamTable::new(rows).unwrap()),
            hairpinning: if self.strict() { Hairpinning::Simple } else { Hairpinning::Intrinsic },
            icmp_source_pool: vec!["203.0.113.9".parse().unwrap()],
            dynamic_pool: self
                .dynamic_pool()
                .then(|| DynamicPoolConfig::new("172.16.0.0/29".parse().unwrap())),
            policy,
        }
    }
}

fn prefix(text: &str) -> Rfc6052 {
    Rfc6052::new(text.parse().unwrap(), true).unwrap()
}
