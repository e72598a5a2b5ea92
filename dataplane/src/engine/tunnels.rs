//! The tunnels of an engine, and which of them a packet that came through IPv4 belongs to.

use super::Engine;
use super::walk::quote_of;
use crate::classify::{Owner, source_check};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::mechanism::configured::{Configured, ConfiguredConfig};
use crate::parse::{Addresses, IPV4_HEADER, IPV6_HEADER, Packet, Transport};
use crate::rewrite::decap;
use crate::tunnel::TunnelPolicy;
use crate::verdict::{Decision, Edit, PolicyId, Verdict};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::Prefix6;
use sixway_wire::protocol::IPV6;
use std::collections::HashMap;

/// Configuration of one tunnel.
#[derive(Clone, Debug)]
pub enum TunnelConfig {
    /// A configured tunnel (RFC 4213).
    Configured(ConfiguredConfig),
}

impl TunnelConfig {
    /// The IPv6 destinations that are the tunnel's.
    pub fn prefixes(&self) -> &[Prefix6] {
        match self {
            Self::Configured(config) => &config.prefixes,
        }
    }

    /// Options of the tunnel.
    pub const fn policy(&self) -> TunnelPolicy {
        match self {
            Self::Configured(config) => config.policy,
        }
    }
}

/// What is steered to tunnels by its IPv6 destination.
pub(super) fn steered(configs: &[TunnelConfig]) -> impl Iterator<Item = (Prefix6, Owner)> + '_ {
    let owner = |number: usize| Owner::Tunnel(number as u16);
    let all = configs.iter().enumerate();
    all.flat_map(move |(number, one)| one.prefixes().iter().map(move |prefix| (*prefix, owner(number))))
}

/// One tunnel: a mechanism's state.
pub(super) enum Tunnel {
    Configured(Configured),
}

impl Tunnel {
    fn new(config: &TunnelConfig, policy: PolicyId) -> Self {
        match config {
            TunnelConfig::Configured(config) => Self::Configured(Configured::new(config, policy)),
        }
    }

    const fn local(&self) -> Ipv4Addr {
        match self {
            Self::Configured(tunnel) => tunnel.local(),
        }
    }

    /// The only outer source of the tunnel's packets, if it has one.
    const fn remote(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Configured(tunnel) => tunnel.remote(),
        }
    }

    const fn claims(&self, outer: &Packet, inner: &Packet) -> bool {
        match self {
            Self::Configured(tunnel) => tunnel.claims(outer, inner),
        }
    }

    /// What to do with an IPv6 packet that is routed into the tunnel.
    #[inline(always)]
    pub(super) const fn decide_out(&self, packet: &Packet) -> Result<Decision, DropReason> {
        match self {
            Self::Configured(tunnel) => tunnel.decide_out(packet),
        }
    }

    /// What to do with a packet that came through the tunnel.
    #[inline(always)]
    pub(super) fn decide_in(&self, outer: &Packet, inner: &Packet) -> Result<Decision, DropReason> {
        match self {
            Self::Configured(tunnel) => tunnel.decide_in(outer, inner),
        }
    }

    /// Whether the tunnel sends packets between these inner addresses to that outer destination.
    pub(super) fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        match self {
            Self::Configured(tunnel) => tunnel.sent(source, destination, outer),
        }
    }
}

/// An IPv4 address of this host at which tunnels end.
struct Endpoint {
    address: Ipv4Addr,
    /// Tunnels with one outer source.
    exact: HashMap<Ipv4Addr, u16, FixedState>,
    /// The others, which are asked in the order of the configuration.
    rest: Vec<u16>,
}

/// All tunnels.
pub(super) struct Tunnels {
    all: Vec<Tunnel>,
    endpoints: Vec<Endpoint>,
    /// All IPv4 addresses of this host, ascending.
    host4: Vec<Ipv4Addr>,
}

impl Tunnels {
    pub(super) fn new(configs: &[TunnelConfig], host4: &[Ipv4Addr], seed: u64) -> Self {
        let all: Vec<Tunnel> = configs
            .iter()
            .enumerate()
            .map(|(index, config)| Tunnel::new(config, PolicyId(index as u16)))
            .collect();
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for (index, tunnel) in all.iter().enumerate() {
            let address = tunnel.local();
            let at = endpoints.iter().position(|endpoint| endpoint.address == address).unwrap_or_else(|| {
                let exact = HashMap::with_hasher(FixedState::with_seed(seed));
                endpoints.push(Endpoint { address, exact, rest: Vec::new() });
                endpoints.len() - 1
            });
            match tunnel.remote() {
                Some(remote) => drop(endpoints[at].exact.insert(remote, index as u16)),
                None => endpoints[at].rest.push(index as u16),
            }
        }
        let mut host4: Vec<Ipv4Addr> = host4.iter().copied().chain(all.iter().map(Tunnel::local)).collect();
        host4.sort_unstable();
        host4.dedup();
        Self { all, endpoints, host4 }
    }

