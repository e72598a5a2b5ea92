//! The server (RFC 7341 §11, RFC 2131 §4.3): the leases of a concentrator.
//!
//! A lease belongs to an IPv6 address: the end of the client's tunnel. That is the source of its queries, or an address with the same
//! client prefix which the client names (RFC 8539), so that a client cannot direct packets to another customer.

use super::dhcpv4::{Dhcpv4, MessageKind};
use super::envelope::{Envelope, RelayHop};
use super::lease::{Change, Lease, LeaseState};
use super::leases::{Leases, NoAddress};
use super::malformed::Malformed;
use super::query_rate::QueryRate;
use super::reservations::{Asker, NoRoom, RESERVED, Reservations};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::{Prefix4, Prefix6};

/// How long an address is kept for a host that was offered it.
const OFFERED: Duration = Duration::from_secs(60);
/// How long an address that a host has declined is not leased.
const DECLINED: Duration = Duration::from_secs(3_600);
/// Leases that are ended in a call.
const ENDED_AT_ONCE: usize = 64;

/// What a server leases, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Server Identifier.
    pub id: Ipv4Addr,
    /// The addresses.
    pub pool: Vec<Prefix4>,
    /// Addresses that always have the same host, which are not leased to others.
    pub fixed: Vec<(Ipv6Addr, Ipv4Addr)>,
    /// Further addresses that are never leased.
    pub reserved: Vec<Prefix4>,
    /// The clients that are answered.
    pub clients: Vec<Prefix6>,
    /// Trusted relay agents: each names the source of a query.
    pub relays: Vec<Prefix6>,
    /// Bits of a client's prefix.
    pub client_bits: u8,
    /// Maximum number of addresses of a client prefix.
    pub leases_per_client: u32,
    /// Maximum number of leases.
    pub max_leases: u32,
    /// How long a lease lasts.
    pub lease_time: Duration,
    /// Queries a second of a client prefix that are answered; 0: no limit.
    pub queries_per_second: u32,
}

/// Why a query is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read.
    Malformed(Malformed),
    /// It is a response, or a message that servers send.
    NotAQuery,
    /// Its sender is not one of ours.
    NotAClient,
    /// It came through a relay agent that is not one of ours.
    NotARelay,
    /// Its client prefix sends too many.
    RateLimit,
    /// Its client prefix has its share.
    Share,
    /// No address is left.
    PoolEmpty,
    /// As many addresses as may wait for hosts whose names were looked up.
    Reserved,
    /// The same for clients whose addresses may be forged: who proves its address may look it up.
    Unproven,
    /// It is for another server, or about a client that is not known here (RFC 2131 §4.3.2).
    NotOurs,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "{what}"),
            Self::NotAQuery => f.write_str("not a query of a client"),
            Self::NotAClient => f.write_str("the sender is not within clients"),
            Self::NotARelay => f.write_str("a message of a relay agent that is not within relays"),
            Self::RateLimit => f.write_str("too many queries of this client prefix"),
            Self::Share => f.write_str("this client prefix has as many addresses as it may have"),
            Self::PoolEmpty => f.write_str("no address is left"),
            Self::Reserved => f.write_str("too many addresses wait for hosts whose names were looked up"),
            Self::Unproven => {
                f.write_str("too many addresses wait for hosts that were looked up by datagrams")
            }
            Self::NotOurs => f.write_str("for another server, or of an unknown client"),
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The payload of its datagram, which goes to where the query came from.
    pub octets: Vec<u8>,
    /// What it says.
    pub kind: MessageKind,
}

/// The outcome of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// DHCPOFFERs.
    pub offers: u64,
    /// DHCPACKs.
    pub acks: u64,
    /// DHCPNAKs.
    pub naks: u64,
    /// DHCPRELEASEs that ended a lease.
    pub releases: u64,
    /// DHCPDECLINEs.
    pub declines: u64,
    /// Queries that could not be read, or were no queries.
    pub malformed: u64,
    /// Queries of others.
    pub not_clients: u64,
    /// Queries through relay agents that are not ours.
    pub not_relays: u64,
    /// Queries above the rate limit.
    pub limited: u64,
    /// Queries of client prefixes that have their share.
    pub refused_share: u64,
    /// Queries for which no address was left.
    pub refused_empty: u64,
    /// Queries for other servers.
    pub not_ours: u64,
}

/// Who sent a query.
#[derive(Clone, Copy, Debug)]
struct Sender {
    /// Its address, or one of its link.
    address: Ipv6Addr,
    /// Whether it is its own.
    is_known: bool,
}

/// The server.
#[derive(Clone, Debug)]
pub struct Server {
    settings: ServerSettings,
    leases: Leases,
    reservations: Reservations,
    rate: QueryRate,
    /// The outcome of queries.
    pub counters: ServerCounters,
}

