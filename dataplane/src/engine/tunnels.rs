//! The tunnels of an engine, and which of them a packet that came through IPv4 belongs to.

use super::Engine;
use crate::classify::{Owner, source_check};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::configured::{Configured, ConfiguredConfig};
use crate::mechanism::isatap::{Isatap, IsatapConfig};
use crate::mechanism::six_rd::{SixRd, SixRdConfig};
use crate::mechanism::six_to_four::{SixToFour, SixToFourConfig};
use crate::mechanism::table::{Kind, Way};
use crate::parse::{Addresses, Packet, Transport};
use crate::rewrite::{Executed, decap};
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::{Domain, OwnAddresses};
use crate::tunnel::decision::Arrived;
use crate::verdict::{Decision, Edit, Outbox, PolicyId, Verdict};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::Prefix6;
use sixway_wire::protocol::ICMPV6;
use std::collections::HashMap;

/// Configuration of one tunnel.
#[derive(Clone, Debug)]
pub enum TunnelConfig {
    /// A configured tunnel (RFC 4213).
    Configured(ConfiguredConfig),
    /// 6to4 (RFC 3056).
    SixToFour(SixToFourConfig),
    /// A part in a 6rd domain (RFC 5969).
    SixRd(SixRdConfig),
    /// ISATAP (RFC 5214).
    Isatap(IsatapConfig),
}

impl TunnelConfig {
    /// The IPv6 destinations that are the tunnel's.
    pub fn prefixes(&self) -> Vec<Prefix6> {
        match self {
            Self::Configured(config) => config.prefixes.clone(),
            Self::SixToFour(config) => config.prefixes(),
            Self::SixRd(config) => config.prefixes(),
            Self::Isatap(config) => config.prefixes(),
        }
    }

    /// Options of the tunnel.
    pub const fn policy(&self) -> TunnelPolicy {
        match self {
            Self::Configured(config) => config.policy,
            Self::SixToFour(config) => config.policy,
            Self::SixRd(config) => config.policy,
            Self::Isatap(config) => config.policy,
        }
    }

    /// The IPv4 address of this host at which the tunnel ends.
    pub const fn local(&self) -> Ipv4Addr {
        match self {
            Self::Configured(config) => config.local,
            Self::SixToFour(config) => config.address,
            Self::SixRd(config) => config.address,
            Self::Isatap(config) => config.address,
        }
    }
}

/// By which addresses this host is known to tunnels: its IPv4 addresses, what stands for them at a NAT or in a 6rd domain,
/// and its IPv6 addresses.
fn own_addresses(configs: &[TunnelConfig], host4: &[Ipv4Addr], host6: Vec<Ipv6Addr>) -> OwnAddresses {
    let (mut all, mut domains): (Vec<Ipv4Addr>, Vec<Domain>) = (host4.to_vec(), Vec::new());
    for config in configs {
        all.push(config.local());
        match config {
            TunnelConfig::SixToFour(config) => all.push(config.site()),
            TunnelConfig::SixRd(config) => domains.push(config.domain),
            TunnelConfig::Configured(_) | TunnelConfig::Isatap(_) => {}
        }
    }
    OwnAddresses::new(all, domains, host6)
}

/// What is steered to tunnels by its IPv6 destination.
pub(super) fn steered(configs: &[TunnelConfig]) -> impl Iterator<Item = (Prefix6, Owner)> + '_ {
    let owner = |number: usize| Owner::Tunnel(number as u16);
    let all = configs.iter().enumerate();
    all.flat_map(move |(number, one)| one.prefixes().into_iter().map(move |prefix| (prefix, owner(number))))
}

/// One tunnel: a mechanism's state.
pub(super) enum Tunnel {
    Configured(Configured),
    SixToFour(SixToFour),
    SixRd(SixRd),
    Isatap(Isatap),
}

