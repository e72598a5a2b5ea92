//! The server: datagrams and time in, responses and announcements out.

use super::announce::{Announced, Schedule, Transmit};
use super::client_rates::ClientRates;
use super::counts::{Counts, Ignored};
use super::mapping::{AskedAt, Internal, Mapping, Transport};
use super::mappings::{self, Mappings};
use super::message::{HEADER, RESPONSE, VERSION};
use super::nat::ControlledNat;
use super::nat_pmp_message as nat_pmp;
use super::peers::Peers;
use super::quota::Quota;
use super::request::Request;
use super::response::{self, Failure};
use super::result_code::ResultCode;
use super::settings::Settings;
use super::updates::Updates;
use core::net::{IpAddr, SocketAddr};
use sixway_dataplane::Instant;

/// A datagram that came to the server's port on an inside interface.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// From where.
    pub from: SocketAddr,
    /// To where; `None`: not known.
    pub at: Option<&'a AskedAt>,
    /// The payload of UDP.
    pub payload: &'a [u8],
}

/// A server.
#[derive(Clone, Debug)]
pub struct Server {
    pub(super) settings: Settings,
    pub(super) rates: ClientRates,
    pub(super) mappings: Mappings,
    pub(super) peers: Peers,
    pub(super) quota: Quota,
    /// The Epoch Time, and when it was that.
    epoch: (u32, Instant),
    pub(super) schedule: Schedule,
    pub(super) updates: Updates,
    pub(super) counts: Counts,
    /// How often what is [kept](Server::kept) was changed.
    pub(super) changes: u64,
}

impl Server {
    /// A server that begins now. Its Epoch Time is zero if mappings of an earlier one are lost, else that of the earlier one. It announces itself. The
    /// seed makes the places of its buckets unpredictable.
    pub fn new(settings: Settings, epoch: u32, seed: u64, now: Instant) -> Self {
        let mut schedule = Schedule::default();
        schedule.begin(now);
        Self {
            rates: ClientRates::new(&settings, seed),
            quota: Quota::new(settings.max_mappings, settings.mappings_per_subscriber),
            settings,
            mappings: Mappings::default(),
            peers: Peers::default(),
            epoch: (epoch, now),
            schedule,
            updates: Updates::default(),
            counts: Counts::default(),
            changes: 0,
        }
    }

