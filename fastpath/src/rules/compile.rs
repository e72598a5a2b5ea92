//! [`Offer::of`]: an engine's configuration, mechanism by mechanism.

use super::header_form::{word, words};
use super::offer::Offer;
use super::sources::set_sources;
use super::surroundings::Surroundings;
use super::translators::set_translators;
use super::tunnels::{ends_of, kind, own_addresses, set_tunnels};
use super::unoffered::{Mechanism, Unoffered, UnofferedReason};
use crate::layout::{
    HOST4, KIND_ENGINE, KIND_NAT64, KIND_SIIT, MSS_ENGINE, Own, PORTS, RULES, Rule6, TUNNELS,
};
use crate::slots::{SlotAssignment, Slots};
use core::net::{IpAddr, Ipv6Addr};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::frame::Realm;
use sixway_dataplane::mechanism::contract::Claims;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_wire::Prefix6;

impl Offer {
    /// What it carries of an engine's configuration.
    pub fn of(engine: &EngineConfig, around: &Surroundings) -> Self {
        let mut offer = Self::default();
        offer.set_surroundings(engine, around);
        let mut stateless = around.not_plain.clone().map_or(Ok(()), |why| Err(UnofferedReason::Routing(why)));
        let places = places(engine, &around.slots);
        stateless = stateless.and(set_translators(&mut offer, engine, &places));
        // The programs know no IPv4 destination that goes into a tunnel.
        let takes_v4 = |tunnel: &TunnelConfig| !tunnel.claims().destinations4.is_empty();
        if engine.tunnels.iter().any(takes_v4) {
            stateless = stateless.and(Err(UnofferedReason::EngineAlone));
        }
        offer.set_own(engine);
        set_tunnels(&mut offer, engine);
        stateless = stateless.and(offer.set_prefixes(engine, &places));
        stateless = stateless.and(offer.set_others(engine));
        stateless = stateless.and(set_sources(&mut offer.rules.config, engine, around));
        if !around.forwards_syn {
            offer.leave_syn_to_engine();
        }
        match stateless {
            Ok(()) => offer.rules.config.has_stateless = u8::from(offer.has_any()),
            Err(why) => offer.refuse_stateless(engine, &why),
        }
        offer.unoffered.sort_by_key(|one| one.mechanism);
        offer
    }

    /// SYNs of the stateless mechanisms pass the host's packet filter. Of the stateful ones, whose SYNs are the engine's, there are SYN/ACKs alone.
    fn leave_syn_to_engine(&mut self) {
        let config = &mut self.rules.config;
        let stateless = config.translators.iter_mut().filter(|one| one.kind == KIND_SIIT);
        stateless.for_each(|one| one.mss = MSS_ENGINE);
        config.tunnels.iter_mut().for_each(|one| one.mss = MSS_ENGINE);
    }

    fn set_surroundings(&mut self, engine: &EngineConfig, around: &Surroundings) {
        let config = &mut self.rules.config;
        config.tun = around.tun;
        config.tun_mtu = around.tun_mtu.into();
        (config.idle_tcp, config.idle_udp, config.idle_icmp, config.absence) =
            (around.idle_tcp, around.idle_udp, around.idle_icmp, around.absence);
        let ports = &around.ports[..around.ports.len().min(PORTS)];
        config.ports[..ports.len()].copy_from_slice(ports);
        config.ports_count = ports.len() as u8;
        config.plain_routing = u8::from(around.not_plain.is_none());
        (config.mtu4, config.mtu6) = (engine.limits.mtu4, engine.limits.mtu6);
        config.own4 = engine.own4.map_or(0, word);
        config.own6 = engine.own6.unwrap_or(Ipv6Addr::UNSPECIFIED).octets();
        config.identification = (engine.seed[0] >> 32) as u32;
    }

    /// By what this host is known to tunnels.
    fn set_own(&mut self, engine: &EngineConfig) {
        let all = own_addresses(engine);
        let config = &mut self.rules.config;
        for (place, (address, is_host4)) in config.own.iter_mut().zip(&all) {
            *place = Own {
                address: word(*address),
                public_: u8::from(sixway_dataplane::tunnel::address::embedded::is_public(*address)),
                is_host4: u8::from(*is_host4),
                ..Own::zero()
            };
        }
        config.own_count = all.len().min(HOST4) as u8;
        // Addresses that do not fit count as unknown; their packets are left to the engine.
        let host6 = engine.host6.iter().chain(&engine.own6);
        for (place, address) in config.host6.iter_mut().zip(host6.clone()) {
            *place = address.octets();
        }
        config.host6_count = host6.count().min(HOST4) as u8;
    }

