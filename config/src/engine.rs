//! The engines' settings from the configuration, for each worker.

use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::fragment::FragmentLimits;
use sixway_dataplane::frame;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat44::{Nat44Config, PortlessBinding, PortlessConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::nat::{self, AddressesInUse, PoolConfig};
use sixway_dataplane::translate;
use sixway_dataplane::{Limits, WorkerId};
use sixway_wire::Prefix4;
use std::sync::Arc;

use crate::config::Config;
use crate::gateway::{Fragments, Gateway};
use crate::nat44::Nat44;
use crate::nat44_static::PortlessStatic;
use crate::nat64::Nat64;
use crate::pool::Pool;
use crate::siit::Siit;
use crate::static_binding::Static;
use crate::surroundings::Surroundings;
use crate::timeouts::{OfPorts, Timeouts};
use crate::translation::Translation;

impl Config {
    /// The engines' settings, for each worker; `seed` is secret randomness that they share. Tables of mappings
    /// are shared, bounds on sessions and on ICMP errors are divided.
    pub fn engines(&self, seed: [u64; 2], now: &Surroundings) -> Vec<EngineConfig> {
        let in_use: Vec<_> =
            self.used_pools().map(|pool| Arc::new(AddressesInUse::new(pool.address_count()))).collect();
        let shared = |mut engine: EngineConfig| {
            let nat64 = engine.nat64.iter_mut().map(|nat64| &mut nat64.in_use);
            let nat44 = engine.nat44.iter_mut().map(|nat44| &mut nat44.in_use);
            let aftrs = engine.others.iter_mut().filter_map(|other| match other {
                MechanismConfig::DsLite(aftr) => Some(&mut aftr.in_use),
                _ => None,
            });
            nat64
                .chain(nat44)
                .chain(aftrs)
                .zip(&in_use)
                .for_each(|(place, in_use)| *place = Some(in_use.clone()));
            engine
        };
        (0..self.gateway.workers).map(|worker| shared(self.engine(WorkerId(worker), seed, now))).collect()
    }

    fn engine(&self, worker: WorkerId, seed: [u64; 2], now: &Surroundings) -> EngineConfig {
        let workers = self.gateway.workers.max(1);
        EngineConfig {
            own4: self.ipv4_address(),
            own6: self.ipv6_address(now),
            tunnels: self.tunnels(now).into_iter().map(|(_, tunnel)| tunnel).collect(),
            host4: now.host4(),
            host6: self.host6(now),
            limits: Limits { mtu4: self.tun.mtu, mtu6: self.tun.mtu },
            nat64: self.nat64.iter().map(|nat64| nat64.engine(self.pool(&nat64.pool), workers)).collect(),
            nat44: self.nat44_engines(workers),
            fragments: self.fragments.limits(),
            siit: self.siit.iter().map(|siit| siit.engine(&self.gateway)).collect(),
            others: self.other_engines(workers, now),
            join: self.tun.super_frames,
            icmp_errors_per_second: self.gateway.icmp_errors_per_second.div_ceil(u32::from(workers)),
            fair_shares: Some(self.subscriber_bits().0),
            worker,
            workers,
            seed,
            ..EngineConfig::default()
        }
    }
}

impl Config {
    /// Mechanisms that need only their row of the table, and AFTRs.
    fn other_engines(&self, workers: u8, now: &Surroundings) -> Vec<MechanismConfig> {
        let aftrs = self.aftrs().map(|aftr| aftr.engine(self.pool(&aftr.pool), workers).into());
        let steady = self.others.all().into_iter().filter(|it| it.changing(now).is_none());
        steady.map(|it| self.with_mappings(it.engine())).chain(aftrs).collect()
    }

    /// A NAT46's mappings depend on the other sections.
    fn with_mappings(&self, mut engine: MechanismConfig) -> MechanismConfig {
        if let (MechanismConfig::Nat46(nat46), Some(settings)) = (&mut engine, self.mapping_settings()) {
            nat46.mappings = settings;
        }
        engine
    }

    /// Realms are numbered in their order; the numbers are not stored.
    fn nat44_engines(&self, workers: u8) -> Vec<Nat44Config> {
        let engine = |nat44: &Nat44| nat44.engine(self.pool(&nat44.pool), workers);
        let realms = self.realms.iter().zip(1..).map(|(realm, number)| Nat44Config {
            realm: frame::Realm(number),
            identity: Identity::of_realm(&realm.nat44.name),
            ..engine(&realm.nat44)
        });
        // Clients of the NAT46 behind the NAT44 reach servers with their own addresses.
        let pool = self.nat46().map(|nat46| nat46.pool);
        let main = self.nat44.iter().map(|nat44| {
            let mut engine = engine(nat44);
            engine.except.extend(pool);
            engine
        });
        main.chain(realms).collect()
    }
}

impl Nat64 {
    fn engine(&self, pool: Option<&Pool>, workers: u8) -> Nat64Config {
        Nat64Config {
            prefix: self.prefix,
            inside: self.inside.clone(),
            excluded: self.exclude_ipv4.clone(),
            allow_own: self.allow_own.clone(),
            pool: pool.map(Pool::engine).unwrap_or_default(),
            draining: pool.map(|pool| pool.draining.clone()).unwrap_or_default(),
            filtering: self.filtering,
            static_bindings: self.static_bindings.iter().map(Static::engine).collect(),
            timeouts: self.timeouts.engine(),
            limits: self.limits.of_each_worker(workers),
            subscribers: self.subscribers.engine(&self.inside, pool),
            policy: self.translation.engine(),
            ftp_alg: self.ftp_alg,
            in_use: None,
        }
    }
}

impl Nat44 {
    fn engine(&self, pool: Option<&Pool>, workers: u8) -> Nat44Config {
        let statics = &self.static_bindings;
        Nat44Config {
            realm: frame::Realm(0),
            identity: Identity::of_nat44(),
            inside: self.inside.clone(),
            except: self.except.clone(),
            excluded: self.exclude_ipv4.clone(),
            allow_own: self.allow_own.clone(),
            pool: pool.map(Pool::engine).unwrap_or_default(),
            draining: pool.map(|pool| pool.draining.clone()).unwrap_or_default(),
            filtering: self.filtering,
            static_bindings: statics.with_ports.iter().map(Static::engine).collect(),
            portless: PortlessConfig {
                subscriber_bits: self.subscribers.prefix_length,
                bindings: statics.portless.iter().map(PortlessStatic::engine).collect(),
                // Packets without ports to this host's own address are the host's.
                sessions: match pool {
                    Some(pool) if pool.shared => 0,
                    Some(_) | None => self.portless.sessions.div_ceil(workers.into()),
                },
                sessions_per_subscriber: self.portless.sessions_per_subscriber,
                timeout: self.timeouts.portless,
            },
            timeouts: self.timeouts.with_ports.engine(),
            limits: self.limits.of_each_worker(workers),
            subscribers: self.subscribers.engine(&self.inside, pool),
            policy: translate::Policy { clamp_mss: self.clamp_mss, ..translate::Policy::default() },
            translate_own_tunnels: self.translate_own_tunnels,
            ftp_alg: self.ftp_alg,
            in_use: None,
        }
    }
}

impl Pool {
    pub(crate) fn engine(&self) -> PoolConfig {
        PoolConfig { addresses: self.addresses.clone(), ports: self.ports.ranges().to_vec() }
    }
}

impl<E: Copy> Static<E> {
    fn engine(&self) -> nat::StaticBinding<E> {
        nat::StaticBinding {
            softwire: None,
            protocol: self.protocol,
            inside: nat::Inside(self.inside),
            outside: nat::Outside(self.outside),
        }
    }
}

impl PortlessStatic {
    fn engine(&self) -> PortlessBinding {
        PortlessBinding {
            protocol: self.protocol,
            inside: nat::Inside(self.inside),
            outside: nat::Outside(self.outside),
        }
    }
}

impl Timeouts {
    pub(crate) fn engine(&self) -> nat::Timeouts {
        nat::Timeouts {
            udp: self.udp_default,
            icmp: self.icmp_default,
            tcp_est: self.tcp_est,
            tcp_opening: self.tcp_opening,
            tcp_closing: self.tcp_closing,
            tcp_incoming_syn: self.tcp_incoming_syn,
            quarantine: self.quarantine,
            ports: self.port.iter().flat_map(OfPorts::engine).collect(),
        }
    }
}

impl Siit {
    fn engine(&self, gateway: &Gateway) -> SiitConfig {
        SiitConfig {
            prefix: self.prefix,
            excluded: self.exclude_ipv4.clone(),
            eam: self.mappings.table(),
            hairpinning: self.hairpinning,
            icmp_source_pool: self.icmp_sources().collect(),
            dynamic_pool: self.dynamic_pool.map(|prefix| self.dynamic(prefix, gateway)),
            policy: self.translation.engine(),
        }
    }

    /// The dynamic pool, without the gateway's own address and those of mappings.
    pub(crate) fn dynamic(&self, prefix: Prefix4, gateway: &Gateway) -> DynamicPoolConfig {
        let own = gateway.ipv4_address.map(|own| Prefix4::holding(own, 32));
        let mapped = self.mappings.iter().map(|(ipv4, _)| ipv4);
        DynamicPoolConfig {
            excluded: own.into_iter().chain(mapped).filter(|other| prefix.overlaps(*other)).collect(),
            lifetime: self.dynamic_lifetime,
            remembered: self.dynamic_remembered,
            hosts_per_subscriber: self.dynamic_hosts_per_subscriber,
            ..DynamicPoolConfig::new(prefix)
        }
    }
}

impl Translation {
    pub(crate) fn engine(&self) -> translate::Policy {
        translate::Policy {
            traffic_class: self.traffic_class,
            tos: self.tos,
            udp_zero_checksum: self.udp_zero_checksum,
            lowest_ipv6_mtu: self.lowest_ipv6_mtu,
            clamp_mss: self.clamp_mss,
        }
    }
}

impl Fragments {
    /// What a worker's reassembly is bounded by.
    fn limits(&self) -> FragmentLimits {
        let many = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        FragmentLimits {
            memory: usize::try_from(self.memory).unwrap_or(usize::MAX),
            packets: many(self.packets),
            packets_per_source: many(self.packets_per_source),
            fragments_per_packet: many(self.fragments_per_packet),
            timeout: self.timeout,
        }
    }
}