    /// How often a mapping, explicit or outbound, or the Epoch Time was changed: with the same number, what is [kept](Server::kept) is the same.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The counters.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The mappings.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter()
    }

    /// Number of mappings, of ports in them together with outbound mappings by PEER, and of the latter.
    pub fn sizes(&self) -> (usize, u32, usize) {
        (self.mappings.len(), self.quota.total(), self.peers.len())
    }

    /// The Epoch Time (§8.5).
    pub fn epoch(&self, now: Instant) -> u32 {
        let (epoch, at) = self.epoch;
        epoch.wrapping_add(now.since(at).as_secs() as u32)
    }

    /// State was lost, or external addresses have changed: clients must renew their mappings.
    pub fn reset_epoch(&mut self, now: Instant) {
        self.epoch = (0, now);
        self.changes += 1;
        self.schedule.begin(now);
    }

    /// Handles a datagram. Returns the responses, which leave from the address that it came to.
    ///
    /// # Errors
    /// Why there is no response.
    pub fn handle(
        &mut self,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Ignored> {
        let answered = self.answer(arrival, nat, now);
        if let Err(reason) = answered {
            self.counts.not_answered(reason);
        }
        answered
    }

    fn answer(
        &mut self,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Ignored> {
        let (from, payload) = (arrival.from, arrival.payload);
        let [version, opcode, ..] = *payload else { return Err(Ignored::Short) };
        if opcode & RESPONSE != 0 {
            return Err(Ignored::NotRequest);
        }
        if !is_of_one_host(from) || !nat.serves(from.ip()) {
            return Err(Ignored::NotInside);
        }
        self.rates.admit(self.settings.subscriber(from.ip()), now)?;
        self.handle_timeout(nat, now);
        if version == nat_pmp::VERSION && self.settings.nat_pmp && from.is_ipv4() {
            let response = self.nat_pmp(arrival, nat, now)?;
            self.counts.nat_pmp += 1;
            return Ok(vec![response]);
        }
        if version == VERSION && payload.len() < HEADER {
            return Err(Ignored::Short);
        }
        let responses = if version == VERSION {
            self.respond(arrival, nat, now)
        } else {
            Err(ResultCode::UnsuppVersion.into())
        };
        let result = responses.as_ref().map_or_else(|failure| failure.result, |_| ResultCode::Success);
        self.counts.answered(result);
        Ok(responses.unwrap_or_else(|failure| vec![response::error(payload, failure, self.epoch(now))]))
    }

    fn respond(
        &mut self,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        match Request::parse(arrival.payload, arrival.from.ip())? {
            Request::Announce(wants_prefix64) => {
                let mut octets = response::announce(arrival.payload, self.epoch(now));
                if wants_prefix64 {
                    response::prefixes64(&mut octets, &self.settings.prefixes64);
                }
                Ok(vec![octets])
            }
            Request::Map(request) => self.map(&request, arrival, nat, now),
            Request::Peer(request) => self.peer(&request, arrival, nat, now),
        }
    }

    /// The host that a request is about: the client, or another one with THIRD_PARTY.
    pub(super) fn host(
        &self,
        client: IpAddr,
        third_party: Option<IpAddr>,
        nat: &dyn ControlledNat,
    ) -> Result<IpAddr, ResultCode> {
        let Some(host) = third_party else { return Ok(client) };
        if !self.settings.may_speak_for_others(client) {
            return Err(ResultCode::UnsuppOption);
        }
        if !nat.serves(host) {
            return Err(ResultCode::NotAuthorized);
        }
        Ok(host)
    }

    /// When [`Server::handle_timeout`] and [`Server::poll_transmit`] want to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all =
            [self.mappings.next_expiry(), self.peers.next_expiry(), self.schedule.due(), self.updates.due()];
        all.into_iter().flatten().min()
    }

    /// Ends what is due.
    pub fn handle_timeout(&mut self, nat: &mut dyn ControlledNat, now: Instant) {
        while let Some(key) = self.mappings.expired(now) {
            self.end(key, nat);
            self.counts.expired += 1;
        }
        while let Some((_, internal, _)) = self.peers.pop(now) {
            self.quota.remove(self.settings.subscriber(internal.address), 1);
        }
    }

    /// Ends a mapping; seconds for which its sessions keep a binding of it.
    pub(super) fn end(&mut self, key: mappings::Key, nat: &mut dyn ControlledNat) -> u32 {
        let Some(mapping) = self.forget(key) else { return 0 };
        let closed = mapping.ports().map(|(internal, _)| nat.close(mapping.transport, internal).used_for);
        closed.max().unwrap_or_default()
    }

    /// Takes a mapping out of the table.
    pub(super) fn forget(&mut self, key: mappings::Key) -> Option<Mapping> {
        let mapping = self.mappings.remove(key)?;
        self.updates.cancel(key);
        self.changes += 1;
        self.quota.remove(self.settings.subscriber(mapping.internal.address), mapping.size.into());
        Some(mapping)
    }

    /// Puts a mapping into the table.
    pub(super) fn remember(&mut self, mapping: Mapping) {
        self.changes += 1;
        self.updates.cancel((mapping.transport, mapping.internal));
        self.quota.add(self.settings.subscriber(mapping.internal.address), mapping.size.into());
        self.mappings.insert(mapping);
    }

    /// Ends all mappings of a host, those by PEER as well, and its sessions: it no longer has this address (§15).
    pub fn forget_host(&mut self, host: IpAddr, nat: &mut dyn ControlledNat) {
        for transport in Transport::ALL {
            for key in self.mappings.of_host(transport, host) {
                self.end(key, nat);
            }
            for key in self.peers.of_host(transport, host) {
                self.peers.remove(key);
                self.quota.remove(self.settings.subscriber(host), 1);
                self.changes += 1;
            }
        }
        nat.end_host(host);
    }

    /// The mapping of an inside endpoint, alone or as one of a set.
    pub fn mapping(&self, transport: Transport, internal: Internal) -> Option<&Mapping> {
        let found = self.mappings.overlapping(transport, internal, 1);
        found.first().and_then(|key| self.mappings.get(*key))
    }

    /// The next message without a request.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(waiting) = self.updates.pop_message() {
            self.counts.announced += 1;
            return Some(waiting);
        }
        let epoch = self.epoch(now);
        if self.schedule.take(now) {
            self.updates.push(Announced::Everyone4, response::announcement(epoch));
            let mut announcement = response::announcement(epoch);
            response::prefixes64(&mut announcement, &self.settings.prefixes64);
            self.updates.push(Announced::Everyone6, announcement);
            if let Some(address) = self.settings.external_address.filter(|_| self.settings.nat_pmp) {
                self.updates.push(Announced::Everyone4, nat_pmp::announcement(address, epoch));
            }
        }
        while let Some((key, lost)) = self.updates.take(now) {
            let (mapping, outcome) = match (&lost, self.mappings.get(key)) {
                (Some(lost), _) => (lost, Failure::from(ResultCode::CannotProvideExternal)),
                (None, Some(mapping)) => {
                    (mapping, Failure { result: ResultCode::Success, lifetime: mapping.remaining(now) })
                }
                (None, None) => continue,
            };
            let octets = response::update(mapping, outcome, epoch);
            let to = Announced::Client(mapping.client, mapping.asked_at.clone());
            self.updates.push(to, octets);
        }
        let waiting = self.updates.pop_message()?;
        self.counts.announced += 1;
        Some(waiting)
    }
}

/// Whether an answer would go to one host.
fn is_of_one_host(from: SocketAddr) -> bool {
    let address = from.ip();
    from.port() != 0 && !(address.is_multicast() || address.is_unspecified() || address.is_loopback())
}
