//! From the engine's configuration to the programs' constants: what the stateless mechanisms decide by, said in arrays.
//!
//! Arrays end. A mechanism that they do not hold is left to the engine, and whatever might be mistaken for it, too; [`Unoffered`]
//! says which, and why.

mod eam;
mod lists;
mod translators;
mod tunnels;

use crate::layout::{
    HOST4, KIND_ENGINE, KIND_NAT64, KIND_SIIT, Own, PORTS, Port, RULES, Rule6, TRANSLATORS, TUNNELS,
};
use crate::settings::Rules;
use crate::slots::{Places, Slots};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::contract::Claims;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::table::Kind;
use sixway_wire::Prefix6;

pub use eam::EAM_ROWS;

/// What the programs must know beside the engine's configuration.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Index of the TUN device.
    pub tun: u32,
    /// Its MTU in octets.
    pub tun_mtu: u16,
    /// The interfaces that packets come in by; at most [`PORTS`].
    pub ports: Vec<Port>,
    /// Why the kernel's routes cannot be remembered by the destination alone; `None`: they can.
    pub not_plain: Option<String>,
    /// Ticks after which an idle TCP flow's packets are left to the engine.
    pub idle_tcp: u32,
    /// The same of UDP.
    pub idle_udp: u32,
    /// Ticks after which everything is passed on if the gateway is away.
    pub absence: u32,
    /// Where translators are whose flows a process before this one may have left.
    pub slots: Slots,
}

/// A mechanism, as it is counted: its place among those of its kind, or of all tunnels, in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// A stateful translator.
    Nat64(usize),
    /// A stateless translator.
    Siit(usize),
    /// A tunnel.
    Tunnel(usize),
    /// One of another kind, for which the programs have no rules.
    Other(Kind),
}

/// Why a mechanism is left to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no room for so many.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there is room for.
        room: usize,
    },
    /// Another tunnel that ends at the same address is left to the engine.
    SharesEnd(Ipv4Addr),
    /// Its hosts without a mapping have addresses of a dynamic pool; only they are left to the engine.
    DynamicPool,
    /// The programs have no rules for such a mechanism.
    EngineAlone,
    /// The kernel's routes do not follow from the destination alone.
    Routing(String),
    /// Packets for this one may be another mechanism's, by where they come from.
    OthersSources(Kind),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { what, room } => write!(f, "too many {what}; the fast path has room for {room}"),
            Self::SharesEnd(address) => {
                write!(f, "another tunnel that ends at {address} is not carried by the fast path")
            }
            Self::DynamicPool => f.write_str(
                "hosts of its dynamic pool are carried by the engine; those with a mapping are not",
            ),
            Self::EngineAlone => f.write_str("the fast path has no rules for such a mechanism"),
            Self::Routing(why) => f.write_str(why),
            Self::OthersSources(kind) => {
                write!(f, "packets may belong to {}, which the engine carries", kind.title())
            }
        }
    }
}

/// A mechanism that the fast path does not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unoffered {
    /// Which one.
    pub mechanism: Mechanism,
    /// Why.
    pub why: Why,
}

/// What the fast path carries of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The programs' constants and tables.
    pub rules: Rules,
    /// What is left to the engine, in the order of the mechanisms.
    pub unoffered: Vec<Unoffered>,
}

impl Offer {
    /// What it carries of an engine's configuration.
    pub fn of(engine: &EngineConfig, around: &Surroundings) -> Self {
        let mut offer = Self::default();
        offer.set_surroundings(engine, around);
        let mut stateless = around.not_plain.clone().map_or(Ok(()), |why| Err(Why::Routing(why)));
        let places = places(engine, &around.slots);
        stateless = stateless.and(offer.set_translators(engine, &places));
        // The programs know no IPv4 destination that goes into a tunnel.
        let takes_v4 = |tunnel: &TunnelConfig| !tunnel.claims().destinations4.is_empty();
        if engine.tunnels.iter().any(takes_v4) {
            stateless = stateless.and(Err(Why::EngineAlone));
        }
        offer.set_own(engine);
        offer.set_tunnels(engine);
        stateless = stateless.and(offer.set_prefixes(engine, &places));
        stateless = stateless.and(offer.set_others(engine));
        match stateless {
            Ok(()) => offer.rules.config.has_stateless = u8::from(offer.has_any()),
            Err(why) => offer.refuse_stateless(engine, &why),
        }
        offer.unoffered.sort_by_key(|one| one.mechanism);
        offer
    }

