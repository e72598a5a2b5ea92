//! Translators and the pools of the stateful ones.

use super::eam::set_mappings;
use super::header_form::{header_byte, network};
use super::offer::Offer;
use super::unoffered::{Mechanism, UnofferedReason};
use crate::layout::{
    HAIRPIN_INTRINSIC, HAIRPIN_OFF, HAIRPIN_SIMPLE, INSIDES, KIND_NAT44, KIND_NAT64, KIND_NONE, KIND_SIIT,
    MSS_STAYS, POOLS, Pool4, TRANSLATORS, Translator,
};
use crate::slots::SlotAssignment;
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::frame::Realm;
use sixway_dataplane::limits::Limits;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::mechanism::table::Kind;
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::Prefix4;

/// Puts translators into their slots. On an error no stateless mechanism can be offloaded, because the owner of a packet would be unknown.
pub(super) fn set_translators(
    offer: &mut Offer,
    engine: &EngineConfig,
    places: &SlotAssignment,
) -> Result<(), UnofferedReason> {
    let config = &mut offer.rules.config;
    for (nat64, slot) in engine.nat64.iter().zip(&places.stateful) {
        let Some(slot) = *slot else { continue };
        config.translators[slot] = stateful(nat64, engine.limits);
    }
    // Sessions of realms are the engine's: the programs do not know by which device a packet belongs to a realm.
    let nat44: Vec<_> = engine.nat44.iter().filter(|nat44| nat44.realm == Realm(0)).collect();
    match (&nat44[..], places.stateful.get(engine.nat64.len()).copied().flatten()) {
        ([], _) => {}
        ([nat44], Some(slot)) => set_nat44(offer, (nat44, engine.limits), slot),
        ([_], None) => offer.refuse(Mechanism::Other(Kind::Nat44), too_many_translators()),
        _ => {
            let why = UnofferedReason::TooMany { what: "NAT44s", room: 1 };
            offer.refuse(Mechanism::Other(Kind::Nat44), why);
        }
    }
    let config = &mut offer.rules.config;
    for (siit, slot) in engine.siit.iter().zip(places.stateless.iter().copied()) {
        config.translators[slot] = stateless(siit, engine.limits);
        if siit.prefix.is_some() && config.default_siit == 0 {
            config.default_siit = (slot + 1) as u8;
        }
    }
    let last = config.translators.iter().rposition(|one| one.kind != KIND_NONE);
    config.translators_count = last.map_or(0, |last| last + 1) as u8;
    config.siit_count = engine.siit.len() as u8;
    let is_stateful = |one: &Translator| matches!(one.kind, KIND_NAT64 | KIND_NAT44);
    config.has_stateful = u8::from(config.translators.iter().any(is_stateful));
    for (index, _) in engine.siit.iter().enumerate().filter(|(_, siit)| siit.dynamic_pool.is_some()) {
        offer.refuse(Mechanism::Siit(index), UnofferedReason::DynamicPool);
    }
    let nat64 = places.stateful[..engine.nat64.len()].iter().enumerate();
    for (index, _) in nat64.filter(|(_, slot)| slot.is_none()) {
        offer.refuse(Mechanism::Nat64(index), too_many_translators());
    }
    set_pools(offer, engine)?;
    if engine.siit.iter().any(|siit| !siit.excluded.is_empty()) {
        return Err(UnofferedReason::ExcludedAddresses);
    }
    if places.stateful.len() + engine.siit.len() > TRANSLATORS {
        return Err(too_many_translators());
    }
    set_mappings(&mut offer.rules, engine, places)
}

