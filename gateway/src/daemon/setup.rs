//! The parts of a gateway, from the configuration.

use super::facts::{Mechanism, Translator};
use super::tunnel_view::TunnelView;
use crate::config::{Aftr, Config, Nat44, Nat64, ROUTE_METRIC, Realm, RealmRouting, Remote, Route, Siit};
use crate::host::{Forwarding, HostPlan, RealmPlan};
use crate::show::{count, plural};
use sixway_dataplane::mechanism::table::Kind;
use sixway_wire::Prefix4;
use std::path::{Path, PathBuf};

/// The settings of the host; `directory` holds state files.
pub(super) fn plan(config: &Config, directory: &Path, worker_key: [u64; 2]) -> HostPlan {
    let (mut routes4, mut routes6) = (Vec::new(), Vec::new());
    for route in config.routes() {
        match route {
            Route::V4(prefix) => routes4.push(prefix),
            Route::V6(prefix) => routes6.push(prefix),
        }
    }
    HostPlan {
        gateway: config.gateway.name.clone(),
        directory: directory.into(),
        device: config.tun.name.clone(),
        mtu: config.tun.mtu.into(),
        queue_length: config.tun.queue_length,
        queues: config.queues().max(config.gateway.workers).into(),
        workers: config.gateway.workers,
        worker_key,
        ports_per_block: config.ports_per_block(),
        subscriber_bits: config.subscriber_bits(),
        inside4: config.subscribers4(),
        pools: config.pool_prefixes(),
        super_frames: config.tun.super_frames,
        realms: realm_plans(config),
        routes4,
        last_resort: config.b4s().next().map(|_| ROUTE_METRIC),
        proxy_ndp: config.b4s().filter_map(|b4| Some(b4.local.followed_interface()?.to_owned())).collect(),
        routes6,
        pins: pins(config),
        forwarding: Forwarding { v4: config.routes_ipv4(), v6: config.translates() || config.routes_ipv6() },
        shared_ports: config.shared_ports().into_iter().map(|(_, ports)| ports).collect(),
        returns: false,
    }
}

/// The realms, by the numbers that they have in the engines.
fn realm_plans(config: &Config) -> Vec<RealmPlan> {
    let plan = |(realm, number): (&Realm, u16)| RealmPlan {
        name: realm.nat44.name.clone(),
        number,
        device: realm.device.clone(),
        routing: realm.routing.clone(),
        interfaces: realm.nat44.interfaces.clone(),
        inside: realm.nat44.inside.clone(),
    };
    config.realms.iter().zip(1..).map(plan).collect()
}

/// Where the fast path is pinned; empty without one.
pub(super) fn pins(config: &Config) -> PathBuf {
    let fast_path = config.fast_path.as_ref().filter(|it| it.is_on());
    fast_path.map_or_else(PathBuf::new, |it| it.pin_path.clone())
}

/// The mechanisms, in the order of the workers' tables: stateful translators first. Tunnels have no tables.
pub(super) fn mechanisms(config: &Config, tunnels: &TunnelView) -> Vec<Mechanism> {
    let nat64 = config.nat64.iter().map(|nat64| Mechanism {
        name: nat64.name.clone(),
        serves: nat64_serves(config, nat64),
        kind: Kind::Nat64,
        pool: Some(nat64.pool.clone()),
    });
    let vrf = |nat44: &Nat44| {
        let realm = config.realms.iter().find(|realm| realm.nat44.name == nat44.name)?;
        match &realm.routing {
            RealmRouting::Vrf(name) => Some(format!(" · VRF {name}")),
            RealmRouting::Table(_) => None,
        }
    };
    let nat44 = config.nat44s().map(|nat44| Mechanism {
        name: nat44.name.clone(),
        serves: nat44_serves(config, nat44) + &vrf(nat44).unwrap_or_default(),
        kind: Kind::Nat44,
        pool: Some(nat44.pool.clone()),
    });
    let aftrs = config.aftrs().map(|aftr| Mechanism {
        name: aftr.name.clone(),
        serves: aftr_serves(config, aftr),
        kind: Kind::DsLite,
        pool: Some(aftr.pool.clone()),
    });
    let siit = config.siit.iter().map(|siit| Mechanism {
        name: siit.name.clone(),
        serves: siit_serves(siit),
        kind: Kind::Siit,
        pool: None,
    });
    let others = config.others.all().into_iter().map(|it| Mechanism {
        name: it.name().to_owned(),
        serves: it.serves(),
        kind: it.engine().kind(),
        pool: None,
    });
    let tunnel = |name: &String, kind| Mechanism {
        name: name.clone(),
        serves: tunnels.serves.get(name).cloned().unwrap_or_default(),
        kind,
        pool: None,
    };
    let six_to_four = config.six_to_four.iter().map(|it| tunnel(&it.name, Kind::SixToFour));
    let six_rd = config.six_rd.iter().map(|it| tunnel(&it.name, Kind::SixRd));
    let configured = config.configured_tunnels.iter().map(|it| tunnel(&it.name, Kind::Configured));
    let isatap = config.isatap.iter().map(|it| tunnel(&it.name, Kind::Isatap));
    let translators = nat64.chain(nat44).chain(aftrs).chain(siit).chain(others);
    let b4s = config.b4s().map(|it| tunnel(&it.name, Kind::B4));
    let translators = translators.chain(b4s);
    translators.chain(six_to_four).chain(six_rd).chain(configured).chain(isatap).collect()
}

