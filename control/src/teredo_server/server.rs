//! The server: one datagram in, at most one out.

use super::advertisement::{advertisement, link_local};
use super::authentication::Clients;
use super::counts::{Counts, Outcome};
use super::packet::{self, Content};
use super::refusal::Refusal;
use super::sent::Sent;
use crate::neighbour_discovery::{ALL_ROUTERS, Message, Received};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;
use sixway_dataplane::rates::{Rate, Rates};
use sixway_wire::teredo::{Origin, Prologue, TEREDO_PORT, TeredoAddress, TeredoInterface, is_global_unicast};
use sixway_wire::{Endpoint4, IPV6_HEADER, Ipv6Header, Prefix4, Prefix6};

/// Buckets of rates: 1 MiB for sources and destinations together.
const BUCKETS: usize = 65_536;
/// Those of authentic clients, by identifier.
const BUCKETS_OF_CLIENTS: usize = 4_096;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its address, which clients' addresses contain.
    pub address: Ipv4Addr,
    /// Its second address, the source of answers to clients that test whether they are behind a cone NAT. `None`: such clients get no answer, and
    /// qualify as if their NAT were not a cone NAT.
    pub secondary: Option<Ipv4Addr>,
    /// Which clients may qualify.
    pub clients: Clients,
    /// Whether echo messages of clients are forwarded to native hosts. Without it, clients cannot find the relays that are nearest to those.
    pub native: bool,
    /// Whether also to those in IPv6 networks of this host. The packets do not pass the rules for what this host forwards.
    pub own_networks: bool,
    /// This host's addresses, and its networks: nothing is forwarded to itself or to broadcast addresses.
    pub host: OwnAddresses,
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
            native: true,
            own_networks: false,
            host: OwnAddresses::default(),
            source_rate: Rate { rate: 20, burst: 60 },
            destination_rate: Rate { rate: 50, burst: 100 },
            total_rate: Rate { rate: 50_000, burst: 50_000 },
        }
    }
}

/// This host's addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    /// Its IPv4 addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// Networks that it is attached to.
    pub subnets: Vec<Prefix4>,
    /// Those of IPv6, and its own addresses there.
    pub subnets6: Vec<Prefix6>,
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

/// A Teredo server.
#[derive(Clone, Debug)]
pub struct Server {
    settings: Settings,
    sources: Rates,
    /// Rates of authentic clients, which a flood of forged sources does not use up.
    clients: Rates,
    destinations: Rates,
    total: Rates,
    /// The third of the total rate that is reserved for authentic solicitations.
    reserved: Rates,
    counts: Counts,
}

impl Server {
    /// A server; `seed` keeps attackers from predicting which addresses share a bucket.
    pub fn new(settings: Settings, seed: u64) -> Self {
        let (reserved, total) = settings.total_rate.thirds();
        Self {
            sources: Rates::new(settings.source_rate, BUCKETS, seed),
            clients: Rates::new(settings.source_rate, BUCKETS_OF_CLIENTS, seed.rotate_left(16)),
            destinations: Rates::new(settings.destination_rate, BUCKETS, seed.rotate_left(32)),
            total: Rates::new(total, 1, seed),
            reserved: Rates::new(reserved, 1, seed),
            settings,
            counts: Counts::default(),
        }
    }

    /// The counters.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// This host has other addresses.
    pub fn set_host(&mut self, host: OwnAddresses) {
        self.settings.host = host;
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
        let outcome = self.decide(datagram, out, now);
        self.counts.count(&outcome);
        outcome.map(Outcome::sent)
    }