impl Server {
    /// A server without leases. `seed` keeps clients from choosing prefixes whose rates are counted together.
    pub fn new(settings: ServerSettings, seed: u64) -> Self {
        let prefixes =
            settings.reserved.iter().map(|prefix| (prefix.address().to_bits(), prefix.last().to_bits()));
        let reserved = prefixes.flat_map(|(first, last)| (first..=last).map(Ipv4Addr::from_bits));
        let fixed = settings.fixed.iter().map(|(_, ipv4)| *ipv4);
        let share = (settings.client_bits, settings.leases_per_client);
        let leases = Leases::new(&settings.pool, reserved.chain(fixed), share, settings.max_leases);
        let rate = QueryRate::new(settings.queries_per_second, seed);
        let addresses = settings.pool.iter().map(|prefix| 1_u64 << (32 - prefix.length())).sum();
        let reservations = Reservations::new(u64::from(settings.max_leases).min(addresses));
        Self { settings, leases, reservations, rate, counters: ServerCounters::default() }
    }

    /// A datagram to the server's port, and where it came from.
    ///
    /// # Errors
    /// Why it is not answered.
    pub fn handle_query(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        octets: &[u8],
    ) -> Result<Option<Reply>, Refusal> {
        let answered = self.answer(now, source, octets);
        let counters = &mut self.counters;
        let counter = match &answered {
            Ok(Some(reply)) if reply.kind == MessageKind::Offer => &mut counters.offers,
            Ok(Some(reply)) if reply.kind == MessageKind::Ack => &mut counters.acks,
            Ok(Some(_)) => &mut counters.naks,
            Ok(None) => return answered,
            Err(Refusal::Malformed(_) | Refusal::NotAQuery) => &mut counters.malformed,
            Err(Refusal::NotAClient) => &mut counters.not_clients,
            Err(Refusal::NotARelay) => &mut counters.not_relays,
            Err(Refusal::RateLimit) => &mut counters.limited,
            Err(Refusal::Share) => &mut counters.refused_share,
            Err(Refusal::PoolEmpty | Refusal::Reserved | Refusal::Unproven) => &mut counters.refused_empty,
            Err(Refusal::NotOurs) => &mut counters.not_ours,
        };
        *counter += 1;
        answered
    }

    fn answer(&mut self, now: Instant, source: Ipv6Addr, octets: &[u8]) -> Result<Option<Reply>, Refusal> {
        self.expire(now);
        // Messages from unknown sources are not parsed.
        let is_relay = self.is_relay(source);
        if !is_relay && !self.is_client(source) {
            return Err(Refusal::NotAClient);
        }
        // Messages from a relay agent count for the client that it names.
        if !is_relay && !self.rate.admit(self.leases.client(source), now) {
            return Err(Refusal::RateLimit);
        }
        let envelope = Envelope::parse(octets).map_err(Refusal::Malformed)?;
        let sender = self.sender(source, &envelope.relays)?;
        if is_relay && !self.rate.admit(self.leases.client(sender.address), now) {
            return Err(Refusal::RateLimit);
        }
        let asked = Dhcpv4::parse(&envelope.dhcpv4).map_err(Refusal::Malformed)?;
        if envelope.is_response || asked.is_reply {
            return Err(Refusal::NotAQuery);
        }
        let host = self.host(sender, &asked)?;
        let answer = match asked.kind {
            MessageKind::Discover => Some(self.discover(now, host, &asked)?),
            MessageKind::Request => Some(self.request(now, host, &asked, envelope.is_unicast)?),
            MessageKind::Release => {
                let lease = self.leases.of_host(host).filter(|lease| lease.ipv4 == asked.ciaddr).copied();
                let is_ended = lease.is_some_and(|lease| self.leases.end(lease.ipv4, now));
                if is_ended {
                    self.reservations.remove(host);
                }
                self.counters.releases += u64::from(is_ended);
                None
            }
            MessageKind::Decline => {
                let lease =
                    self.leases.of_host(host).filter(|lease| Some(lease.ipv4) == asked.requested).copied();
                if let Some(lease) = lease {
                    self.leases.decline(lease, now + DECLINED);
                    self.reservations.remove(host);
                    self.counters.declines += 1;
                }
                None
            }
            // Nothing but the lease is available.
            MessageKind::Inform => return Err(Refusal::NotOurs),
            MessageKind::Offer | MessageKind::Ack | MessageKind::Nak => return Err(Refusal::NotAQuery),
        };
        Ok(answer.map(|answer| {
            let kind = answer.kind;
            let reply =
                Envelope { is_response: true, is_unicast: false, dhcpv4: answer.to_octets(), ..envelope };
            Reply { octets: reply.to_octets(), kind }
        }))
    }

