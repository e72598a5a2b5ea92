//! 6rd (RFC 5969): like 6to4, under a provider's own prefix, which embeds only those bits of the IPv4 address that differ.
//!
//! ```text
//!     site 2001:db8:6464:100::/56      provider's IPv4, 10/8                native IPv6
//!     hosts ─── CE 10.100.100.1 ═══════════════════════════ BR 10.0.0.1 ─── server
//!                            ╚══════════ CE 10.9.8.7 ─── site 2001:db8:908:700::/56
//! ```

use super::contract::{self, Build, BuildContext, Claims};
use super::six_in_four::Tunnel;
use crate::drop_reason::DropReason;
use crate::kind::Kind;
use crate::parse::Packet;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::six_to_four::RELAY_ANYCAST_PREFIX;
use crate::tunnel::address::{Acceptable, OwnAddresses, Scope};
use crate::tunnel::decision::{Arrived, routed};
use crate::verdict::PolicyId;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

pub use crate::tunnel::address::six_rd::{Domain, DomainFault};

/// The gateway's role in the domain (RFC 5969 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A customer's edge: the CE.
    CustomerEdge,
    /// Between the domain and native IPv6: the BR.
    BorderRelay,
}

/// Configuration of a gateway's part in one 6rd domain.
#[derive(Clone, Debug)]
pub struct SixRdConfig {
    /// The domain.
    pub domain: Domain,
    /// The gateway's role in it.
    pub role: Role,
    /// The gateway's IPv4 address: what its packets are sent from and come to.
    pub address: Ipv4Addr,
    /// The domain's border relays; of a customer edge, native destinations are sent to the first.
    pub border_relays: Vec<Ipv4Addr>,
    /// Border relay: networks of relays of other tunnels. Packets from and to these are refused (RFC 5969 §12).
    pub other_relays: Vec<Prefix4>,
    /// IPv4 networks that the gateway is attached to; packets are not sent to their broadcast addresses.
    pub subnets: Vec<Prefix4>,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

/// Why a part in a 6rd domain cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SixRdFault {
    /// The customer edge's address is not in the IPv4 prefix that all of the domain shares.
    AddressOutsideDomain(Ipv4Addr, Prefix4),
    /// A customer edge without border relay.
    NoBorderRelay,
    /// A customer edge that is its own border relay.
    OwnBorderRelay,
}

impl fmt::Display for SixRdFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressOutsideDomain(address, shared) => write!(
                f,
                "{address} is not in {shared}, which all customers' IPv4 addresses share (RFC 5969 §7, IPv4MaskLen {})",
                shared.length()
            ),
            Self::NoBorderRelay => {
                f.write_str("a customer edge needs its border relay's IPv4 address (RFC 5969 §7)")
            }
            Self::OwnBorderRelay => f.write_str("the border relay is this host's own address"),
        }
    }
}

impl std::error::Error for SixRdFault {}

impl SixRdConfig {
    /// The prefix delegated to the gateway: the customer's, or the border relay's own (RFC 5969 §4, §5). A border relay whose
    /// address is outside the customers' prefix has none.
    pub fn delegated(&self) -> Option<Prefix6> {
        self.domain.delegated(self.address)
    }

    /// IPv6 destinations that are sent through the tunnel: the domain's, and for a customer edge all others too.
    pub fn prefixes(&self) -> Vec<Prefix6> {
        match self.role {
            Role::CustomerEdge => vec![self.domain.prefix(), Prefix6::holding(Ipv6Addr::UNSPECIFIED, 0)],
            Role::BorderRelay => vec![self.domain.prefix()],
        }
    }

    /// Checks the configuration.
    pub fn check(&self) -> Result<(), SixRdFault> {
        if self.role == Role::BorderRelay {
            return Ok(());
        }
        let shared = self.domain.shared();
        if !shared.contains(self.address) {
            return Err(SixRdFault::AddressOutsideDomain(self.address, shared));
        }
        if self.border_relays.is_empty() {
            return Err(SixRdFault::NoBorderRelay);
        }
        if self.border_relays.contains(&self.address) {
            return Err(SixRdFault::OwnBorderRelay);
        }
        Ok(())
    }
}

/// A customer edge or a border relay.
pub struct SixRd {
    domain: Domain,
    role: Role,
    address: Ipv4Addr,
    border_relays: Vec<Ipv4Addr>,
    other_relays: Vec<Prefix4>,
    acceptable: Acceptable,
    own: OwnAddresses,
    policy: PolicyId,
}

impl SixRd {
    /// Requires that `config.check()` succeeded.
    pub fn new(config: &SixRdConfig, own: &OwnAddresses, policy: PolicyId) -> Self {
        let mut other_relays = config.other_relays.clone();
        other_relays.push(RELAY_ANYCAST_PREFIX);
        Self {
            domain: config.domain,
            role: config.role,
            address: config.address,
            border_relays: config.border_relays.clone(),
            other_relays,
            acceptable: Acceptable::new(Scope::Network, &config.subnets),
            own: own.without(config.domain),
            policy,
        }
    }