/// The static bindings that each stateful mechanism allows.
pub(super) fn translators(config: &Config) -> Vec<Translator> {
    let pool = |name: &str| config.pool(name).cloned();
    let nat64 = config.nat64.iter().filter_map(|nat64| {
        Some(Translator {
            prefix: Some(nat64.prefix.prefix()),
            has_softwires: false,
            inside4: None,
            pool: pool(&nat64.pool)?,
            is_deterministic: nat64.subscribers.blocks.deterministic,
        })
    });
    let nat44 = config.nat44s().filter_map(|nat44| {
        Some(Translator {
            prefix: None,
            has_softwires: false,
            inside4: Some(nat44.inside.clone()),
            pool: pool(&nat44.pool)?,
            is_deterministic: nat44.subscribers.blocks.deterministic,
        })
    });
    let aftrs = config.aftrs().filter_map(|aftr| {
        Some(Translator {
            prefix: None,
            has_softwires: true,
            inside4: Some(aftr.inside.clone()),
            pool: pool(&aftr.pool)?,
            is_deterministic: aftr.subscribers.blocks.deterministic,
        })
    });
    nat64.chain(nat44).chain(aftrs).collect()
}

/// The tunnels with a name as remote end, and the networks that it may resolve to.
pub(super) fn named_remotes(config: &Config) -> Vec<(String, Vec<Prefix4>)> {
    let named = config.configured_tunnels.iter().filter(|tunnel| matches!(tunnel.remote, Remote::Name(_)));
    named.map(|tunnel| (tunnel.name.clone(), tunnel.remote_within.clone())).collect()
}

/// The dynamic pools: the mechanism's place, and the file.
pub(super) fn pool_files(config: &Config) -> Vec<(u16, &Path)> {
    let first = config.nat64.len() + config.nat44s().count() + config.aftrs().count();
    let siit = config.siit.iter().enumerate().filter(|(_, siit)| siit.dynamic_pool.is_some());
    siit.map(|(index, siit)| ((first + index) as u16, siit.dynamic_state.as_path())).collect()
}

fn nat64_serves(config: &Config, nat64: &Nat64) -> String {
    let pool = pool_serves(config, &nat64.pool, nat64.static_bindings.len());
    format!("{} ⇄ {pool}", nat64.prefix.prefix())
}

fn nat44_serves(config: &Config, nat44: &Nat44) -> String {
    let inside: Vec<String> = nat44.inside.iter().map(Prefix4::to_string).collect();
    let pool = pool_serves(config, &nat44.pool, nat44.static_bindings.count());
    format!("{} ⇄ {pool}", inside.join(", "))
}

fn aftr_serves(config: &Config, aftr: &Aftr) -> String {
    let ends: Vec<String> = aftr.addresses.iter().map(ToString::to_string).collect();
    let clients: Vec<String> = aftr.clients.iter().map(ToString::to_string).collect();
    let pool = pool_serves(config, &aftr.pool, aftr.static_bindings.len());
    format!("aftr {} · B4s in {} ⇄ {pool}", ends.join(", "), clients.join(", "))
}

/// The pool of a translator, and how many static bindings there are.
fn pool_serves(config: &Config, name: &str, bindings: usize) -> String {
    let pool = config.pool(name).map_or_else(String::new, |pool| {
        let addresses = pool.address_count();
        let ports = addresses * u64::from(pool.ports.count());
        format!(": {}, {}", plural_es(addresses, "address"), plural(ports, "port"))
    });
    let bindings = match bindings {
        0 => String::new(),
        count => format!(" · {}", plural(count as u64, "static binding")),
    };
    format!("pool {name}{pool}{bindings}")
}

fn siit_serves(siit: &Siit) -> String {
    let mut parts: Vec<String> = siit.prefix.iter().map(|prefix| prefix.prefix().to_string()).collect();
    match siit.mappings.count() {
        0 => {}
        mappings => parts.push(plural(mappings as u64, "mapping")),
    }
    parts.extend(siit.dynamic_pool.map(|pool| format!("dynamic pool {pool}")));
    parts.join(" · ")
}

fn plural_es(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "es" })
}
