//! The translator: IPv4 hosts have addresses under an IPv6 prefix, IPv6 servers have addresses of an IPv4 pool.
//!
//! ```text
//!     client 10.0.0.5 ─▶ 192.0.2.7        2001:db8:46::a00:5 ─▶ 2001:db8:80::1
//!                        of the pool      under the prefix      the server that 192.0.2.7 represents
//! ```

use super::mappings::Mappings;
use super::records::NONE;
use super::settings::{
    ICMP_IDLE, MappingFault, MappingSettings, Sharing, TCP_IDLE, TCP_TRANSITORY, UDP_IDLE,
};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{
    Arrival, Build, BuildContext, BuildFault, Claims, Configured, Mechanism, Quotes,
};
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::source_check::is_martian6;
use crate::translate::Policy;
use crate::translate::address::rfc6052::Rfc6052;
use crate::verdict::{Decision, Edit, Next, PolicyId, Quoted};
use alloc::sync::Arc;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol;
use sixway_wire::{Endpoint4, Endpoint6};

/// RFC 9293 §3.1: flags of segments that begin or end a connection.
const FIN_SYN_RST: u8 = 0b111;
const SYN: u8 = 1 << 1;
const ACK: u8 = 1 << 4;

/// The configuration of a NAT46.
#[derive(Clone)]
pub struct Nat46Config {
    /// The prefix of the clients' IPv6 addresses (RFC 6052).
    pub prefix: Rfc6052,
    /// Its mappings.
    pub mappings: MappingSettings,
    /// The table of them that all workers share; `None`: a worker makes its own.
    pub table: Option<Arc<Mappings>>,
    /// Options of the translation.
    pub policy: Policy,
}

/// A NAT46.
pub struct Nat46 {
    prefix: Rfc6052,
    mappings: Arc<Mappings>,
    /// The source of ICMP errors from routers without an IPv4 address (RFC 6791 §3).
    icmp_source: Option<Ipv4Addr>,
    policy: PolicyId,
}

impl From<MappingFault> for BuildFault {
    fn from(fault: MappingFault) -> Self {
        Self::of(&fault)
    }
}

impl Configured for Nat46Config {
    fn claims(&self) -> Claims {
        Claims {
            destinations4: vec![self.mappings.pool],
            destinations6: vec![self.prefix.prefix()],
            ..Claims::default()
        }
    }

    fn policy(&self) -> Policy {
        self.policy
    }
}

impl Build for Nat46Config {
    type State = Nat46;
    type Fault = MappingFault;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Nat46, MappingFault> {
        let mappings = match &self.table {
            Some(table) => Arc::clone(table),
            None => Arc::new(Mappings::in_memory(self.mappings.clone(), context.seed)?),
        };
        Ok(Nat46 { prefix: self.prefix, mappings, icmp_source: context.own4, policy })
    }
}

impl Nat46 {
    /// The mappings, which all workers share.
    pub const fn mappings(&self) -> &Arc<Mappings> {
        &self.mappings
    }

    #[inline(always)]
    fn v4_to_v6(
        &self,
        arrival: &Arrival<'_>,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        first: u32,
        now: Instant,
    ) -> Result<Decision, DropReason> {
        let packet = arrival.packet;
        refuse_headers_of_ipv6(packet.protocol)?;
        if !self.mappings.settings().is_client(source) {
            return Err(DropReason::SourceUnmapped);
        }
        self.prefix.permit(source)?;
        let (server, used) =
            self.mappings.server_from(first, (source, destination), now).ok_or(DropReason::NoBinding)?;
        if used.is_some_and(|used| !self.mappings.used(used, source, now, idle(packet))) {
            return Err(DropReason::NoBinding);
        }
        let edit = Edit::Translate4To6 {
            source: Endpoint6::new(self.prefix.embed_any(source), 0),
            destination: Endpoint6::new(server, 0),
            keep_ports: true,
        };
        Ok(Decision::edit(edit, self.policy, Next::Leave))
    }

    #[inline(always)]
    fn v6_to_v4(
        &self,
        arrival: &Arrival<'_>,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        first: u32,
        now: Instant,
    ) -> Result<Decision, DropReason> {
        if arrival.packet.protocol == protocol::ICMPV4 {
            return Err(DropReason::ProtocolUntranslatable);
        }
        let client = self.client(destination)?;
        if self.mappings.settings().sharing == Sharing::All && begins_connection(arrival.packet) {
            return Err(DropReason::NoBinding);
        }
        let address =
            self.mappings.address_from(first, (client, source), now).ok_or(DropReason::NoBinding)?;
        let edit = Edit::Translate6To4 {
            source: Endpoint4::new(address, 0),
            destination: Endpoint4::new(client, 0),
            keep_ports: true,
        };
        Ok(Decision::edit(edit, self.policy, Next::Leave))
    }

    /// The client that an address under the prefix represents.
    #[inline(always)]
    fn client(&self, image: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        let client = self.prefix.extract(image)?;
        if self.mappings.settings().is_client(client) {
            Ok(client)
        } else {
            Err(DropReason::DestinationUnmapped)
        }
    }