/// A translator whose pool finds no room keeps those flows that only leave; without all pools known, no IPv4 destination can be
/// said to be a stateless translator's.
fn set_pools(offer: &mut Offer, engine: &EngineConfig) -> Result<(), UnofferedReason> {
    let mut pools: Vec<Pool4> = Vec::new();
    let too_many = UnofferedReason::TooMany { what: "IPv4 prefixes in pools", room: POOLS };
    let mut result = Ok(());
    let nat64 = engine.nat64.iter().zip(0..).map(|(nat64, index)| (&nat64.pool, Mechanism::Nat64(index)));
    let nat44 = engine.nat44.iter().map(|nat44| (&nat44.pool, Mechanism::Other(Kind::Nat44)));
    for (translators, mechanism) in nat64.chain(nat44) {
        let places = translators.addresses.iter().map(|prefix| pool(*prefix, engine));
        let new: Vec<_> = places.filter(|place| !pools.contains(place)).collect();
        if pools.len() + new.len() > POOLS {
            offer.refuse(mechanism, too_many.clone());
            result = Err(too_many.clone());
            continue;
        }
        pools.extend(new);
    }
    offer.rules.config.pools[..pools.len()].copy_from_slice(&pools);
    offer.rules.config.pools_count = pools.len() as u8;
    result
}

fn pool(prefix: Prefix4, engine: &EngineConfig) -> Pool4 {
    let shared = prefix.length() == 32 && engine.host4.contains(&prefix.address());
    Pool4 { address: prefix.address().to_bits(), mask: prefix.mask(), shared: shared.into() }
}

fn stateful(nat64: &Nat64Config, limits: Limits) -> Translator {
    let mut made = translator(KIND_NAT64, Some(&nat64.prefix), &nat64.policy, limits);
    made.identity = Identity::of_nat64(nat64.prefix.prefix()).number();
    made
}

/// A NAT44 whose inside has more prefixes than there is room for is the engine's.
fn set_nat44(offer: &mut Offer, (nat44, limits): (&Nat44Config, Limits), slot: usize) {
    if nat44.inside.len() > INSIDES {
        let what = "prefixes of NAT44's inside";
        let why = UnofferedReason::TooMany { what, room: INSIDES };
        return offer.refuse(Mechanism::Other(Kind::Nat44), why);
    }
    let config = &mut offer.rules.config;
    config.translators[slot] = Translator {
        kind: KIND_NAT44,
        identity: Identity::of_nat44().number(),
        mss: if nat44.policy.clamp_mss { limits.mss4() } else { MSS_STAYS },
        ..Translator::zero()
    };
    config.nat44 = (slot + 1) as u8;
    config.inside4.iter_mut().zip(&nat44.inside).for_each(|(place, inside)| *place = network(*inside));
    config.inside4_count = nat44.inside.len() as u32;
}

fn stateless(siit: &SiitConfig, limits: Limits) -> Translator {
    let mut made = translator(KIND_SIIT, siit.prefix.as_ref(), &siit.policy, limits);
    made.eam = u8::from(!siit.eam.is_empty() || siit.dynamic_pool.is_some());
    made.hairpinning = match siit.hairpinning {
        Hairpinning::Intrinsic => HAIRPIN_INTRINSIC,
        Hairpinning::Simple => HAIRPIN_SIMPLE,
        Hairpinning::Off => HAIRPIN_OFF,
    };
    made
}

fn translator(kind: u8, prefix: Option<&Rfc6052>, policy: &Policy, limits: Limits) -> Translator {
    let (sets_tos, tos) = header_byte(policy.tos);
    let (sets_traffic_class, traffic_class) = header_byte(policy.traffic_class);
    let mut made = Translator {
        kind,
        sets_tos,
        tos,
        sets_traffic_class,
        traffic_class,
        lowest_mtu: policy.lowest_ipv6_mtu.min(limits.mtu6),
        mss: if policy.clamp_mss { limits.translated_mss() } else { MSS_STAYS },
        ..Translator::zero()
    };
    if let Some(prefix) = prefix {
        made.length = prefix.prefix().length();
        made.global_only = u8::from(prefix.is_global_only());
        made.prefix = prefix.prefix().address().octets();
    }
    made
}

/// More translators than there is room for.
const fn too_many_translators() -> UnofferedReason {
    UnofferedReason::TooMany { what: "translators", room: TRANSLATORS }
}
