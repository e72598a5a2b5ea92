//! ISATAP (RFC 5214): dual-stack hosts of a site reach its IPv6 routers, and one another, across the site's IPv4 network.
//!
//! ```text
//!     host 10.1.2.3  ═══════════ IPv4 site ═══════════ router 10.0.0.1 ─── IPv6
//!     2001:db8:1:2:0:5efe:10.1.2.3                     2001:db8:1:2::/64 on its tunnel
//! ```
//!
//! A host's prefixes and routers are what control has learnt from advertisements.

use super::contract::{self, Build, BuildContext, Claims};
use super::six_in_four::Tunnel;
use crate::drop_reason::DropReason;
use crate::kind::Kind;
use crate::parse::Packet;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::isatap::{LINK_LOCAL, locator_of};
use crate::tunnel::address::{Acceptable, OwnAddresses, Scope};
use crate::tunnel::decision::{Arrived, routed};
use crate::tunnel::neighbour_discovery::{Discovery, is_group_of_link};
use crate::verdict::PolicyId;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// The gateway's role on the ISATAP link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has an address there and sends by a router.
    Host,
    /// It forwards between the link and native IPv6.
    Router,
}

/// Configuration of one ISATAP interface.
#[derive(Clone, Debug)]
pub struct IsatapConfig {
    /// The gateway's role.
    pub role: Role,
    /// The interface's locator: where outer packets come to and are sent from (RFC 5214 §6.2).
    pub address: Ipv4Addr,
    /// The prefixes on the link, of 64 bits.
    pub prefixes: Vec<Prefix6>,
    /// The potential router list (RFC 5214 §8.1).
    pub routers: Vec<Ipv4Addr>,
    /// Where hosts of the link may be; none: anywhere (RFC 6324 §3.1.2).
    pub locators: Vec<Prefix4>,
    /// IPv4 networks that the gateway is attached to; packets are not sent to their broadcast addresses.
    pub subnets: Vec<Prefix4>,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

impl IsatapConfig {
    /// IPv6 destinations that are sent through the tunnel: those on the link, and for a host all others too.
    pub fn prefixes(&self) -> Vec<Prefix6> {
        match self.role {
            Role::Host => vec![Prefix6::holding(Ipv6Addr::UNSPECIFIED, 0)],
            Role::Router => self.prefixes.clone(),
        }
    }
}

/// One ISATAP interface.
pub struct Isatap {
    role: Role,
    address: Ipv4Addr,
    prefixes: Vec<Prefix6>,
    routers: Vec<Ipv4Addr>,
    locators: Vec<Prefix4>,
    acceptable: Acceptable,
    own: Arc<OwnAddresses>,
    policy: PolicyId,
}

impl Isatap {
    /// An interface for one worker's engine.
    pub fn new(config: &IsatapConfig, own: &Arc<OwnAddresses>, policy: PolicyId) -> Self {
        let acceptable = Acceptable::new(Scope::Network, &config.subnets);
        // The name of the list may lead anywhere (RFC 5214 §8.1).
        let routers = config.routers.iter().copied().filter(|router| acceptable.check(*router).is_ok());
        Self {
            role: config.role,
            address: config.address,
            prefixes: config.prefixes.clone(),
            routers: routers.collect(),
            locators: config.locators.clone(),
            acceptable,
            own: Arc::clone(own),
            policy,
        }
    }

    /// RFC 5214 §7.1, and the checks of RFC 6324 §3.1.2, §3.3.
    #[inline(always)]
    fn next_hop(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        match self.role {
            Role::Host if !self.is_own(source) => return Err(DropReason::SourceNotOfSite),
            Role::Router if !self.is_on_link(source) && self.own.stand_in_source(source) => {
                return Err(DropReason::TunnelLoop);
            }
            Role::Host | Role::Router => {}
        }
        if self.is_on_link(destination) {
            let locator = locator_of(destination).ok_or(DropReason::NoLocator)?;
            self.acceptable.check(locator)?;
            return if self.may_be_at(locator) { Ok(locator) } else { Err(DropReason::NoLocator) };
        }
        match self.role {
            Role::Host => self.routers.first().copied().ok_or(DropReason::NoRelay),
            Role::Router => Err(DropReason::NoRelay),
        }
    }