    #[inline(always)]
    fn is_own(&self, address: Ipv6Addr) -> bool {
        self.domain.customer_edge_of(address) == Some(self.address)
    }

    #[inline(always)]
    fn next_hop(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        let customer_edge = self.domain.customer_edge_of(destination);
        match (self.role, customer_edge) {
            // No one would take it (§9.2).
            (Role::CustomerEdge, _) if !self.is_own(source) => Err(DropReason::SourceNotOfSite),
            (Role::CustomerEdge, Some(customer_edge)) => {
                self.acceptable.check(customer_edge)?;
                Ok(customer_edge)
            }
            (Role::CustomerEdge, None) => self.border_relays.first().copied().ok_or(DropReason::NoRelay),
            // RFC 6324 §3.3
            (Role::BorderRelay, _) if !self.domain.contains(source) && self.own.stand_in_source(source) => {
                Err(DropReason::TunnelLoop)
            }
            (Role::BorderRelay, Some(customer_edge)) => {
                self.acceptable.check(customer_edge)?;
                if self.is_relay(customer_edge) { Err(DropReason::TunnelLoop) } else { Ok(customer_edge) }
            }
            (Role::BorderRelay, None) => Err(DropReason::NoRelay),
        }
    }

    /// What a border relay sends is taken whatever its source, other customers' included (§8, §9.2).
    #[inline(always)]
    fn check_at_customer_edge(&self, arrived: Arrived) -> Result<(), DropReason> {
        if !self.border_relays.contains(&arrived.from) {
            match self.domain.customer_edge_of(arrived.source) {
                Some(customer_edge) => self.check_embedded(customer_edge, arrived)?,
                None => return Err(DropReason::SourceNotRelay),
            }
        }
        if self.is_own(arrived.destination) { Ok(()) } else { Err(DropReason::DestinationNotInSite) }
    }

    /// Destinations within the domain are taken too: so a customer edge asks whether its border relay lives (§8).
    #[inline(always)]
    fn check_at_border_relay(&self, arrived: Arrived) -> Result<(), DropReason> {
        let customer_edge =
            self.domain.customer_edge_of(arrived.source).ok_or(DropReason::SourceNotInTunnel)?;
        self.check_embedded(customer_edge, arrived)?;
        if self.is_relay(customer_edge) {
            return Err(DropReason::TunnelLoop);
        }
        // RFC 6324 §3.3
        if !self.domain.contains(arrived.destination) && self.own.stand_in(arrived.destination) {
            return Err(DropReason::TunnelLoop);
        }
        Ok(())
    }

    #[inline(always)]
    fn check_embedded(&self, customer_edge: Ipv4Addr, arrived: Arrived) -> Result<(), DropReason> {
        self.acceptable.check(customer_edge)?;
        if customer_edge == arrived.from { Ok(()) } else { Err(DropReason::SpoofedEmbeddedSource) }
    }

    /// §12: a relay, of this domain or of another kind of tunnel, which would make the packet loop.
    fn is_relay(&self, address: Ipv4Addr) -> bool {
        self.border_relays.contains(&address)
            || self.other_relays.iter().any(|relays| relays.contains(address))
    }
}

impl contract::Configured for SixRdConfig {
    fn claims(&self) -> Claims {
        Claims { destinations6: self.prefixes(), ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn local(&self) -> Option<Ipv4Addr> {
        Some(self.address)
    }

    fn domain(&self) -> Option<Domain> {
        Some(self.domain)
    }

    fn relays(&self) -> Vec<IpAddr> {
        match self.role {
            Role::CustomerEdge => self.border_relays.iter().copied().map(IpAddr::V4).collect(),
            Role::BorderRelay => Vec::new(),
        }
    }
}

impl Build for SixRdConfig {
    type State = SixRd;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<SixRd, Infallible> {
        Ok(SixRd::new(self, &context.own_addresses, policy))
    }
}

impl Tunnel for SixRd {
    const KIND: Kind = Kind::SixRd;

    #[inline(always)]
    fn policy(&self) -> PolicyId {
        self.policy
    }

    #[inline(always)]
    fn ends(&self, packet: &Packet) -> Result<(Ipv4Addr, Ipv4Addr), DropReason> {
        let (source, destination) = routed(packet)?;
        Ok((self.address, self.next_hop(source, destination)?))
    }

    /// RFC 5969 §9.2.
    #[inline(always)]
    fn check(&self, arrived: Arrived) -> Result<(), DropReason> {
        match self.role {
            Role::CustomerEdge => self.check_at_customer_edge(arrived),
            Role::BorderRelay => self.check_at_border_relay(arrived),
        }
    }

    /// It is for the customer, or comes from one.
    #[inline(always)]
    fn claims(&self, arrived: Arrived) -> bool {
        match self.role {
            Role::CustomerEdge => self.is_own(arrived.destination),
            Role::BorderRelay => self.domain.contains(arrived.source),
        }
    }

    fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        let from_relay = self.role == Role::CustomerEdge && self.border_relays.contains(&outer);
        from_relay || self.domain.shared().contains(outer)
    }

    fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        self.next_hop(source, destination) == Ok(outer)
    }
}
