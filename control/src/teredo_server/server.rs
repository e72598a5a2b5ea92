//! The server: one datagram in, at most one out.

use super::advertisement::{advertisement, link_local};
use super::authentication::{Clients, Protected};
use super::packet::{self, Content};
use super::rates::{Rate, Rates};
use super::refusal::Refusal;
use crate::neighbour_discovery::{ALL_ROUTERS, Message, Received};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;
use sixway_wire::teredo::{Origin, Prologue, TeredoAddress, TeredoInterface, is_global_unicast};
use sixway_wire::{Endpoint4, IPV6_HEADER, Ipv6Header, Prefix4};

/// Buckets of rates: 1 MiB for sources and destinations together.
const BUCKETS: usize = 65_536;

/// What a server is configured with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its address, which clients' addresses contain.
    pub address: Ipv4Addr,
    /// Its second address: answers to clients that try whether they are behind a cone NAT come from there. `None`: such clients get no answer, and
    /// qualify as if they were behind no cone NAT.
    pub secondary: Option<Ipv4Addr>,
    /// Who may qualify.
    pub clients: Clients,
    /// Networks this host is attached to: nothing is sent to their broadcast addresses.
    pub subnets: Vec<Prefix4>,
    /// Of one IPv4 source.
    pub source_rate: Rate,
    /// To one client.
    pub destination_rate: Rate,
    /// Of all together.
    pub total_rate: Rate,
}

impl Settings {
    /// Those of the configuration file's defaults.
    pub fn new(address: Ipv4Addr, secondary: Option<Ipv4Addr>) -> Self {
        Self {
            address,
            secondary,
            clients: Clients::everybody(),
            subnets: Vec::new(),
            source_rate: Rate { rate: 20, burst: 60 },
            destination_rate: Rate { rate: 50, burst: 100 },
            total_rate: Rate { rate: 50_000, burst: 50_000 },
        }
    }
}

/// A datagram that came to the server's port.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// From where.
    pub from: Endpoint4,
    /// To which of the server's addresses.
    pub to: Ipv4Addr,
    /// The payload of UDP.
    pub payload: &'a [u8],
}

/// What a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The octets as a datagram, from this address of the server and its port.
    Udp {
        /// Source.
        from: Ipv4Addr,
        /// Destination.
        to: Endpoint4,
    },
    /// The octets as an IPv6 packet, by the host's routing.
    Native,
}

/// A Teredo server.
#[derive(Clone, Debug)]
pub struct Server {
    settings: Settings,
    sources: Rates,
    destinations: Rates,
    total: Rates,
}

impl Server {
    /// A server; the seed makes the places of its buckets unpredictable.
    pub fn new(settings: Settings, seed: u64) -> Self {
        let sources = Rates::new(settings.source_rate, BUCKETS, seed);
        let destinations = Rates::new(settings.destination_rate, BUCKETS, seed.rotate_left(32));
        let total = Rates::new(settings.total_rate, 1, seed);
        Self { settings, sources, destinations, total }
    }

    /// Handles a datagram: writes what is to be sent to `out`.
    ///
    /// # Errors
    /// Why it is silently discarded.
    pub fn handle(
        &mut self,
        datagram: Datagram<'_>,
        out: &mut Vec<u8>,
        now: Instant,
    ) -> Result<Sent, Refusal> {
        out.clear();
        let (prologue, octets) = Prologue::split(datagram.payload).map_err(|_| Refusal::Malformed)?;
        let (header, packet) = packet::read(octets)?;
        let content = packet::content(&header, packet)?;
        if !self.may_send_to(datagram.from.address) || datagram.from.port == 0 {
            return Err(Refusal::SourceNotGlobal);
        }
        let is_own = |address| self.settings.address == address || self.settings.secondary == Some(address);
        if is_own(datagram.from.address) {
            return Err(Refusal::Loop);
        }
        // The rate of the source first: whoever is over it takes nothing of what is for all.
        if !self.sources.admit(datagram.from.address, now) {
            return Err(Refusal::SourceRate);
        }
        if !self.total.admit(Ipv4Addr::UNSPECIFIED, now) {
            return Err(Refusal::TotalRate);
        }
        if content == Content::Solicitation {
            return self.advertise(datagram, &prologue, (&header, packet), out);
        }
        self.check_source(datagram.from, &header)?;
        match TeredoAddress::of(header.destination) {
            Some(client) => self.forward_to_client(datagram, client, octets, out, now),
            None => self.forward_native(&header, (content, packet), out),
        }
    }

    /// Whether datagrams may go to an address (RFC 4380 §5.2.4).
    fn may_send_to(&self, address: Ipv4Addr) -> bool {
        let is_broadcast = |subnet: &Prefix4| {
            subnet.contains(address) && subnet.length() < 31 && {
                let host = u32::MAX.checked_shr(subnet.length().into()).unwrap_or(0);
                matches!(address.to_bits() & host, bits if bits == host || bits == 0)
            }
        };
        is_global_unicast(address) && !self.settings.subnets.iter().any(is_broadcast)
    }