    /// Whose the IPv6 destinations are, longest prefix first, as `Engine::new` has it.
    fn set_prefixes(
        &mut self,
        engine: &EngineConfig,
        places: &SlotAssignment,
    ) -> Result<(), UnofferedReason> {
        let mut all: Vec<(Prefix6, u8, usize)> = Vec::new();
        all.extend(engine.nat64.iter().map(|one| (one.prefix.prefix(), KIND_NAT64, 0)));
        for (one, index) in engine.siit.iter().zip(places.stateless.iter().copied()) {
            all.extend(one.prefix.iter().map(|prefix| (prefix.prefix(), KIND_SIIT, index)));
        }
        for (index, tunnel) in engine.tunnels.iter().enumerate() {
            let kind = if index < TUNNELS { kind(tunnel) } else { KIND_ENGINE };
            let prefixes = tunnel.claims().destinations6;
            all.extend(prefixes.into_iter().map(|prefix| (prefix, kind, index % TUNNELS)));
        }
        // What came to an IPv6 end of a tunnel may be under another's prefix.
        let ends = ends_of(engine).filter_map(|ends| match ends.local {
            IpAddr::V6(local) => Some(Prefix6::holding(local, 128)),
            IpAddr::V4(_) => None,
        });
        all.extend(ends.map(|prefix| (prefix, KIND_ENGINE, 0)));
        let others = engine.others.iter().flat_map(|other| other.claims().destinations6);
        all.extend(others.map(|prefix| (prefix, KIND_ENGINE, 0)));
        all.sort_by_key(|(prefix, _, _)| core::cmp::Reverse(prefix.length()));
        if all.len() > RULES {
            return Err(UnofferedReason::TooMany { what: "IPv6 prefixes of all mechanisms", room: RULES });
        }
        self.rules.config.rules_count = all.len() as u8;
        for (place, (prefix, kind, index)) in self.rules.config.rules.iter_mut().zip(all) {
            let (bits, mask) = words(prefix);
            *place = Rule6 { bits, mask, length: prefix.length(), kind, index: index as u8, ..Rule6::zero() };
        }
        Ok(())
    }

    /// Mechanisms of other kinds are the engine's. Their IPv6 destinations and their sources are known; whose packets are claimed by anything
    /// else is not found out here.
    fn set_others(&mut self, engine: &EngineConfig) -> Result<(), UnofferedReason> {
        let mut result = Ok(());
        for other in &engine.others {
            self.refuse(Mechanism::Other(other.kind()), UnofferedReason::EngineAlone);
            let Claims { destinations6: _, destinations4, ports4, inside6: _, inside4: _, names, rest4 } =
                other.claims();
            if !destinations4.is_empty() || ports4.is_some() || names || rest4 {
                result = Err(UnofferedReason::OthersDestinations(other.kind()));
            }
        }
        result
    }

    fn has_any(&self) -> bool {
        let translators = self.rules.config.translators.iter().any(|one| one.kind == KIND_SIIT);
        translators || self.rules.config.tunnels.iter().any(|one| one.kind != 0)
    }

    /// Leaves every stateless mechanism to the engine.
    fn refuse_stateless(&mut self, engine: &EngineConfig, why: &UnofferedReason) {
        self.rules.config.has_stateless = 0;
        let known = core::mem::take(&mut self.unoffered);
        self.unoffered = known
            .into_iter()
            .filter(|one| matches!(one.mechanism, Mechanism::Nat64(_) | Mechanism::Other(_)))
            .collect();
        let siit = (0..engine.siit.len()).map(Mechanism::Siit);
        for mechanism in siit.chain((0..engine.tunnels.len()).map(Mechanism::Tunnel)) {
            self.unoffered.push(Unoffered { mechanism, why: why.clone() });
        }
        self.rules.tables.clear();
    }
}

/// Where the translators are.
fn places(engine: &EngineConfig, before: &Slots) -> SlotAssignment {
    let nat64 = engine.nat64.iter().map(|nat64| Identity::of_nat64(nat64.prefix.prefix()));
    // They have one identity.
    let nat44 = engine.nat44.iter().find(|nat44| nat44.realm == Realm(0)).map(|_| Identity::of_nat44());
    let stateful: Vec<_> = nat64.chain(nat44).collect();
    before.place(&stateful, engine.siit.len())
}
