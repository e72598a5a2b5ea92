//! The stateless translator of one configuration section: which address becomes which.

use super::dynamic_pool::{DynamicPool, DynamicPoolConfig, DynamicPoolFault};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{self, Arrival, Build, BuildContext, Claims, Mechanism, Quotes};
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::source_check::is_martian4;
use crate::translate::Policy;
use crate::translate::address::eam::EamTable;
use crate::translate::address::rfc6052::Rfc6052;
use crate::verdict::{Decision, Edit, Next, PolicyId, Quoted, WorkerId};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};

/// How packets between two hosts that the EAM table maps reach one another by their IPv4 addresses (RFC 7757 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hairpinning {
    /// The translator hairpins them itself (§4.2.2).
    #[default]
    Intrinsic,
    /// They leave as IPv4 and come back from the IPv4 network (§4.2.1).
    Simple,
    /// They are translated like all others.
    Off,
}

/// Configuration of one stateless translator.
#[derive(Clone)]
pub struct SiitConfig {
    /// The translation prefix, if any (RFC 6052).
    pub prefix: Option<Rfc6052>,
    /// IPv4 addresses that the prefix does not represent.
    pub excluded: Vec<Prefix4>,
    /// Explicit address mappings; shared between workers.
    pub eam: Arc<EamTable>,
    /// Hairpinning mode.
    pub hairpinning: Hairpinning,
    /// IPv4 sources for ICMPv6 errors from addresses without a mapping (RFC 6791 §4).
    pub icmp_source_pool: Vec<Ipv4Addr>,
    /// Addresses for hosts without a mapping.
    pub dynamic_pool: Option<DynamicPoolConfig>,
    /// Translation options.
    pub policy: Policy,
}

impl Default for SiitConfig {
    fn default() -> Self {
        Self {
            prefix: None,
            excluded: Vec::new(),
            eam: Arc::new(EamTable::empty()),
            hairpinning: Hairpinning::default(),
            icmp_source_pool: Vec::new(),
            dynamic_pool: None,
            policy: Policy::default(),
        }
    }
}

/// By what an address was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Via {
    Table,
    Algorithm,
    Pool,
}

/// A stateless translator.
pub struct Siit {
    prefix: Option<Rfc6052>,
    /// Whether the prefix does not represent all addresses.
    refuses_some: bool,
    excluded: Vec<Prefix4>,
    eam: Arc<EamTable>,
    hairpinning: Hairpinning,
    icmp_sources4: Vec<Ipv4Addr>,
    icmp_source6: Option<Ipv6Addr>,
    pool: Option<DynamicPool>,
    policy: PolicyId,
}

/// IPv4 protocol numbers that IPv6 would read as its own headers.
const fn is_ipv6_header(number: u8) -> bool {
    use protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ICMPV6, ROUTING};
    matches!(number, HOP_BY_HOP | ROUTING | FRAGMENT | ICMPV6 | DESTINATION_OPTIONS)
}

impl Siit {
    /// A translator for one worker's engine.
    pub fn new(
        config: &SiitConfig,
        policy: PolicyId,
        context: &BuildContext,
    ) -> Result<Self, DynamicPoolFault> {
        let mut icmp_sources4 = config.icmp_source_pool.clone();
        if icmp_sources4.is_empty() {
            icmp_sources4.extend(context.own4);
        }
        let pool = config.dynamic_pool.as_ref();
        let pool = pool.map(|pool| DynamicPool::new(pool, context.worker, context.workers, context.seed));
        Ok(Self {
            prefix: config.prefix,
            refuses_some: !config.excluded.is_empty() || config.prefix.is_some_and(|it| it.is_global_only()),
            excluded: config.excluded.clone(),
            eam: Arc::clone(&config.eam),
            hairpinning: config.hairpinning,
            icmp_sources4,
            icmp_source6: context.own6,
            pool: pool.transpose()?,
            policy,
        })
    }

    /// Whether a table, the pool or an assignment names the IPv4 address; the prefix, which maps every address, is not asked.
    #[inline]
    pub fn maps4(&self, address: Ipv4Addr) -> bool {
        self.eam.contains4(address) || self.pool.as_ref().is_some_and(|pool| pool.contains4(address))
    }