impl Tunnel {
    fn new(config: &TunnelConfig, own: &Arc<OwnAddresses>, policy: PolicyId) -> Self {
        match config {
            TunnelConfig::Configured(config) => Self::Configured(Configured::new(config, policy)),
            TunnelConfig::SixToFour(config) => Self::SixToFour(SixToFour::new(config, own, policy)),
            TunnelConfig::SixRd(config) => Self::SixRd(SixRd::new(config, own, policy)),
            TunnelConfig::Isatap(config) => Self::Isatap(Isatap::new(config, own, policy)),
        }
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Configured(_) => Kind::Configured,
            Self::SixToFour(_) => Kind::SixToFour,
            Self::SixRd(_) => Kind::SixRd,
            Self::Isatap(_) => Kind::Isatap,
        }
    }

    /// The only outer source of the tunnel's packets, if it has one.
    const fn remote(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Configured(tunnel) => tunnel.remote(),
            Self::SixToFour(_) | Self::SixRd(_) | Self::Isatap(_) => None,
        }
    }

    /// Whether a packet is the tunnel's, when several end at one address.
    #[inline(always)]
    fn claims(&self, arrived: Arrived) -> bool {
        match self {
            Self::Configured(tunnel) => tunnel.claims(arrived),
            Self::SixToFour(tunnel) => tunnel.claims(arrived),
            Self::SixRd(tunnel) => tunnel.claims(arrived),
            Self::Isatap(tunnel) => tunnel.claims(arrived),
        }
    }

    /// Whether the tunnel's packets may have this outer source.
    fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        match self {
            Self::Configured(tunnel) => tunnel.may_come_from(outer),
            Self::SixToFour(tunnel) => tunnel.may_come_from(outer),
            Self::SixRd(tunnel) => tunnel.may_come_from(outer),
            Self::Isatap(tunnel) => tunnel.may_come_from(outer),
        }
    }

    /// Whether a packet that came through the tunnel is control's.
    fn is_discovery(&self, arrived: Arrived, inner: &Packet) -> Result<bool, DropReason> {
        match self {
            Self::Configured(tunnel) => Ok(tunnel.is_discovery(arrived, inner)),
            Self::Isatap(tunnel) => tunnel.is_discovery(arrived, inner),
            // Their links are not used for it (RFC 3056 §3.1, RFC 5969 §9).
            Self::SixToFour(_) | Self::SixRd(_) => Ok(false),
        }
    }

    /// What to do with an IPv6 packet that is routed into the tunnel.
    #[inline(always)]
    fn decide_out(&self, packet: &Packet) -> Result<Decision, DropReason> {
        match self {
            Self::Configured(tunnel) => tunnel.decide_out(),
            Self::SixToFour(tunnel) => tunnel.decide_out(packet),
            Self::SixRd(tunnel) => tunnel.decide_out(packet),
            Self::Isatap(tunnel) => tunnel.decide_out(packet),
        }
    }

    /// What to do with a packet that came through the tunnel.
    #[inline(always)]
    fn decide_in(&self, arrived: Arrived) -> Result<Decision, DropReason> {
        match self {
            Self::Configured(tunnel) => tunnel.decide_in(arrived),
            Self::SixToFour(tunnel) => tunnel.decide_in(arrived),
            Self::SixRd(tunnel) => tunnel.decide_in(arrived),
            Self::Isatap(tunnel) => tunnel.decide_in(arrived),
        }
    }

    /// Whether the tunnel sends packets between these inner addresses to that outer destination.
    fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        match self {
            Self::Configured(tunnel) => tunnel.sent(source, destination, outer),
            Self::SixToFour(tunnel) => tunnel.sent(source, destination, outer),
            Self::SixRd(tunnel) => tunnel.sent(source, destination, outer),
            Self::Isatap(tunnel) => tunnel.sent(source, destination, outer),
        }
    }
}

/// An IPv4 address of this host at which tunnels end.
struct Endpoint {
    address: Ipv4Addr,
    /// Tunnels with one outer source.
    exact: HashMap<Ipv4Addr, u16, FixedState>,
    /// One of them, often the only one: it is found without a hash.
    one: Option<(Ipv4Addr, u16)>,
    /// The others, which are asked in the order of the configuration.
    rest: Vec<u16>,
}

impl Endpoint {
    /// The tunnel that has this address for its other end.
    #[inline(always)]
    fn exactly(&self, remote: Ipv4Addr) -> Option<u16> {
        match self.one {
            None => None,
            Some((one, number)) if one == remote => Some(number),
            Some(_) => self.exact.get(&remote).copied(),
        }
    }
}

/// All tunnels.
pub(super) struct Tunnels {
    all: Vec<Tunnel>,
    endpoints: Vec<Endpoint>,
    /// All IPv4 addresses of this host, ascending.
    host4: Vec<Ipv4Addr>,
    /// A bit for each of their last six bits, which spares most others the search.
    host4_ends: u64,
    own6: Option<Ipv6Addr>,
}

