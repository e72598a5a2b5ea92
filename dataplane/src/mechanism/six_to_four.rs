//! 6to4 (RFC 3056): IPv6 sites joined over IPv4, each addressed by its IPv4 address, with the checks of RFC 3964.
//!
//! ```text
//!     site 2002:c000:208::/48       IPv4 Internet                  native IPv6
//!     client ─── router 192.0.2.8 ════════════════ relay 192.88.99.1 ─── server 2001:db8::2
//!                          ╚═════════ router 203.0.113.9 ─── site 2002:cb00:7109::/48
//! ```
//!
//! A host is a router of a site that has only this one host.

use super::contract::{self, Build, BuildContext, Claims};
use super::six_in_four::Tunnel;
use crate::drop_reason::DropReason;
use crate::kind::Kind;
use crate::parse::Packet;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::embedded::is_public;
use crate::tunnel::address::six_to_four::{PREFIX, site_of};
use crate::tunnel::address::{Acceptable, OwnAddresses, Scope};
use crate::tunnel::decision::{Arrived, routed};
use crate::tunnel::outer_nat::OuterNat;
use crate::verdict::PolicyId;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// The gateway's role in 6to4 (RFC 3056 §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One host with a 6to4 address.
    Host,
    /// The router at the border of a site.
    Router,
    /// A router between 6to4 sites and native IPv6.
    Relay,
}

/// Which relays may deliver packets with a native source to a site. Such packets come through the relay nearest to the source,
/// which need not be `relay` (RFC 3056 §5.2, RFC 3964 §1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NativeSources {
    /// Any IPv4 address, because a relay cannot be authenticated (RFC 3964 §4.1.2).
    #[default]
    AnyRelay,
    /// Only these relays, and `relay`.
    Listed(Vec<Ipv4Addr>),
}

/// Configuration of 6to4.
#[derive(Clone, Debug)]
pub struct SixToFourConfig {
    /// The gateway's role.
    pub role: Role,
    /// The gateway's IPv4 address: the outer source of packets that it sends, and the outer destination of packets that it receives.
    pub address: Ipv4Addr,
    /// The address that `address` becomes at the outermost NAT, which must pass protocol 41. The prefix embeds it.
    pub nat_address: Option<Ipv4Addr>,
    /// Host and router: the relay to native destinations.
    pub relay: Option<Ipv4Addr>,
    /// Host and router: who may be a relay.
    pub native_sources: NativeSources,
    /// IPv4 networks that the gateway is attached to; packets are not sent to their broadcast addresses (RFC 3964 §4.1.4).
    pub subnets: Vec<Prefix4>,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

/// Why a 6to4 configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SixToFourFault {
    /// The address that the prefix would embed is private, shared or not a unicast address.
    NotPublic(Ipv4Addr),
    /// A relay behind a NAT.
    RelayBehindNat,
    /// A relay that sends by a relay.
    RelayOfRelay,
    /// The relay is the gateway itself.
    OwnRelay,
}

impl fmt::Display for SixToFourFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPublic(address) => write!(
                f,
                "{address} is not a public IPv4 address, so its 6to4 prefix is not reachable: run 6to4 on the \
                 outermost NAT (RFC 3056 §2, §5.8). If that NAT forwards protocol 41 to this host, set \
                 nat_address to its outer address"
            ),
            Self::RelayBehindNat => {
                f.write_str("a relay must be connected to global IPv4 without NAT (RFC 6343 §4.4)")
            }
            Self::RelayOfRelay => {
                f.write_str("a relay has native IPv6 itself; relay is for hosts and routers")
            }
            Self::OwnRelay => f.write_str("the relay is this host's own address"),
        }
    }
}

impl std::error::Error for SixToFourFault {}

impl SixToFourConfig {
    /// The address that the prefix embeds.
    pub fn site(&self) -> Ipv4Addr {
        self.nat_address.unwrap_or(self.address)
    }

    /// IPv6 destinations that are sent through the tunnel: those of other sites, and all native ones where there is a relay.
    pub fn prefixes(&self) -> Vec<Prefix6> {
        let native = self.relay.map(|_| Prefix6::holding(Ipv6Addr::UNSPECIFIED, 0));
        core::iter::once(PREFIX).chain(native).collect()
    }

    /// Checks the configuration.
    pub fn check(&self) -> Result<(), SixToFourFault> {
        if !is_public(self.site()) {
            return Err(SixToFourFault::NotPublic(self.site()));
        }
        if self.role == Role::Relay && self.nat_address.is_some() {
            return Err(SixToFourFault::RelayBehindNat);
        }
        if self.role == Role::Relay && self.relay.is_some() {
            return Err(SixToFourFault::RelayOfRelay);
        }
        if self.relay == Some(self.address) || self.relay == Some(self.site()) {
            return Err(SixToFourFault::OwnRelay);
        }
        Ok(())
    }
}

/// A 6to4 host, router or relay.
pub struct SixToFour {
    role: Role,
    address: Ipv4Addr,
    site: Ipv4Addr,
    relay: Option<Ipv4Addr>,
    native_sources: NativeSources,
    acceptable: Acceptable,
    own: Arc<OwnAddresses>,
    policy: PolicyId,
    nat: Option<OuterNat>,
}

impl SixToFour {
    /// Requires that `config.check()` succeeded.
    pub fn new(config: &SixToFourConfig, own: &Arc<OwnAddresses>, policy: PolicyId) -> Self {
        Self {
            role: config.role,
            address: config.address,
            site: config.site(),
            relay: config.relay,
            native_sources: config.native_sources.clone(),
            acceptable: Acceptable::new(Scope::Internet, &config.subnets),
            own: Arc::clone(own),
            policy,
            nat: None,
        }
    }