    fn is_client(&self, address: Ipv6Addr) -> bool {
        self.settings.clients.iter().any(|prefix| prefix.contains(address))
    }

    fn is_relay(&self, address: Ipv6Addr) -> bool {
        self.settings.relays.iter().any(|prefix| prefix.contains(address))
    }

    /// Who sent a query. A relay agent relays what another one relayed (RFC 8415 §19.1.2): each must be one of ours, or a client could wrap
    /// its query in the name of another one and send it to a relay agent. A client that asks by multicast does so from a link-local address
    /// (RFC 7341 §9): then it is a host on the link that the relay agent names.
    fn sender(&self, source: Ipv6Addr, relays: &[RelayHop]) -> Result<Sender, Refusal> {
        let step = |sender, hop: &RelayHop| self.is_relay(sender).then_some(hop.peer);
        let sender = relays.iter().try_fold(source, step).ok_or(Refusal::NotARelay)?;
        let is_known = !sender.is_unicast_link_local();
        let link = || relays.iter().rev().map(|hop| hop.link).find(|link| !link.is_unspecified());
        let address = if is_known { sender } else { link().ok_or(Refusal::NotAClient)? };
        if self.is_client(address) { Ok(Sender { address, is_known }) } else { Err(Refusal::NotAClient) }
    }

    /// The end of the client's tunnel, which must have the client prefix of the sender. A host on a link must name it.
    fn host(&self, sender: Sender, asked: &Dhcpv4) -> Result<Ipv6Addr, Refusal> {
        let same = |named: &Ipv6Addr| self.leases.client(*named) == self.leases.client(sender.address);
        let own = sender.is_known.then_some(sender.address);
        let host = asked.softwire_source.filter(same).or(own).ok_or(Refusal::NotAClient)?;
        if self.is_client(host) { Ok(host) } else { Err(Refusal::NotAClient) }
    }

    /// RFC 2131 §4.3.1.
    fn discover(&mut self, now: Instant, host: Ipv6Addr, asked: &Dhcpv4) -> Result<Dhcpv4, Refusal> {
        let ipv4 = match self.fixed(host) {
            Some(ipv4) => ipv4,
            None => self.leases.offer(host, asked.requested, now + OFFERED).map_err(refusal)?,
        };
        Ok(self.lease_message(MessageKind::Offer, host, ipv4, asked))
    }

    /// RFC 2131 §4.3.2.
    fn request(
        &mut self,
        now: Instant,
        host: Ipv6Addr,
        asked: &Dhcpv4,
        is_unicast: bool,
    ) -> Result<Dhcpv4, Refusal> {
        let own = self.fixed(host).or_else(|| self.leases.of_host(host).map(|lease| lease.ipv4));
        let wanted = match (asked.server, asked.requested) {
            // SELECTING.
            (Some(server), _) if server != self.settings.id => {
                // It has taken another server's offer.
                if let Some(lease) = self.leases.of_host(host).filter(|it| it.state == LeaseState::Offered) {
                    self.leases.end(lease.ipv4, now);
                }
                return Err(Refusal::NotOurs);
            }
            (_, Some(requested)) => requested,
            // RENEWING, REBINDING.
            (_, None) if !asked.ciaddr.is_unspecified() => asked.ciaddr,
            (_, None) => return Err(Refusal::NotOurs),
        };
        if own == Some(wanted) {
            if self.fixed(host).is_none() {
                let until = now + self.settings.lease_time;
                self.leases.bind(host, until).map_err(refusal)?;
                self.reservations.remove(host);
            }
            return Ok(self.lease_message(MessageKind::Ack, host, wanted, asked));
        }
        let is_known = own.is_some() || asked.server.is_some() || is_unicast;
        let is_anothers = !self.leases.lends(wanted) || self.leases.of_address(wanted).is_some();
        // RFC 2131 §4.3.2: silence about a client without a record, unless its address cannot be right.
        if is_known || is_anothers {
            return Ok(self.nak(asked));
        }
        Err(Refusal::NotOurs)
    }

    fn fixed(&self, host: Ipv6Addr) -> Option<Ipv4Addr> {
        self.settings.fixed.iter().find(|(fixed, _)| *fixed == host).map(|(_, ipv4)| *ipv4)
    }

    fn lease_message(&self, kind: MessageKind, host: Ipv6Addr, ipv4: Ipv4Addr, asked: &Dhcpv4) -> Dhcpv4 {
        let seconds = u32::try_from(self.settings.lease_time.as_secs()).unwrap_or(u32::MAX);
        Dhcpv4 {
            ciaddr: if kind == MessageKind::Ack { asked.ciaddr } else { Ipv4Addr::UNSPECIFIED },
            yiaddr: ipv4,
            lease_time: Some(seconds),
            renewal: Some(seconds / 2),
            rebinding: Some((u64::from(seconds) * 7 / 8) as u32),
            mask: Some(Ipv4Addr::BROADCAST),
            // RFC 8539 §6: what the lease is bound to.
            softwire_source: asked.softwire_source.map(|_| host),
            ..self.answer_to(kind, asked)
        }
    }

