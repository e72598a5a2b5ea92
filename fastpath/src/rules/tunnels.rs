//! Tunnels.

use super::header_form::{header_byte, word};
use super::lists::Lists;
use super::offer::Offer;
use super::unoffered::{Mechanism, UnofferedReason};
use crate::layout::{HOST4, KIND_ENGINE, MSS_STAYS, ROLE_HOST, ROLE_RELAY, ROLE_ROUTER, TUNNELS, Tunnel};
use core::net::{IpAddr, Ipv4Addr};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::isatap::{self, IsatapConfig};
use sixway_dataplane::mechanism::six_rd::{self, SixRdConfig};
use sixway_dataplane::mechanism::six_to_four::{self, NativeSources, SixToFourConfig};
use sixway_dataplane::mechanism::table::Kind;
use sixway_dataplane::source_check::is_martian4;
use sixway_dataplane::tunnel::address::six_to_four::RELAY_ANYCAST_PREFIX;
use sixway_dataplane::tunnel::address::{Acceptable, Domain, Scope};
use sixway_dataplane::tunnel::ends::TunnelEnds;
use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy, path_mtu};
use sixway_wire::Prefix4;

/// Octets of an IPv6 and a TCP header without options.
const TCP_HEADERS: u16 = 60;
/// Tunnels that the programs have rules for.
const TUNNELS_WITH_RULES: [Kind; 4] = [Kind::Configured, Kind::SixToFour, Kind::SixRd, Kind::Isatap];

/// The tunnel's kind in the programs.
pub(super) fn kind(tunnel: &TunnelConfig) -> u8 {
    let kind = tunnel.kind();
    if TUNNELS_WITH_RULES.contains(&kind) { kind.number() } else { KIND_ENGINE }
}

/// Every IPv4 address that this host is called by in a tunnel, and whether it is really the host's.
pub(super) fn own_addresses(engine: &EngineConfig) -> Vec<(Ipv4Addr, bool)> {
    let mut all: Vec<(Ipv4Addr, bool)> = Vec::new();
    let mut add = |address, is_host4| {
        if !all.iter().any(|(known, _)| *known == address) {
            all.push((address, is_host4));
        }
    };
    if engine.tunnels.is_empty() {
        return all;
    }
    engine.host4.iter().for_each(|address| add(*address, true));
    engine.tunnels.iter().filter_map(TunnelConfig::local).for_each(|address| add(address, true));
    for ends in ends_of(engine) {
        if let IpAddr::V4(local) = ends.local {
            add(local, true);
        }
    }
    for tunnel in &engine.tunnels {
        if let TunnelConfig::SixToFour(config) = tunnel {
            add(config.site(), false);
        }
    }
    all
}

/// The ends of tunnels of IP in IP.
pub(super) fn ends_of(engine: &EngineConfig) -> impl Iterator<Item = TunnelEnds> {
    engine.others.iter().chain(&engine.tunnels).filter_map(TunnelConfig::ends)
}

pub(super) fn set_tunnels(offer: &mut Offer, engine: &EngineConfig) {
    let mut lists = Lists::default();
    let mut refused: Vec<(usize, UnofferedReason)> = Vec::new();
    for (index, config) in engine.tunnels.iter().enumerate() {
        match tunnel(index, config, engine, &mut lists) {
            Ok(tunnel) => offer.rules.config.tunnels[index] = tunnel,
            Err(why) => refused.push((index, why)),
        }
    }
    lists.write(&mut offer.rules.config);
    offer.rules.config.tunnels_count = engine.tunnels.len().min(TUNNELS) as u8;
    // A packet to this address may belong to the other tunnel, which the programs do not know.
    for (index, config) in engine.tunnels.iter().enumerate().take(TUNNELS) {
        let is_known = !refused.iter().any(|(other, _)| *other == index);
        let Some(local) = config.local().filter(|_| is_known) else { continue };
        if refused.iter().any(|(other, _)| engine.tunnels[*other].local() == Some(local)) {
            offer.rules.config.tunnels[index] = Tunnel::zero();
            offer.refuse(Mechanism::Tunnel(index), UnofferedReason::SharesEnd(local));
        }
    }
    for (index, why) in refused {
        offer.refuse(Mechanism::Tunnel(index), why);
    }
}

/// One tunnel; its lists go to `lists`.
fn tunnel(
    index: usize,
    config: &TunnelConfig,
    engine: &EngineConfig,
    lists: &mut Lists,
) -> Result<Tunnel, UnofferedReason> {
    if index >= TUNNELS {
        return Err(UnofferedReason::TooMany { what: "tunnels", room: TUNNELS });
    }
    if own_addresses(engine).len() > HOST4 {
        return Err(UnofferedReason::TooMany { what: "IPv4 addresses of this host", room: HOST4 });
    }
    if is_translated(config, engine) {
        return Err(UnofferedReason::Translated);
    }
    let mut made = by_policy(&config.tunnel_policy(), engine.limits.mtu4);
    made.kind = kind(config);
    made.local = config.local().map_or(0, word);
    if let TunnelConfig::Configured(config) = config {
        return configured(config, lists, made);
    }
    if let TunnelConfig::SixToFour(config) = config {
        return six_to_four(config, lists, made);
    }
    if let TunnelConfig::SixRd(config) = config {
        return six_rd(config, domain_number(config.domain, engine), lists, made);
    }
    if let TunnelConfig::Isatap(config) = config {
        return isatap(config, lists, made);
    }
    Err(UnofferedReason::EngineAlone)
}