    /// RFC 4380 §5.3.1, 5 and 6.
    fn check_source(&self, from: Endpoint4, header: &Ipv6Header) -> Result<(), Refusal> {
        match TeredoAddress::of(header.source) {
            Some(client) if client.mapped() != from => Err(Refusal::SourceSpoofed),
            Some(_) => Ok(()),
            None if !is_global(header.source) => Err(Refusal::SourceSpoofed),
            None => match TeredoAddress::of(header.destination) {
                Some(client) if client.server == self.settings.address => Ok(()),
                Some(_) | None => Err(Refusal::NotOurClient),
            },
        }
    }

    /// A router solicitation (RFC 4380 §5.3.2).
    fn advertise(
        &self,
        datagram: Datagram<'_>,
        prologue: &Prologue<'_>,
        (header, packet): (&Ipv6Header, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<Sent, Refusal> {
        let client = TeredoInterface::of_link_local(header.source).ok_or(Refusal::Malformed)?;
        if header.destination != ALL_ROUTERS && header.destination != link_local(self.settings.address) {
            return Err(Refusal::Malformed);
        }
        let received = Received {
            source: header.source,
            destination: header.destination,
            hop_limit: header.hop_limit,
            outer_source: None,
            message: packet.get(IPV6_HEADER..).ok_or(Refusal::Malformed)?,
        };
        let Ok(Message::RouterSolicitation(_)) = Message::parse(&received) else {
            return Err(Refusal::Malformed);
        };
        let authentication = prologue.authentication.as_ref();
        let key = self.settings.clients.check(authentication, prologue.origin, packet)?;
        // RFC 4380 §5.3.2: to a cone bit the answer comes from the address that was not asked.
        let from = if client.is_cone() { self.other_than(datagram.to)? } else { datagram.to };
        let answer = advertisement(self.settings.address, header.source);
        let origin = Origin(datagram.from);
        if let Some(asked) = authentication {
            let nonce = asked.nonce;
            let protected = Protected { nonce, confirmation: 0, origin: Some(origin), packet: &answer };
            Clients::write(out, asked, key, protected);
        }
        out.extend(origin.octets());
        out.extend(answer);
        Ok(Sent::Udp { from, to: datagram.from })
    }

    /// The server's other address.
    fn other_than(&self, address: Ipv4Addr) -> Result<Ipv4Addr, Refusal> {
        let secondary = self.settings.secondary.ok_or(Refusal::NoSecondary)?;
        Ok(if address == secondary { self.settings.address } else { secondary })
    }

    /// A bubble or an echo message to a client, of this server or of another one.
    fn forward_to_client(
        &mut self,
        datagram: Datagram<'_>,
        client: TeredoAddress,
        octets: &[u8],
        out: &mut Vec<u8>,
        now: Instant,
    ) -> Result<Sent, Refusal> {
        let to = client.mapped();
        if !self.may_send_to(to.address) || to.port == 0 {
            return Err(Refusal::MappedNotGlobal);
        }
        if to.address == self.settings.address || self.settings.secondary == Some(to.address) {
            return Err(Refusal::Loop);
        }
        if !self.destinations.admit(to.address, now) {
            return Err(Refusal::DestinationRate);
        }
        if client.server == self.settings.address {
            out.extend(Origin(datagram.from).octets());
        }
        // With its trailers (RFC 6081 §4.1).
        out.extend_from_slice(octets);
        Ok(Sent::Udp { from: self.settings.address, to })
    }

    /// A packet of a client to a native host: by the host's routing, as a router forwards it.
    fn forward_native(
        &self,
        header: &Ipv6Header,
        (content, packet): (Content, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<Sent, Refusal> {
        if !is_global(header.destination) {
            return Err(Refusal::DestinationNotGlobal);
        }
        let is_ours =
            TeredoAddress::of(header.source).is_some_and(|client| client.server == self.settings.address);
        if !is_ours {
            return Err(Refusal::NotOurClient);
        }
        // A bubble says nothing to a native host.
        if content != Content::Echo || header.hop_limit <= 1 {
            return Err(Refusal::NotForwarded);
        }
        out.extend_from_slice(packet);
        if let Some(hop_limit) = out.get_mut(7) {
            *hop_limit -= 1;
        }
        Ok(Sent::Native)
    }
}

/// Whether an address is global unicast (RFC 4291 §2.4, as IANA allocates it), and if it embeds an IPv4 address of 6to4, whether that is.
fn is_global(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let is_allocated = bits >> 125 == 0b001;
    let is_6to4 = bits >> 112 == 0x2002;
    is_allocated && (!is_6to4 || is_global_unicast(Ipv4Addr::from_bits((bits >> 80) as u32)))
}