    fn nak(&self, asked: &Dhcpv4) -> Dhcpv4 {
        self.answer_to(MessageKind::Nak, asked)
    }

    fn answer_to(&self, kind: MessageKind, asked: &Dhcpv4) -> Dhcpv4 {
        Dhcpv4 {
            is_reply: true,
            hardware: asked.hardware.clone(),
            flags: asked.flags,
            giaddr: asked.giaddr,
            server: Some(self.settings.id),
            // RFC 6842 §3.
            client_id: asked.client_id.clone(),
            ..Dhcpv4::new(kind, asked.xid)
        }
    }

    /// Takes up a lease of the time before a restart. Whether it could be: the pool has its address, and it is of a client.
    pub fn restore(&mut self, lease: Lease) -> bool {
        self.is_client(lease.host) && self.fixed(lease.host).is_none() && self.leases.restore(lease)
    }

    /// Ends the lease of an address immediately, for an operator. Returns whether there was one.
    pub fn end(&mut self, address: Ipv4Addr, now: Instant) -> bool {
        let host = self.leases.of_address(address).map(|lease| lease.host);
        let is_ended = self.leases.end(address, now);
        if let Some(host) = host.filter(|_| is_ended) {
            self.reservations.remove(host);
        }
        is_ended
    }

    /// The address of a host whose name this client looks up, and how long it certainly has it. A host without a lease gets one for a short time: it
    /// asks for it when the first packet comes.
    ///
    /// # Errors
    /// It has no lease, and gets none.
    pub fn reserve(
        &mut self,
        host: Ipv6Addr,
        asker: Asker,
        now: Instant,
    ) -> Result<(Ipv4Addr, Duration), Refusal> {
        if let Some(ipv4) = self.fixed(host) {
            return Ok((ipv4, self.settings.lease_time));
        }
        if !self.is_client(host) {
            return Err(Refusal::NotAClient);
        }
        self.expire(now);
        let waits = self.reservations.until(host);
        if let Some(lease) = self.leases.of_host(host).filter(|lease| lease.state == LeaseState::Bound) {
            let left = lease.until.since(now);
            // A reservation is kept as long as clients look it up.
            if waits != Some(lease.until) || left > RESERVED / 2 {
                return Ok((lease.ipv4, left));
            }
        } else {
            self.reservations.room_for(asker).map_err(no_room)?;
        }
        let until = now + RESERVED.min(self.settings.lease_time);
        self.leases.offer(host, None, until).map_err(refusal)?;
        let lease = self.leases.bind(host, until).map_err(refusal)?;
        self.reservations.add(host, asker, until);
        Ok((lease.ipv4, until.since(now)))
    }

    /// Who looked up the name of the host of this lease, if the lease waits for its host.
    pub fn waits_for(&self, lease: &Lease) -> Option<Asker> {
        let waits = self.reservations.until(lease.host) == Some(lease.until);
        self.reservations.asker(lease.host).filter(|_| waits)
    }

    /// Takes up a lease of the time before a restart that waits for its host. Whether it could be.
    pub fn restore_waiting(&mut self, lease: Lease, asker: Asker) -> bool {
        let is_taken = self.restore(lease);
        if is_taken && lease.state == LeaseState::Bound {
            self.reservations.add(lease.host, asker, lease.until);
        }
        is_taken
    }

    /// Ends what is due.
    pub fn expire(&mut self, now: Instant) {
        self.leases.expire(now, ENDED_AT_ONCE);
        self.reservations.expire(now);
    }

    /// The next change of the bindings.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.leases.changes.pop_front()
    }

    /// When [`Self::expire`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.leases.next_due()
    }

    /// Leases from an address on: for pages of a listing.
    pub fn leases_from(&self, address: Ipv4Addr) -> impl Iterator<Item = &Lease> {
        self.leases.from(address)
    }

    /// Number of bound leases.
    pub const fn bound(&self) -> u32 {
        self.leases.bound()
    }
}

const fn refusal(why: NoAddress) -> Refusal {
    match why {
        NoAddress::Share => Refusal::Share,
        NoAddress::Empty => Refusal::PoolEmpty,
    }
}

const fn no_room(why: NoRoom) -> Refusal {
    match why {
        NoRoom::Unproven => Refusal::Unproven,
        NoRoom::Full => Refusal::Reserved,
    }
}