    fn decide(
        &mut self,
        datagram: Datagram<'_>,
        out: &mut Vec<u8>,
        now: Instant,
    ) -> Result<Outcome, Refusal> {
        let (prologue, octets) = Prologue::split(datagram.payload).map_err(|_| Refusal::Malformed)?;
        let (header, packet) = packet::read(octets)?;
        let content = packet::content(&header, packet)?;
        if !self.may_send_to(datagram.from.address) || datagram.from.port == 0 {
            return Err(Refusal::SourceNotGlobal);
        }
        if self.is_server(datagram.from.address) && datagram.from.port == TEREDO_PORT {
            return Err(Refusal::Loop);
        }
        if self.is_own(datagram.from.address) {
            // A relay of this host, which has a separate rate, requests a bubble from a client.
            if content != Content::Bubble {
                return Err(Refusal::Loop);
            }
            if !self.total.admit((), now) {
                return Err(Refusal::TotalRate);
            }
        } else if content == Content::Solicitation {
            return self.advertise(datagram, &prologue, (&header, packet), (out, now));
        } else {
            self.admit(datagram.from.address, now)?;
        }
        self.check_source(datagram.from, &header)?;
        let sent = match TeredoAddress::of(header.destination) {
            // A bubble with its trailers (RFC 6081 §4.1); octets behind other packets have no meaning.
            Some(client) => {
                let octets = if content == Content::Bubble { octets } else { packet };
                self.forward_to_client(datagram.from, client, octets, (out, now))
            }
            None => self.forward_native(&header, (content, packet), (out, now)),
        };
        sent.map(Outcome::Forwarded)
    }

    /// Takes the tokens of an unauthenticated sender.
    fn admit(&mut self, from: Ipv4Addr, now: Instant) -> Result<(), Refusal> {
        // The rate of the source first: a source above it uses up nothing of the total rate.
        if !self.sources.admit(from, now) {
            return Err(Refusal::SourceRate);
        }
        if !self.total.admit((), now) {
            return Err(Refusal::TotalRate);
        }
        Ok(())
    }

    /// Takes the tokens of an authentic client: its own, and those that are reserved, before those of all.
    fn admit_client(
        (clients, reserved, total): (&mut Rates, &mut Rates, &mut Rates),
        client: &[u8],
        now: Instant,
    ) -> Result<(), Refusal> {
        if !clients.admit(client, now) {
            return Err(Refusal::SourceRate);
        }
        if !(reserved.admit((), now) || total.admit((), now)) {
            return Err(Refusal::TotalRate);
        }
        Ok(())
    }

    fn is_server(&self, address: Ipv4Addr) -> bool {
        self.settings.address == address || self.settings.secondary == Some(address)
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        self.is_server(address) || self.settings.host.addresses.contains(&address)
    }

    /// Whether datagrams may go to an address (RFC 4380 §5.2.4).
    fn may_send_to(&self, address: Ipv4Addr) -> bool {
        let is_broadcast = |subnet: &Prefix4| {
            subnet.contains(address) && subnet.length() < 31 && {
                let host = u32::MAX.checked_shr(subnet.length().into()).unwrap_or(0);
                matches!(address.to_bits() & host, bits if bits == host || bits == 0)
            }
        };
        is_global_unicast(address) && !self.settings.host.subnets.iter().any(is_broadcast)
    }

    /// RFC 4380 §5.3.1, 5 and 6.
    fn check_source(&self, from: Endpoint4, header: &Ipv6Header) -> Result<(), Refusal> {
        match TeredoAddress::of(header.source) {
            Some(client) if client.mapped() != from => Err(Refusal::SourceSpoofed),
            Some(_) => Ok(()),
            // A relay may send bubbles from its link-local address, as miredo does.
            None if !is_of_one_node(header.source) => Err(Refusal::SourceSpoofed),
            None => match TeredoAddress::of(header.destination) {
                Some(client) if client.server == self.settings.address => Ok(()),
                Some(_) | None => Err(Refusal::NotOurClient),
            },
        }
    }

    /// A router solicitation (RFC 4380 §5.3.2).
    fn advertise(
        &mut self,
        datagram: Datagram<'_>,
        prologue: &Prologue<'_>,
        (header, packet): (&Ipv6Header, &[u8]),
        (out, now): (&mut Vec<u8>, Instant),
    ) -> Result<Outcome, Refusal> {
        let client = TeredoInterface::of_link_local(header.source).ok_or(Refusal::Malformed)?;
        let asked = prologue.authentication.as_ref();
        let authentic = self.settings.clients.check(asked, prologue.origin, packet)?;
        match (authentic, asked) {
            (Some(_), Some(asked)) => {
                let rates = (&mut self.clients, &mut self.reserved, &mut self.total);
                Self::admit_client(rates, asked.client, now)?;
            }
            (Some(_) | None, _) => {
                if !self.sources.admit(datagram.from.address, now) {
                    return Err(Refusal::SourceRate);
                }
                if !self.total.admit((), now) {
                    return Err(Refusal::TotalRate);
                }
            }
        }
        self.check_solicitation(header, packet)?;
        // RFC 4380 §5.3.2: to a cone bit the answer comes from the address that was not asked.
        let from = if client.is_cone() { self.other_than(datagram.to)? } else { datagram.to };
        let answer = advertisement(self.settings.address, header.source);
        let origin = Origin(datagram.from);
        if let Some(asked) = asked {
            Clients::write(out, asked, authentic, (origin, &answer));
        }
        out.extend(origin.octets());
        out.extend(answer);
        let sent = Sent::Udp { from, to: datagram.from };
        Ok(Outcome::Advertised { sent, authentic: authentic.is_some() })
    }