    /// RFC 5214 §7.3: the source is an ISATAP address of the link that embeds the outer source, or a router sent it.
    #[inline(always)]
    fn check_source(&self, arrived: Arrived) -> Result<(), DropReason> {
        if self.routers.contains(&arrived.from) {
            return Ok(());
        }
        let is_of_link = self.is_on_link(arrived.source) || LINK_LOCAL.contains(arrived.source);
        match locator_of(arrived.source) {
            Some(locator) if is_of_link && locator != arrived.from => Err(DropReason::SpoofedEmbeddedSource),
            Some(locator) if is_of_link => {
                self.acceptable.check(locator)?;
                if self.may_be_at(locator) { Ok(()) } else { Err(DropReason::SourceNotInTunnel) }
            }
            Some(_) | None => Err(DropReason::SourceNotRelay),
        }
    }

    /// A host takes what is its own; a router everything but what would come back to it (RFC 6324 §3.3).
    #[inline(always)]
    fn check_destination(&self, arrived: Arrived) -> Result<(), DropReason> {
        match self.role {
            Role::Host if self.is_own(arrived.destination) => Ok(()),
            Role::Host => Err(DropReason::DestinationNotInSite),
            Role::Router
                if !self.is_on_link(arrived.destination) && self.own.stand_in(arrived.destination) =>
            {
                Err(DropReason::TunnelLoop)
            }
            Role::Router => Ok(()),
        }
    }

    #[inline(always)]
    fn is_on_link(&self, address: Ipv6Addr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.contains(address))
    }

    /// An address that this node forms, link-local ones included.
    fn is_own(&self, address: Ipv6Addr) -> bool {
        locator_of(address) == Some(self.address)
            && (self.is_on_link(address) || LINK_LOCAL.contains(address))
    }

    fn may_be_at(&self, locator: Ipv4Addr) -> bool {
        self.locators.is_empty() || self.locators.iter().any(|prefix| prefix.contains(locator))
    }
}

impl contract::Configured for IsatapConfig {
    fn claims(&self) -> Claims {
        Claims { destinations6: self.prefixes(), ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn local(&self) -> Option<Ipv4Addr> {
        Some(self.address)
    }

    fn relays(&self) -> Vec<IpAddr> {
        match self.role {
            Role::Host => self.routers.iter().copied().map(IpAddr::V4).collect(),
            Role::Router => Vec::new(),
        }
    }
}

impl Build for IsatapConfig {
    type State = Isatap;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Isatap, Infallible> {
        Ok(Isatap::new(self, &context.own_addresses, policy))
    }
}

impl Tunnel for Isatap {
    const KIND: Kind = Kind::Isatap;

    #[inline(always)]
    fn policy(&self) -> PolicyId {
        self.policy
    }

    #[inline(always)]
    fn ends(&self, packet: &Packet) -> Result<(Ipv4Addr, Ipv4Addr), DropReason> {
        let (source, destination) = routed(packet)?;
        Ok((self.address, self.next_hop(source, destination)?))
    }

    #[inline(always)]
    fn check(&self, arrived: Arrived) -> Result<(), DropReason> {
        self.check_source(arrived)?;
        self.check_destination(arrived)
    }

    /// To this node (RFC 5214 §8). Its source is checked as that of any packet.
    fn is_discovery(&self, arrived: Arrived, inner: &Packet) -> Result<bool, DropReason> {
        let Some(discovery) = Discovery::of(inner) else { return Ok(false) };
        if !self.is_own(arrived.destination) && !is_group_of_link(arrived.destination) {
            return Ok(false);
        }
        self.check_source(arrived)?;
        if discovery == Discovery::Routers && !self.routers.contains(&arrived.from) {
            return Err(DropReason::SourceNotRelay); // RFC 5214 §8.3.3
        }
        Ok(true)
    }

    #[inline(always)]
    fn claims(&self, arrived: Arrived) -> bool {
        self.check_source(arrived).is_ok() // RFC 5214 §7.3
    }

    fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        self.routers.contains(&outer) || self.may_be_at(outer)
    }

    fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        if LINK_LOCAL.contains(destination) {
            // Control's: to a neighbour, or to a router.
            return locator_of(source) == Some(self.address) && locator_of(destination) == Some(outer);
        }
        self.next_hop(source, destination) == Ok(outer)
    }
}
