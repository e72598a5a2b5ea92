//! Sources that the kernel's routes, or the owner of a packet, depend on. A cached result for a destination does not apply to them: their
//! packets are left to the engine, and so are packets that would have such a source as a result.

use super::header_form::{network, place};
use super::surroundings::Surroundings;
use super::unoffered::UnofferedReason;
use crate::layout::{Config, SOURCES};
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::frame::Realm;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::contract::{Claims, InsideClaim};
use sixway_wire::{Prefix4, Prefix6};

/// Those of the host's policy rules, and those by which mechanisms have their packets.
pub(super) fn set_sources(
    config: &mut Config,
    engine: &EngineConfig,
    around: &Surroundings,
) -> Result<(), UnofferedReason> {
    let (mut sources4, mut sources6) = (around.sources4.clone(), around.sources6.clone());
    for Claims { inside4, inside6, .. } in others(engine).map(|other| other.claims()) {
        sources4.extend(inside4.iter().map(|InsideClaim { sources, .. }| *sources));
        sources6.extend(inside6.iter().map(|InsideClaim { sources, .. }| *sources));
    }
    let sources4 = without_parts(sources4, Prefix4::length, Prefix4::overlaps);
    let sources6 = without_parts(sources6, Prefix6::length, Prefix6::overlaps);
    if sources4.len().max(sources6.len()) > SOURCES {
        return Err(UnofferedReason::TooMany { what: "sources that routes depend on", room: SOURCES });
    }
    (config.sources4_count, config.sources6_count) = (sources4.len() as u8, sources6.len() as u8);
    config.sources4.iter_mut().zip(sources4).for_each(|(slot, source)| *slot = network(source));
    config.sources6.iter_mut().zip(sources6).for_each(|(slot, source)| *slot = place(source));
    Ok(())
}

/// Mechanisms that may have packets by their source.
fn others(engine: &EngineConfig) -> impl Iterator<Item = MechanismConfig> + '_ {
    let nat44 =
        engine.nat44.iter().filter(|nat44| nat44.realm == Realm(0)).cloned().map(MechanismConfig::Nat44);
    engine.others.iter().cloned().chain(nat44)
}

/// Prefixes in an order that does not depend on how often, and where first, each was named; parts of others are left out.
fn without_parts<P: Copy + Ord>(mut all: Vec<P>, length: fn(P) -> u8, overlaps: fn(P, P) -> bool) -> Vec<P> {
    all.sort_unstable_by_key(|one| (length(*one), *one));
    let mut whole: Vec<P> = Vec::new();
    for one in all {
        if !whole.iter().any(|before| overlaps(*before, one)) {
            whole.push(one);
        }
    }
    whole
}