    /// Whether the address is this host's: what is sent there in a tunnel would come back, and nothing comes from there
    /// (RFC 6324).
    #[inline(always)]
    fn is_this_host(&self, address: Ipv4Addr) -> bool {
        self.host4.binary_search(&address).is_ok()
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

    /// The tunnel that a packet which came to an endpoint belongs to.
    #[inline(always)]
    pub(super) fn came_through(&self, endpoint: u8, outer: &Packet, inner: &Packet) -> Option<u16> {
        let endpoint = &self.endpoints[usize::from(endpoint)];
        let Addresses::V4 { source, .. } = outer.addresses else { return None };
        if !endpoint.exact.is_empty()
            && let Some(number) = endpoint.exact.get(&source)
        {
            return Some(*number);
        }
        let mut rest = endpoint.rest.iter().copied();
        rest.find(|number| self.all[usize::from(*number)].claims(outer, inner))
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
        let exact = endpoint.exact.get(&outer).copied();
        let mut tunnels = exact.into_iter().chain(endpoint.rest.iter().copied());
        tunnels.find(|number| self.all[usize::from(*number)].sent(source, destination, outer))
    }
}

/// What an ICMP error quotes of a packet that went into a tunnel.
struct QuotedTunnelPacket {
    outer_source: Ipv4Addr,
    outer_destination: Ipv4Addr,
    source: Ipv6Addr,
    destination: Ipv6Addr,
}

impl QuotedTunnelPacket {
    /// `None` where the quote is no IPv6 packet in an IPv4 one, or ends before the inner addresses.
    fn read(quote: &[u8]) -> Option<Self> {
        let header = quote.first_chunk::<IPV4_HEADER>()?;
        if header[0] >> 4 != 4 || header[9] != IPV6 {
            return None;
        }
        let inner = quote.get(usize::from(header[0] & 15) * 4..)?.first_chunk::<IPV6_HEADER>()?;
        let (addresses, _) = inner[8..].as_chunks::<16>();
        let [source, destination] = *addresses else { return None };
        Some(Self {
            outer_source: Ipv4Addr::new(header[12], header[13], header[14], header[15]),
            outer_destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
            source: source.into(),
            destination: destination.into(),
        })
    }
}

impl Engine {
    /// Other tunnels from now on, and other addresses of this host: an address has changed. What is known of the paths stays.
    pub fn set_tunnels(&mut self, configs: &[TunnelConfig], host4: &[Ipv4Addr]) {
        self.tunnels = Tunnels::new(configs, host4, self.seed);
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
        self.count_encap(number);
        Ok(decision)
    }

    /// The way of a packet that came to an end of tunnels. What comes out of them is routed by the host's kernel, which counts
    /// the hop, whatever its destination is.
    #[inline(always)]
    pub(super) fn out_of_tunnel(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        endpoint: u8,
    ) -> Result<Verdict, DropReason> {
        if let Transport::IcmpError { .. } = packet.transport {
            return self.error_from_inside(frame, packet, endpoint);
        }
        if let Addresses::V4 { source, .. } = packet.addresses
            && self.tunnels.is_this_host(source)
        {
            return Err(DropReason::TunnelLoop);
        }
        let mut inner = Packet::EMPTY;
        decap::inner(frame, packet, &mut inner)?;
        let number = self.tunnels.came_through(endpoint, packet, &inner).ok_or(DropReason::NoTunnel)?;
        source_check::check(&inner)?;
        let decision = self.tunnels.tunnel(number).decide_in(packet, &inner)?;
        self.rewriter.decap(frame, packet, &inner, decision.action.policy)?;
        self.count_decap(number);
        Ok(Verdict::Forward)
    }

    /// An ICMP error from the IPv4 path of a tunnel (RFC 4213 §3.4). It must quote a packet that went through one of the
    /// endpoint's tunnels: the quoted outer source is the endpoint, and the quoted inner destination leads where the outer one is.
    fn error_from_inside(&self, frame: &Frame, packet: &Packet, endpoint: u8) -> Result<Verdict, DropReason> {
        let quote = quote_of(frame, packet)?;
        let quoted = QuotedTunnelPacket::read(quote).ok_or(DropReason::QuoteUnusable)?;
        if self.tunnels.endpoint(quoted.outer_source) != Some(endpoint) {
            return Err(DropReason::ErrorAboutNothingSent);
        }
        let through =
            self.tunnels.went_through(endpoint, quoted.source, quoted.destination, quoted.outer_destination);
        through.ok_or(DropReason::ErrorAboutNothingSent)?;
        Err(DropReason::QuoteUnusable)
    }

    #[inline(always)]
    fn count_encap(&mut self, number: u16) {
        match self.tunnels.tunnel(number) {
            Tunnel::Configured(_) => self.counters.configured_encap += 1,
        }
    }

    #[inline(always)]
    fn count_decap(&mut self, number: u16) {
        match self.tunnels.tunnel(number) {
            Tunnel::Configured(_) => self.counters.configured_decap += 1,
        }
    }
}
