//! Translators and the pools of the stateful ones.

use super::{Mechanism, Offer, Unoffered, Why, too_many_translators};
use crate::layout::{
    HAIRPIN_INTRINSIC, HAIRPIN_OFF, HAIRPIN_SIMPLE, KIND_NAT64, KIND_SIIT, POOLS, Pool4, TRANSLATORS,
    Translator,
};
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::translate::{HeaderByte, Policy};
use sixway_wire::Prefix4;

impl Offer {
    /// Stateful translators first. An error: no stateless mechanism can be carried, for what is whose could not be said.
    pub(super) fn set_translators(&mut self, engine: &EngineConfig) -> Result<(), Why> {
        let all = engine.nat64.len() + engine.siit.len();
        let mut translators = Vec::new();
        for nat64 in &engine.nat64 {
            translators.push(translator(KIND_NAT64, Some(&nat64.prefix), &nat64.policy, engine.limits.mtu6));
        }
        for (index, siit) in engine.siit.iter().enumerate() {
            translators.push(stateless(siit, engine.limits.mtu6));
            if siit.prefix.is_some() && self.rules.config.default_siit == 0 {
                self.rules.config.default_siit = (engine.nat64.len() + index + 1) as u8;
            }
            if siit.dynamic_pool.is_some() {
                self.refuse(Mechanism::Siit(index), Why::DynamicPool);
            }
        }
        for (place, translator) in self.rules.config.translators.iter_mut().zip(translators) {
            *place = translator;
        }
        self.rules.config.translators_count = all.min(TRANSLATORS) as u8;
        self.rules.config.siit_count = engine.siit.len() as u8;
        for index in TRANSLATORS..engine.nat64.len() {
            self.refuse(Mechanism::Nat64(index), too_many_translators());
        }
        self.set_pools(engine)?;
        if all > TRANSLATORS {
            return Err(too_many_translators());
        }
        self.set_mappings(engine)
    }

    /// A translator whose pool finds no room keeps those flows that only leave; without all pools known, no IPv4 destination can be
    /// said to be a stateless translator's.
    fn set_pools(&mut self, engine: &EngineConfig) -> Result<(), Why> {
        let mut pools: Vec<Pool4> = Vec::new();
        let too_many = Why::TooMany { what: "IPv4 prefixes in pools", room: POOLS };
        let mut result = Ok(());
        for (index, nat64) in engine.nat64.iter().enumerate() {
            let places = nat64.pool.addresses.iter().map(|prefix| pool(*prefix, engine));
            let new: Vec<_> = places.filter(|place| !pools.contains(place)).collect();
            if pools.len() + new.len() > POOLS {
                self.refuse(Mechanism::Nat64(index), too_many.clone());
                result = Err(too_many.clone());
                continue;
            }
            pools.extend(new);
        }
        self.rules.config.pools[..pools.len()].copy_from_slice(&pools);
        self.rules.config.pools_count = pools.len() as u8;
        result
    }

    pub(super) fn refuse(&mut self, mechanism: Mechanism, why: Why) {
        self.unoffered.push(Unoffered { mechanism, why });
    }
}

fn pool(prefix: Prefix4, engine: &EngineConfig) -> Pool4 {
    let shared = prefix.length() == 32 && engine.host4.contains(&prefix.address());
    Pool4 { address: prefix.address().to_bits(), mask: prefix.mask(), shared: shared.into() }
}

fn stateless(siit: &SiitConfig, mtu6: u16) -> Translator {
    let mut made = translator(KIND_SIIT, siit.prefix.as_ref(), &siit.policy, mtu6);
    made.eam = u8::from(!siit.eam.is_empty() || siit.dynamic_pool.is_some());
    made.hairpinning = match siit.hairpinning {
        Hairpinning::Intrinsic => HAIRPIN_INTRINSIC,
        Hairpinning::Simple => HAIRPIN_SIMPLE,
        Hairpinning::Off => HAIRPIN_OFF,
    };
    made
}

fn translator(kind: u8, prefix: Option<&Rfc6052>, policy: &Policy, mtu6: u16) -> Translator {
    let (sets_tos, tos) = header_byte(policy.tos);
    let (sets_traffic_class, traffic_class) = header_byte(policy.traffic_class);
    let mut made = Translator {
        kind,
        sets_tos,
        tos,
        sets_traffic_class,
        traffic_class,
        lowest_mtu: policy.lowest_ipv6_mtu.min(mtu6),
        ..Translator::zero()
    };
    if let Some(prefix) = prefix {
        made.length = prefix.prefix().length();
        made.global_only = u8::from(prefix.is_global_only());
        made.prefix = prefix.prefix().address().octets();
    }
    made
}

/// Whether an octet is set, and to what.
pub(super) const fn header_byte(byte: HeaderByte) -> (u8, u8) {
    match byte {
        HeaderByte::Copy => (0, 0),
        HeaderByte::Set(value) => (1, value),
    }
}