impl Tunnels {
    pub(super) fn new(
        configs: &[TunnelConfig],
        host4: &[Ipv4Addr],
        host6: &[Ipv6Addr],
        own6: Option<Ipv6Addr>,
        seed: u64,
    ) -> Self {
        let host6 = host6.iter().copied().chain(own6).collect();
        let own = Arc::new(own_addresses(configs, host4, host6));
        let numbered = configs.iter().enumerate();
        let all: Vec<Tunnel> =
            numbered.map(|(number, config)| Tunnel::new(config, &own, PolicyId(number as u16))).collect();
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for (index, (tunnel, config)) in all.iter().zip(configs).enumerate() {
            let address = config.local();
            let at = endpoints.iter().position(|endpoint| endpoint.address == address).unwrap_or_else(|| {
                let exact = HashMap::with_hasher(FixedState::with_seed(seed));
                endpoints.push(Endpoint { address, exact, one: None, rest: Vec::new() });
                endpoints.len() - 1
            });
            match tunnel.remote() {
                Some(remote) => {
                    endpoints[at].one = Some((remote, index as u16));
                    endpoints[at].exact.insert(remote, index as u16);
                }
                None => endpoints[at].rest.push(index as u16),
            }
        }
        let mut host4: Vec<Ipv4Addr> =
            host4.iter().copied().chain(configs.iter().map(TunnelConfig::local)).collect();
        host4.sort_unstable();
        host4.dedup();
        let host4_ends = host4.iter().fold(0, |ends, address| ends | 1 << (address.to_bits() % 64));
        Self { all, endpoints, host4, host4_ends, own6 }
    }

    /// Whether the address is this host's: what is sent there in a tunnel would come back, and nothing comes from there
    /// (RFC 6324).
    #[inline(always)]
    fn is_this_host(&self, address: Ipv4Addr) -> bool {
        self.host4_ends >> (address.to_bits() % 64) & 1 == 1 && self.host4.binary_search(&address).is_ok()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The tunnel of this number.
    #[inline(always)]
    pub(super) fn tunnel(&mut self, number: u16) -> &mut Tunnel {
        &mut self.all[usize::from(number)]
    }

    /// The number of the endpoint that has this address.
    #[inline(always)]
    pub(super) fn endpoint(&self, address: Ipv4Addr) -> Option<u8> {
        self.endpoints.iter().position(|endpoint| endpoint.address == address).map(|at| at as u8)
    }

    /// The tunnel that a packet which came to an endpoint belongs to: the one that has its outer source for its other end, or the
    /// first that claims it. What none of them claims is shown to the likeliest, so that the packet is told what it lacks.
    #[inline(always)]
    pub(super) fn came_through(&self, endpoint: u8, arrived: Arrived) -> Option<u16> {
        let endpoint = &self.endpoints[usize::from(endpoint)];
        let exact = endpoint.exactly(arrived.from);
        match (exact, &endpoint.rest[..]) {
            (Some(number), []) => Some(number),
            (None, [number]) => Some(*number),
            (_, rest) => {
                let mut numbers = exact.into_iter().chain(rest.iter().copied());
                let claiming = numbers.find(|number| self.all[usize::from(*number)].claims(arrived));
                claiming.or(exact).or(rest.first().copied())
            }
        }
    }

    /// Whether packets of any tunnel that ends there may have this outer source.
    pub(super) fn may_come_from(&self, endpoint: u8, outer: Ipv4Addr) -> bool {
        let endpoint = &self.endpoints[usize::from(endpoint)];
        endpoint.exactly(outer).is_some()
            || endpoint.rest.iter().any(|number| self.all[usize::from(*number)].may_come_from(outer))
    }

    /// The tunnel of an endpoint that sends packets between these inner addresses to that outer destination.
    pub(super) fn went_through(
        &self,
        endpoint: u8,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        outer: Ipv4Addr,
    ) -> Option<u16> {
        let endpoint = &self.endpoints[usize::from(endpoint)];
        let exact = endpoint.exactly(outer);
        let mut tunnels = exact.into_iter().chain(endpoint.rest.iter().copied());
        tunnels.find(|number| self.all[usize::from(*number)].sent(source, destination, outer))
    }

    /// The tunnel of an endpoint whose only other end this is.
    pub(super) fn only_to(&self, endpoint: u8, remote: Ipv4Addr) -> Option<u16> {
        self.endpoints[usize::from(endpoint)].exactly(remote)
    }
}

impl Engine {
    /// Another address of the gateway's own from now on: one that follows a tunnel's. The tunnels learn of it when they are set.
    pub fn set_own6(&mut self, own6: Option<Ipv6Addr>) {
        self.tunnels.own6 = own6;
        self.steering.set_own6(own6);
        self.icmp_errors.set_own6(own6);
    }