    fn set_surroundings(&mut self, engine: &EngineConfig, around: &Surroundings) {
        let config = &mut self.rules.config;
        config.tun = around.tun;
        config.tun_mtu = around.tun_mtu.into();
        (config.idle_tcp, config.idle_udp, config.absence) =
            (around.idle_tcp, around.idle_udp, around.absence);
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
        let all = tunnels::own_addresses(engine);
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
        // Those that do not fit are not told from strangers, whose packets are the engine's.
        let host6 = engine.host6.iter().chain(&engine.own6);
        for (place, address) in config.host6.iter_mut().zip(host6.clone()) {
            *place = address.octets();
        }
        config.host6_count = host6.count().min(HOST4) as u8;
    }

    /// Whose the IPv6 destinations are, longest prefix first, as `Engine::new` has it.
    fn set_prefixes(&mut self, engine: &EngineConfig, places: &Places) -> Result<(), Why> {
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
        let ends = tunnels::ends_of(engine).filter_map(|ends| match ends.local {
            IpAddr::V6(local) => Some(Prefix6::holding(local, 128)),
            IpAddr::V4(_) => None,
        });
        all.extend(ends.map(|prefix| (prefix, KIND_ENGINE, 0)));
        let others = engine.others.iter().flat_map(|other| other.claims().destinations6);
        all.extend(others.map(|prefix| (prefix, KIND_ENGINE, 0)));
        all.sort_by_key(|(prefix, _, _)| core::cmp::Reverse(prefix.length()));
        if all.len() > RULES {
            return Err(Why::TooMany { what: "IPv6 prefixes of all mechanisms", room: RULES });
        }
        self.rules.config.rules_count = all.len() as u8;
        for (place, (prefix, kind, index)) in self.rules.config.rules.iter_mut().zip(all) {
            let (bits, mask) = lists::words(prefix);
            *place = Rule6 { bits, mask, length: prefix.length(), kind, index: index as u8, ..Rule6::zero() };
        }
        Ok(())
    }

    /// Mechanisms of other kinds are the engine's. Their destinations are known; whose packets are claimed by anything else is not found out here.
    fn set_others(&mut self, engine: &EngineConfig) -> Result<(), Why> {
        let mut result = Ok(());
        for other in &engine.others {
            self.refuse(Mechanism::Other(other.kind()), Why::EngineAlone);
            let Claims { destinations6: _, destinations4, inside6, names, rest4 } = other.claims();
            if !destinations4.is_empty() || !inside6.is_empty() || names || rest4 {
                result = Err(Why::OthersSources(other.kind()));
            }
        }
        result
    }

    fn has_any(&self) -> bool {
        let translators = self.rules.config.translators.iter().any(|one| one.kind == KIND_SIIT);
        translators || self.rules.config.tunnels.iter().any(|one| one.kind != 0)
    }

    /// Leaves every stateless mechanism to the engine.
    fn refuse_stateless(&mut self, engine: &EngineConfig, why: &Why) {
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
fn places(engine: &EngineConfig, before: &Slots) -> Places {
    let stateful: Vec<_> =
        engine.nat64.iter().map(|nat64| Identity::of_nat64(nat64.prefix.prefix())).collect();
    before.place(&stateful, engine.siit.len())
}

/// Tunnels that the programs have rules for.
const TUNNELS_WITH_RULES: [Kind; 4] = [Kind::Configured, Kind::SixToFour, Kind::SixRd, Kind::Isatap];

/// The tunnel's kind in the programs.
fn kind(tunnel: &TunnelConfig) -> u8 {
    let kind = tunnel.kind();
    if TUNNELS_WITH_RULES.contains(&kind) { kind.number() } else { KIND_ENGINE }
}

/// An address as it stands in a header.
const fn word(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

/// More translators than there is room for.
const fn too_many_translators() -> Why {
    Why::TooMany { what: "translators", room: TRANSLATORS }
}

#[cfg(test)]
mod tests;