    /// Whether the table names the IPv6 address.
    #[inline]
    pub fn maps6(&self, address: Ipv6Addr) -> bool {
        self.mapping6(address).is_some()
    }

    /// The length of the longest prefix by which the table names the IPv6 address.
    #[inline]
    pub fn mapping6(&self, address: Ipv6Addr) -> Option<u8> {
        self.eam.length6(address)
    }

    /// The translation prefix.
    pub const fn prefix(&self) -> Option<&Rfc6052> {
        self.prefix.as_ref()
    }

    /// The dynamic pool, if there is one.
    pub const fn dynamic_pool(&mut self) -> Option<&mut DynamicPool> {
        self.pool.as_mut()
    }

    #[inline(always)]
    fn v6_to_v4(
        &mut self,
        arrival: &Arrival<'_>,
        (source6, destination6): (Ipv6Addr, Ipv6Addr),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let Arrival { packet, quoted, .. } = arrival;
        if packet.protocol == protocol::ICMPV4 {
            return Err(DropReason::ProtocolUntranslatable);
        }
        let (destination, mut via) =
            self.map6_to_bits(destination6, false, now)?.ok_or(DropReason::DestinationUnmapped)?;
        let destination = Ipv4Addr::from_bits(destination);
        // Before the source gets an address for it.
        if is_martian4(destination) {
            return Err(DropReason::MartianDestination);
        }
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        let source = match self.map6_to_bits(source6, true, now)? {
            Some((source, _)) => source,
            None if is_error => self.icmp_source4(source6)?.to_bits(),
            None => self.assign(source6, now)?.to_bits(),
        };
        let source = Ipv4Addr::from_bits(source);
        if is_martian4(source) && !is_error {
            return Err(DropReason::MartianSource);
        }
        let mut looked_up = destination;
        let mut inner = None;
        if let Some(QuotedTuple::V6 { source, destination, .. }) = quoted {
            let (quoted_source, quoted_via) =
                self.map6(source.address, false, now)?.ok_or(DropReason::QuoteUnusable)?;
            let (quoted_destination, _) =
                self.map6(destination.address, false, now)?.ok_or(DropReason::QuoteUnusable)?;
            (looked_up, via) = (quoted_source, quoted_via);
            inner = Some(effects.quoted(Quoted::V4 {
                source: Endpoint4::new(quoted_source, source.port),
                destination: Endpoint4::new(quoted_destination, destination.port),
                keep_ports: true,
            }));
        }
        let turns =
            self.hairpinning == Hairpinning::Intrinsic && via == Via::Algorithm && self.maps4(looked_up);
        let edit = Edit::Translate6To4 {
            source: Endpoint4::new(source, 0),
            destination: Endpoint4::new(destination, 0),
            keep_ports: true,
        };
        let next = if turns { Next::Again } else { Next::Leave };
        Ok(Decision { quoted: inner, ..Decision::edit(edit, self.policy, next) })
    }