    /// Other tunnels from now on, and other addresses of this host: an address has changed. What is known of the paths stays.
    pub fn set_tunnels(&mut self, configs: &[TunnelConfig], host4: &[Ipv4Addr], host6: &[Ipv6Addr]) {
        self.tunnels = Tunnels::new(configs, host4, host6, self.tunnels.own6, self.seed);
        self.steering.set_tunnels(steered(configs));
        self.rewriter.set_tunnels(configs.iter().map(TunnelConfig::policy).collect());
    }

    /// What to do with an IPv6 packet that is routed into a tunnel.
    #[inline(always)]
    pub(super) fn decide_into_tunnel(
        &mut self,
        number: u16,
        packet: &Packet,
    ) -> Result<Decision, DropReason> {
        let decision = self.tunnels.tunnel(number).decide_out(packet)?;
        if let Edit::Encap4 { destination, .. } = decision.action.edit
            && self.tunnels.is_this_host(destination)
        {
            return Err(DropReason::TunnelLoop); // RFC 6324 §3.1
        }
        let kind = self.tunnels.tunnel(number).kind();
        self.counters.pass(kind, Way::Out);
        Ok(decision)
    }

    /// The way of a packet that is routed into a tunnel.
    #[inline(always)]
    pub(super) fn walk_into_tunnel(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        number: u16,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let decision = self.decide_into_tunnel(number, packet)?;
        match self.rewriter.execute_tunnel(&decision, frame, packet, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// The way of a packet that came to an end of tunnels. What comes out of them is routed by the host's kernel, which counts
    /// the hop, whatever its destination is.
    #[inline(always)]
    pub(super) fn out_of_tunnel(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        endpoint: u8,
        now: Instant,
    ) -> Result<Verdict, DropReason> {
        if let Transport::IcmpError { .. } = packet.transport {
            return self.error_from_inside(frame, packet, endpoint, now);
        }
        if let Addresses::V4 { source, .. } = packet.addresses
            && self.tunnels.is_this_host(source)
        {
            return Err(DropReason::TunnelLoop);
        }
        let mut inner = Packet::EMPTY;
        decap::inner(frame, packet, &mut inner)?;
        let arrived = Arrived::of(packet, &inner)?;
        if self.tunnels.own6 == Some(arrived.source) {
            return Err(DropReason::SourceNotInTunnel);
        }
        let number = self.tunnels.came_through(endpoint, arrived).ok_or(DropReason::NoTunnel)?;
        let tunnel = self.tunnels.tunnel(number);
        if let Err(reason) = source_check::check(&inner) {
            // Addresses of the link alone: neighbour discovery has them, and nothing else.
            return if tunnel.is_discovery(arrived, &inner)? { Ok(Verdict::Control) } else { Err(reason) };
        }
        let decision = tunnel.decide_in(arrived.sane()?)?;
        if inner.protocol == ICMPV6 && tunnel.is_discovery(arrived, &inner)? {
            return Ok(Verdict::Control);
        }
        self.rewriter.decap(frame, packet, &inner, decision.action.policy, &mut self.counters)?;
        let kind = self.tunnels.tunnel(number).kind();
        self.counters.pass(kind, Way::In);
        Ok(Verdict::Forward)
    }

    /// Fragments of tunnel packets are held only if they come from where a tunnel's packets may come from.
    pub(super) fn check_fragment(&self, packet: &Packet, owner: Owner) -> Result<(), DropReason> {
        let (Owner::Endpoint(endpoint), Addresses::V4 { source, .. }) = (owner, packet.addresses) else {
            return Ok(());
        };
        if self.tunnels.is_this_host(source) {
            return Err(DropReason::TunnelLoop);
        }
        if self.tunnels.may_come_from(endpoint, source) { Ok(()) } else { Err(DropReason::NoTunnel) }
    }
}