    /// An ICMP error of a client, or of a router on the way to it, about a packet of a server. The quoted packet determines the mapping.
    #[cold]
    fn error_to_v6(
        &self,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        quoted: QuotedTuple,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let QuotedTuple::V4 { source: from, destination: to, .. } = quoted else {
            return Err(DropReason::QuoteUnusable);
        };
        let client = to.address;
        if from.address != destination || !self.mappings.settings().is_client(client) {
            return Err(DropReason::QuoteUnusable);
        }
        // RFC 6052 §3.1: no private address under the well-known prefix.
        self.prefix.permit(source)?;
        let found = self.mappings.server_from(NONE, (client, destination), now);
        let (server, _) = found.ok_or(DropReason::NoSessionForError)?;
        let quoted = effects.quoted(Quoted::V6 {
            source: Endpoint6::new(server, from.port),
            destination: Endpoint6::new(self.prefix.embed_any(client), to.port),
            keep_ports: true,
        });
        let edit = Edit::Translate4To6 {
            // An error from any sender is useful: it reports that a destination is unreachable, or that a packet is too big.
            source: Endpoint6::new(self.prefix.embed_any(source), 0),
            destination: Endpoint6::new(server, 0),
            keep_ports: true,
        };
        Ok(Decision { quoted: Some(quoted), ..Decision::edit(edit, self.policy, Next::Leave) })
    }

    /// An ICMP error of a server, or of a router on the way to it, about a packet of a client.
    #[cold]
    fn error_to_v4(
        &self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        quoted: QuotedTuple,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let QuotedTuple::V6 { source: from, destination: to, .. } = quoted else {
            return Err(DropReason::QuoteUnusable);
        };
        if from.address != destination {
            return Err(DropReason::QuoteUnusable);
        }
        let (client, server) = (self.client(destination)?, to.address);
        let address = self.mappings.address_from(NONE, (client, server), now);
        let address = address.ok_or(DropReason::NoSessionForError)?;
        let sender = if source == server { Some(address) } else { self.icmp_source };
        let quoted = effects.quoted(Quoted::V4 {
            source: Endpoint4::new(client, from.port),
            destination: Endpoint4::new(address, to.port),
            keep_ports: true,
        });
        let edit = Edit::Translate6To4 {
            source: Endpoint4::new(sender.ok_or(DropReason::SourceUnmapped)?, 0),
            destination: Endpoint4::new(client, 0),
            keep_ports: true,
        };
        Ok(Decision { quoted: Some(quoted), ..Decision::edit(edit, self.policy, Next::Leave) })
    }
}

/// Whether it is the first segment of a TCP connection. A mapping of all clients does not say which of them used it.
#[inline(always)]
const fn begins_connection(packet: &Packet) -> bool {
    match packet.transport {
        Transport::Ports { tcp_flags, .. } => {
            packet.protocol == protocol::TCP && tcp_flags & (SYN | ACK) == SYN
        }
        Transport::IcmpQuery { .. } | Transport::IcmpError { .. } | Transport::Opaque => false,
    }
}

/// For how many seconds a client may be silent after a packet.
#[inline(always)]
const fn idle(packet: &Packet) -> u32 {
    match packet.transport {
        Transport::Ports { tcp_flags, .. } if packet.protocol == protocol::TCP => {
            if tcp_flags & FIN_SYN_RST == 0 { TCP_IDLE } else { TCP_TRANSITORY }
        }
        Transport::IcmpQuery { .. } => ICMP_IDLE,
        Transport::Ports { .. } | Transport::IcmpError { .. } | Transport::Opaque => UDP_IDLE,
    }
}

/// IPv4 protocol numbers that IPv6 would read as its own headers, and IGMP (RFC 7915 §4.2).
const fn refuse_headers_of_ipv6(number: u8) -> Result<(), DropReason> {
    use protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ICMPV6, IGMP, ROUTING};
    match number {
        IGMP => Err(DropReason::Igmp),
        HOP_BY_HOP | ROUTING | FRAGMENT | ICMPV6 | DESTINATION_OPTIONS => {
            Err(DropReason::ProtocolUntranslatable)
        }
        _ => Ok(()),
    }
}

impl Mechanism for Nat46 {
    const KIND: Kind = Kind::Nat46;
    const QUOTES: Quotes = Quotes::Addresses;
    const STAGES: usize = 1;
    /// The first record to look at.
    type Probe = u32;
    const NO_PROBE: u32 = NONE;

    fn prepare(&self, packet: &Packet, _inner: Option<&Packet>, probe: &mut u32) {
        *probe = match packet.addresses {
            Addresses::V4 { source, destination } => self.mappings.first_out(source, destination),
            Addresses::V6 { source, destination } => match self.prefix.extract_any(destination) {
                Ok(client) => self.mappings.first_in(client, source),
                Err(_) => NONE,
            },
        };
    }

    fn warm(&self, _stage: usize, probe: &mut u32) {
        self.mappings.touch(*probe);
    }

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &u32,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let is_error = matches!(arrival.packet.transport, Transport::IcmpError { .. });
        match (arrival.packet.addresses, arrival.quoted) {
            // Without the quoted packet, the mapping is unknown.
            (_, None) if is_error => Err(DropReason::IcmpFragment),
            (Addresses::V4 { source, destination }, Some(quoted)) => {
                self.error_to_v6((source, destination), quoted, now, effects)
            }
            (Addresses::V6 { source, destination }, Some(quoted)) => {
                if is_martian6(source) {
                    return Err(DropReason::MartianSource);
                }
                self.error_to_v4((source, destination), quoted, now, effects)
            }
            (Addresses::V4 { source, destination }, None) => {
                self.v4_to_v6(arrival, (source, destination), *probe, now)
            }
            (Addresses::V6 { source, destination }, None) => {
                self.v6_to_v4(arrival, (source, destination), *probe, now)
            }
        }
    }

    fn expire(&mut self, now: Instant, budget: usize, _effects: &mut Effects) {
        self.mappings.expire(now, budget);
    }
}