    fn check_solicitation(&self, header: &Ipv6Header, packet: &[u8]) -> Result<(), Refusal> {
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
        match Message::parse(&received) {
            Ok(Message::RouterSolicitation(_)) => Ok(()),
            Ok(_) | Err(_) => Err(Refusal::Malformed),
        }
    }

    /// The server's other address.
    fn other_than(&self, address: Ipv4Addr) -> Result<Ipv4Addr, Refusal> {
        let secondary = self.settings.secondary.ok_or(Refusal::NoSecondary)?;
        Ok(if address == secondary { self.settings.address } else { secondary })
    }

    /// A bubble or an echo message to a client of this server.
    fn forward_to_client(
        &mut self,
        from: Endpoint4,
        client: TeredoAddress,
        octets: &[u8],
        (out, now): (&mut Vec<u8>, Instant),
    ) -> Result<Sent, Refusal> {
        // RFC 4380 §5.3.1 would forward to clients of any server. They do not expect packets from this one, and their NATs drop them: only
        // floods would use this.
        if client.server != self.settings.address {
            return Err(Refusal::NotOurClient);
        }
        let to = client.mapped();
        if !self.may_send_to(to.address) || to.port == 0 {
            return Err(Refusal::MappedNotGlobal);
        }
        if self.is_own(to.address) {
            return Err(Refusal::Loop);
        }
        if !self.destinations.admit(to.address, now) {
            return Err(Refusal::DestinationRate);
        }
        out.extend(Origin(from).octets());
        out.extend_from_slice(octets);
        Ok(Sent::Udp { from: self.settings.address, to })
    }

    /// A packet of a client to a native host: by the host's routing, as a router forwards it.
    fn forward_native(
        &mut self,
        header: &Ipv6Header,
        (content, packet): (Content, &[u8]),
        (out, now): (&mut Vec<u8>, Instant),
    ) -> Result<Sent, Refusal> {
        if !is_global(header.destination) {
            return Err(Refusal::DestinationNotGlobal);
        }
        if !self.settings.native {
            return Err(Refusal::NativeDisabled);
        }
        let is_ours =
            TeredoAddress::of(header.source).is_some_and(|client| client.server == self.settings.address);
        if !is_ours {
            return Err(Refusal::NotOurClient);
        }
        // A bubble has no meaning for a native host.
        if content != Content::Echo || header.hop_limit <= 1 {
            return Err(Refusal::NotForwarded);
        }
        let is_within = |subnet: &Prefix6| subnet.contains(header.destination);
        if !self.settings.own_networks && self.settings.host.subnets6.iter().any(is_within) {
            return Err(Refusal::OwnNetwork);
        }
        if !self.destinations.admit(header.destination, now) {
            return Err(Refusal::DestinationRate);
        }
        out.extend_from_slice(packet);
        if let Some(hop_limit) = out.get_mut(7) {
            *hop_limit -= 1;
        }
        Ok(Sent::Native(header.destination))
    }
}

/// Whether an address is of one node, and not of this one.
fn is_of_one_node(address: Ipv6Addr) -> bool {
    !(address.is_multicast() || address.is_unspecified() || address.is_loopback())
}

/// Whether an address is global unicast (RFC 4291 §2.4, as IANA allocates it), and if it embeds an IPv4 address of 6to4, whether that is.
fn is_global(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let is_allocated = bits >> 125 == 0b001;
    let is_6to4 = bits >> 112 == 0x2002;
    is_allocated && (!is_6to4 || is_global_unicast(Ipv4Addr::from_bits((bits >> 80) as u32)))
}