    #[inline(always)]
    fn v4_to_v6(
        &mut self,
        arrival: &Arrival<'_>,
        (source4, destination4): (Ipv4Addr, Ipv4Addr),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let Arrival { packet, quoted, again: hairpinned, .. } = *arrival;
        if packet.protocol == protocol::IGMP {
            return Err(DropReason::Igmp);
        }
        if is_ipv6_header(packet.protocol) {
            return Err(DropReason::ProtocolUntranslatable);
        }
        // RFC 7757 §4.2.1: with simple hairpinning sources are not looked up in the table (rule 1), nor for the quoted
        // packet's destination (rule 2), nor for the source of an error that the quoted destination sent (rule 3).
        let simple = hairpinned || self.hairpinning == Hairpinning::Simple;
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        let from_quoted =
            matches!(quoted, Some(QuotedTuple::V4 { destination, .. }) if destination.address == source4);
        let ask_table = !simple || (is_error && !from_quoted);
        let destination =
            self.map4_to_bits(destination4, true, now)?.ok_or(DropReason::DestinationUnmapped)?;
        // An illegal source of an ICMP error is translated too (RFC 7915 §4.1), but not under the well-known prefix (RFC 6052 §3.1).
        let mapped = match self.map4_to_bits(source4, ask_table, now) {
            // An error reports where a path ends, or that a packet is too big, independently of its sender.
            Err(DropReason::ExcludedIpv4) if is_error => {
                self.prefix.map(|it| it.embed_any(source4).to_bits())
            }
            mapped => mapped?,
        };
        let source = match mapped {
            Some(source) => source,
            None if is_error => self.icmp_source6.ok_or(DropReason::SourceUnmapped)?.to_bits(),
            None => return Err(DropReason::SourceUnmapped),
        };
        let mut inner = None;
        if let Some(QuotedTuple::V4 { source, destination, .. }) = quoted {
            let quoted_source = self.map4(source.address, true, now)?.ok_or(DropReason::QuoteUnusable)?;
            let quoted_destination =
                self.map4(destination.address, !simple, now)?.ok_or(DropReason::QuoteUnusable)?;
            inner = Some(effects.quoted(Quoted::V6 {
                source: Endpoint6::new(quoted_source, source.port),
                destination: Endpoint6::new(quoted_destination, destination.port),
                keep_ports: true,
            }));
        }
        let edit = Edit::Translate4To6 {
            source: Endpoint6::new(Ipv6Addr::from_bits(source), 0),
            destination: Endpoint6::new(Ipv6Addr::from_bits(destination), 0),
            keep_ports: true,
        };
        Ok(Decision { quoted: inner, ..Decision::edit(edit, self.policy, Next::Leave) })
    }

    /// RFC 7757 §3.3.2, then RFC 6052 §2.3, then an assignment of the pool, which is renewed if the host was `heard`.
    #[inline(always)]
    fn map6(
        &mut self,
        address: Ipv6Addr,
        heard: bool,
        now: Instant,
    ) -> Result<Option<(Ipv4Addr, Via)>, DropReason> {
        let mapped = self.map6_to_bits(address, heard, now)?;
        Ok(mapped.map(|(bits, via)| (Ipv4Addr::from_bits(bits), via)))
    }

    /// The address as a number, as in [`Self::map4_to_bits`].
    #[inline(always)]
    fn map6_to_bits(
        &mut self,
        address: Ipv6Addr,
        heard: bool,
        now: Instant,
    ) -> Result<Option<(u32, Via)>, DropReason> {
        if let Some(mapped) = self.eam.to4(address) {
            return Ok(Some((mapped.to_bits(), Via::Table)));
        }
        if let Some(prefix) = self.prefix.as_ref().filter(|prefix| prefix.contains(address)) {
            let mapped = prefix.extract_any(address)?.to_bits();
            if self.refuses_some {
                self.permit(Ipv4Addr::from_bits(mapped))?;
            }
            return Ok(Some((mapped, Via::Algorithm)));
        }
        match &mut self.pool {
            Some(pool) => Ok(assigned(pool, address, heard, now).map(|mapped| (mapped.to_bits(), Via::Pool))),
            None => Ok(None),
        }
    }

    /// RFC 7757 §3.3.1 if `ask_table`, then an assignment of the pool, then RFC 6052 §2.3.
    #[inline(always)]
    fn map4(
        &mut self,
        address: Ipv4Addr,
        ask_table: bool,
        now: Instant,
    ) -> Result<Option<Ipv6Addr>, DropReason> {
        let mapped = self.map4_to_bits(address, ask_table, now)?;
        Ok(mapped.map(Ipv6Addr::from_bits))
    }

    /// The address as a number: an address among enums is copied octet-wise through memory, in pieces that overlap, and the processor
    /// waits for each.
    #[inline(always)]
    fn map4_to_bits(
        &mut self,
        address: Ipv4Addr,
        ask_table: bool,
        now: Instant,
    ) -> Result<Option<u128>, DropReason> {
        if ask_table {
            if let Some(mapped) = self.eam.to6(address) {
                return Ok(Some(mapped.to_bits()));
            }
            if let Some(pool) = self.pool.as_mut().filter(|pool| pool.contains4(address)) {
                return Ok(pool.lookup4(address, now).map(Ipv6Addr::to_bits));
            }
        }
        match &self.prefix {
            Some(prefix) => {
                if self.refuses_some {
                    self.permit(address)?;
                }
                Ok(Some(prefix.embed_any(address).to_bits()))
            }
            None => Ok(None),
        }
    }

