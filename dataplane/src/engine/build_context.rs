//! The arguments that mechanisms are built with, and the tunnels of a worker without an engine.

use super::config::EngineConfig;
use super::tunnel_addresses::{TunnelAt, own_addresses};
use crate::kind::Kind;
use crate::mechanism::contract::BuildContext;
use crate::mechanism::nat44::Nat44Config;
use crate::mechanism::table::Mechanisms;
use crate::tunnel::outer_nat::OuterNat;
use crate::verdict::{MechanismId, PolicyId};
use alloc::sync::Arc;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix4;

/// What a worker's mechanisms are built with.
pub(super) fn build_context(config: &EngineConfig, own6: Option<Ipv6Addr>) -> BuildContext {
    BuildContext {
        worker: config.worker,
        workers: config.workers,
        seed: config.seed,
        worker_key: config.worker_key,
        own4: config.own4,
        own6: config.own6,
        translation_prefixes: config.nat64.iter().map(|nat64| nat64.prefix.prefix()).collect(),
        host4: config.host4.clone(),
        own_addresses: Arc::new(own_addresses(config, own6)),
        outer_nats: outer_nats(config),
    }
}

/// The NAT44s that translate what tunnels send.
fn outer_nats(config: &EngineConfig) -> Vec<(Vec<Prefix4>, OuterNat)> {
    let nats = config.nat44.iter().enumerate().filter(|(_, nat44)| nat44.translate_own_tunnels);
    let outer_nat = |(index, nat44): (usize, &Nat44Config)| {
        let nat = MechanismId { kind: Kind::Nat44, index: index as u16 };
        let except = nat44.inside.iter().chain(&nat44.except).copied().collect();
        (nat44.inside.clone(), OuterNat { nat, except })
    };
    nats.map(outer_nat).collect()
}

/// The tunnels alone, each with where it ends; their policies are numbered from zero.
pub(super) fn tunnel_states(config: &EngineConfig) -> (Mechanisms, Vec<(TunnelAt, Ipv4Addr)>) {
    let (context, mut mechanisms, mut tunnels) =
        (build_context(config, config.own6), Mechanisms::default(), Vec::new());
    for (number, one) in config.tunnels.iter().enumerate() {
        let policy = PolicyId(number as u16);
        if let (Ok(id), Some(local)) = (mechanisms.add(one, policy, &context), one.local()) {
            tunnels.push((TunnelAt { id, policy }, local));
        }
    }
    (mechanisms, tunnels)
}