/// Whether a NAT44 translates what the tunnel sends.
fn is_translated(tunnel: &TunnelConfig, engine: &EngineConfig) -> bool {
    let passes_nat = matches!(tunnel, TunnelConfig::Configured(_) | TunnelConfig::SixToFour(_));
    let Some(local) = tunnel.local().filter(|_| passes_nat) else { return false };
    let mut nats = engine.nat44.iter().filter(|nat44| nat44.translate_own_tunnels);
    nats.any(|nat44| nat44.inside.iter().any(|prefix| prefix.contains(local)))
}

/// RFC 4213 §3.2 where nothing was learnt of the path, as the engine's `tunnel_room`.
fn by_policy(policy: &TunnelPolicy, mtu4: u16) -> Tunnel {
    let (sets_ttl, ttl) = header_byte(policy.ttl);
    let (sets_dscp, dscp) = header_byte(policy.traffic_class);
    let known = path_mtu::room(mtu4);
    let (mtu, dont_fragment, learns) = match (policy.mtu, policy.outer_fragments) {
        (TunnelMtu::Static(mtu), OuterFragments::Allowed) => (mtu, false, false),
        (TunnelMtu::Static(mtu), OuterFragments::Never) => (mtu.min(known.mtu), true, true),
        (TunnelMtu::Dynamic, OuterFragments::Allowed) => (known.mtu, known.dont_fragment, true),
        (TunnelMtu::Dynamic, OuterFragments::Never) => (known.mtu, true, true),
    };
    Tunnel {
        sets_ttl,
        ttl,
        sets_dscp,
        dscp,
        ecn_normal: u8::from(policy.ecn == Ecn::Normal),
        dont_fragment: dont_fragment.into(),
        mtu,
        learns: learns.into(),
        mss: if policy.clamp_mss { mtu.saturating_sub(TCP_HEADERS) } else { MSS_STAYS },
        ..Tunnel::zero()
    }
}

fn configured(
    config: &ConfiguredConfig,
    lists: &mut Lists,
    mut made: Tunnel,
) -> Result<Tunnel, UnofferedReason> {
    // A name may lead anywhere.
    made.remote = config.remote.filter(|remote| !is_martian4(*remote)).map_or(0, word);
    made.strict = u8::from(config.strict_sources);
    if config.strict_sources {
        made.prefixes = lists.prefixes(&config.prefixes)?;
    }
    Ok(made)
}

fn six_to_four(
    config: &SixToFourConfig,
    lists: &mut Lists,
    mut made: Tunnel,
) -> Result<Tunnel, UnofferedReason> {
    made.role = match config.role {
        six_to_four::Role::Host => ROLE_HOST,
        six_to_four::Role::Router => ROLE_ROUTER,
        six_to_four::Role::Relay => ROLE_RELAY,
    };
    made.remote = config.relay.map_or(0, word);
    made.site = word(config.site());
    if let NativeSources::Listed(relays) = &config.native_sources {
        made.listed_only = 1;
        made.relays = lists.addresses(relays)?;
    }
    made.refused = lists.networks(&broadcasts(&config.subnets))?;
    Ok(made)
}

fn six_rd(
    config: &SixRdConfig,
    number: u8,
    lists: &mut Lists,
    mut made: Tunnel,
) -> Result<Tunnel, UnofferedReason> {
    let domain = config.domain;
    let mut refused = broadcasts(&config.subnets);
    match config.role {
        six_rd::Role::CustomerEdge => {
            made.role = ROLE_ROUTER;
            made.remote = config.border_relays.first().copied().map_or(0, word);
            made.relays = lists.addresses(&config.border_relays)?;
        }
        six_rd::Role::BorderRelay => {
            made.role = ROLE_RELAY;
            refused.extend(config.border_relays.iter().map(|relay| Prefix4::holding(*relay, 32)));
            refused.extend_from_slice(&config.other_relays);
            refused.push(RELAY_ANYCAST_PREFIX);
        }
    }
    made.domain = number;
    made.prefix = domain.prefix().address().octets();
    made.prefix_length = domain.prefix().length();
    made.shared = word(domain.shared().address());
    made.shared_length = domain.shared().length();
    made.refused = lists.networks(&refused)?;
    Ok(made)
}

fn isatap(config: &IsatapConfig, lists: &mut Lists, mut made: Tunnel) -> Result<Tunnel, UnofferedReason> {
    let acceptable = Acceptable::new(Scope::Network, &config.subnets);
    let routers = config.routers.iter().copied().filter(|router| acceptable.check(*router).is_ok());
    let routers: Vec<Ipv4Addr> = routers.collect();
    made.role = match config.role {
        isatap::Role::Host => ROLE_HOST,
        isatap::Role::Router => ROLE_ROUTER,
    };
    made.remote = routers.first().copied().map_or(0, word);
    made.prefixes = lists.prefixes(&config.prefixes)?;
    made.relays = lists.addresses(&routers)?;
    made.locators = lists.networks(&config.locators)?;
    made.refused = lists.networks(&broadcasts(&config.subnets))?;
    Ok(made)
}

/// Tunnels of one 6rd domain have one number, from 1.
fn domain_number(domain: Domain, engine: &EngineConfig) -> u8 {
    let is_of_it =
        |tunnel: &TunnelConfig| matches!(tunnel, TunnelConfig::SixRd(config) if config.domain == domain);
    let first = engine.tunnels.iter().position(is_of_it);
    first.map_or(0, |index| index as u8 + 1)
}

/// Network and broadcast addresses of attached networks; a /31 and a /32 have none (RFC 3021).
fn broadcasts(subnets: &[Prefix4]) -> Vec<Prefix4> {
    let subnets = subnets.iter().filter(|subnet| subnet.length() < 31);
    subnets
        .flat_map(|subnet| [subnet.last(), subnet.address()])
        .map(|address| Prefix4::holding(address, 32))
        .collect()
}