    /// Whether the prefix may represent an address.
    #[cold]
    fn permit(&self, address: Ipv4Addr) -> Result<(), DropReason> {
        if self.excluded.iter().any(|prefix| prefix.contains(address)) {
            return Err(DropReason::ExcludedIpv4);
        }
        self.prefix.map_or(Ok(()), |prefix| prefix.permit(address))
    }

    fn assign(&mut self, address: Ipv6Addr, now: Instant) -> Result<Ipv4Addr, DropReason> {
        self.pool.as_mut().ok_or(DropReason::SourceUnmapped)?.assign(address, now)
    }

    /// RFC 6791 §4: an address of the pool for an error from a source without mapping; the same one for the same source.
    fn icmp_source4(&self, source: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        let bits = source.to_bits();
        let folded = (bits as u64 ^ (bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let index = folded as usize % self.icmp_sources4.len().max(1);
        self.icmp_sources4.get(index).copied().ok_or(DropReason::SourceUnmapped)
    }
}

impl contract::Configured for SiitConfig {
    fn claims(&self) -> Claims {
        let destinations6 = self.prefix.iter().map(Rfc6052::prefix).collect();
        Claims { destinations6, names: true, rest4: self.prefix.is_some(), ..Claims::default() }
    }

    fn policy(&self) -> Policy {
        self.policy
    }
}

impl Build for SiitConfig {
    type State = Siit;
    type Fault = DynamicPoolFault;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Siit, DynamicPoolFault> {
        Siit::new(self, policy, context)
    }
}

impl Mechanism for Siit {
    const KIND: Kind = Kind::Siit;
    const TURNS_AROUND: bool = true;
    const NAMES_REST: bool = true;
    const QUOTES: Quotes = Quotes::Addresses;
    type Probe = ();
    const NO_PROBE: () = ();

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        (): &(),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match arrival.packet.addresses {
            Addresses::V6 { source, destination } => {
                self.v6_to_v4(arrival, (source, destination), now, effects)
            }
            Addresses::V4 { source, destination } => {
                self.v4_to_v6(arrival, (source, destination), now, effects)
            }
        }
    }

    /// Releases hosts of the dynamic pool that have been silent too long.
    fn expire(&mut self, now: Instant, budget: usize, _effects: &mut Effects) {
        if let Some(pool) = &mut self.pool {
            pool.expire(now, budget);
        }
    }

    /// The worker that holds the dynamic pool's assignment which the packet needs; `None`: any worker will do. Of an ICMP
    /// error from inside it is that of the host to which the packet went that it quotes: a router has none.
    fn worker_of(&self, packet: &Packet, quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        let pool = self.pool.as_ref()?;
        let host = match (packet.addresses, quoted) {
            (Addresses::V4 { destination, .. }, _) => return pool.worker_of4(destination),
            (Addresses::V6 { .. }, Some(QuotedTuple::V6 { destination, .. })) => destination.address,
            (Addresses::V6 { source, .. }, _) => source,
        };
        let is_mapped = self.maps6(host) || self.prefix.is_some_and(|prefix| prefix.contains(host));
        (!is_mapped).then(|| pool.worker_of6(host))
    }

    #[inline]
    fn names4(&self, address: Ipv4Addr) -> bool {
        self.maps4(address)
    }

    fn names6(&self, address: Ipv6Addr) -> Option<u8> {
        self.mapping6(address)
    }
}

/// A host's address in the pool. Not part of the path of those who have no pool.
#[inline(never)]
fn assigned(pool: &mut DynamicPool, host: Ipv6Addr, heard: bool, now: Instant) -> Option<Ipv4Addr> {
    if heard { pool.lookup6(host, now) } else { pool.peek6(host, now) }
}