    /// RFC 3056 §5.3, the sending rule, and RFC 3964 §5.1.
    #[inline(always)]
    fn next_hop(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        check_addresses(source, destination)?;
        let from = site_of(source);
        if from.is_some_and(|site| site != self.site) {
            return Err(DropReason::SourceNotOfSite);
        }
        // RFC 6324 §3.3
        if from.is_none() && self.own.stand_in_source(source) {
            return Err(DropReason::TunnelLoop);
        }
        match site_of(destination) {
            // The host has no route to it within the site.
            Some(site) if site == self.site => Err(DropReason::TunnelLoop),
            Some(site) => {
                self.acceptable.check(site)?;
                Ok(site)
            }
            // Native to native: no relay would take it (RFC 3964 §5.2).
            None if from.is_none() => Err(DropReason::SourceNotOfSite),
            None => self.relay.ok_or(DropReason::NoRelay),
        }
    }

    /// RFC 3964 §5.2: a 6to4 source must embed the outer source; a native source must come from a relay.
    #[inline(always)]
    fn check_source(&self, arrived: Arrived) -> Result<(), DropReason> {
        if let Some(site) = site_of(arrived.source) {
            self.acceptable.check(site)?;
            return if site == arrived.from { Ok(()) } else { Err(DropReason::SpoofedEmbeddedSource) };
        }
        if self.role == Role::Relay {
            return Err(DropReason::SourceNotInTunnel);
        }
        if self.relay == Some(arrived.from) {
            return Ok(());
        }
        match &self.native_sources {
            NativeSources::AnyRelay if self.acceptable.check(arrived.from).is_ok() => Ok(()),
            NativeSources::Listed(relays) if relays.contains(&arrived.from) => Ok(()),
            NativeSources::AnyRelay | NativeSources::Listed(_) => Err(DropReason::SourceNotRelay),
        }
    }

    /// RFC 3964 §3.1, §3.2: a site takes what is its own; a relay what is native, for sites reach one another without it.
    #[inline(always)]
    fn check_destination(&self, arrived: Arrived) -> Result<(), DropReason> {
        match (site_of(arrived.destination), self.role) {
            (Some(site), _) if site == self.site => Ok(()),
            (Some(_), Role::Relay) => Err(DropReason::BetweenSites),
            (None, Role::Relay) if self.own.stand_in(arrived.destination) => Err(DropReason::TunnelLoop),
            (None, Role::Relay) => Ok(()),
            (Some(_) | None, Role::Host | Role::Router) => Err(DropReason::DestinationNotInSite),
        }
    }
}

impl contract::Configured for SixToFourConfig {
    fn claims(&self) -> Claims {
        Claims { destinations6: self.prefixes(), ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn local(&self) -> Option<Ipv4Addr> {
        Some(self.address)
    }

    fn stands_for(&self) -> Option<Ipv4Addr> {
        Some(self.site())
    }

    /// Those that the configuration names. Any other address may send packets with a native source, too, and may be anybody's: it is a sender.
    fn relays(&self) -> Vec<IpAddr> {
        let listed: &[Ipv4Addr] = match &self.native_sources {
            NativeSources::Listed(listed) => listed,
            NativeSources::AnyRelay => &[],
        };
        match self.role {
            Role::Host | Role::Router => self.relay.iter().chain(listed).copied().map(IpAddr::V4).collect(),
            Role::Relay => Vec::new(),
        }
    }
}

impl Build for SixToFourConfig {
    type State = SixToFour;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<SixToFour, Infallible> {
        let nat = context.outer_nat(self.address);
        Ok(SixToFour { nat, ..SixToFour::new(self, &context.own_addresses, policy) })
    }
}

impl Tunnel for SixToFour {
    const KIND: Kind = Kind::SixToFour;

    #[inline(always)]
    fn policy(&self) -> PolicyId {
        self.policy
    }

    #[inline(always)]
    fn nat(&self) -> Option<&OuterNat> {
        self.nat.as_ref()
    }

    #[inline(always)]
    fn ends(&self, packet: &Packet) -> Result<(Ipv4Addr, Ipv4Addr), DropReason> {
        let (source, destination) = routed(packet)?;
        Ok((self.address, self.next_hop(source, destination)?))
    }

    #[inline(always)]
    fn check(&self, arrived: Arrived) -> Result<(), DropReason> {
        check_addresses(arrived.source, arrived.destination)?;
        self.check_source(arrived)?;
        self.check_destination(arrived)
    }

    /// It has a 6to4 source or, from a relay to a site, a 6to4 destination.
    #[inline(always)]
    fn claims(&self, arrived: Arrived) -> bool {
        site_of(arrived.source).is_some()
            || (self.role != Role::Relay && site_of(arrived.destination) == Some(self.site))
    }

    fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        self.relay == Some(outer) || self.acceptable.check(outer).is_ok()
    }

    fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        self.next_hop(source, destination) == Ok(outer)
    }
}

/// RFC 3964 §5.3.2, as far as it goes beyond the martians of all tunnels: 0::/16 and site-local addresses are refused.
#[inline(always)]
const fn check_addresses(source: Ipv6Addr, destination: Ipv6Addr) -> Result<(), DropReason> {
    if is_not_global(source) {
        return Err(DropReason::MartianSource);
    }
    if is_not_global(destination) {
        return Err(DropReason::MartianDestination);
    }
    Ok(())
}

#[inline(always)]
const fn is_not_global(address: Ipv6Addr) -> bool {
    let first = (address.to_bits() >> 112) as u16;
    first == 0 || first & 0xffc0 == 0xfec0
}
