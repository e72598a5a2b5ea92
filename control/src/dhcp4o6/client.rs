//! The client (RFC 7341 §9, RFC 2131 §4.4): takes a lease when the host needs one, and releases it.
//!
//! ```text
//!     Idle ──want──▶ Rebooting ──(no answer, NAK)──▶ Selecting ──OFFER──▶ Requesting
//!      ▲                 └───────────ACK──────────┐                       │ ACK
//!      └─release, NAK, time── Rebinding ◀─T2── Renewing ◀─T1── Bound ◀────┘
//! ```
//!
//! It remembers its previous address and requests that first, which takes one round trip (INIT-REBOOT).

use super::dhcpv4::{Dhcpv4, HARDWARE_TYPE, MessageKind};
use super::envelope::Envelope;
use super::malformed::Malformed;
use crate::random::Random;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_dataplane::source_check::is_martian4;
use std::collections::VecDeque;

/// RFC 2131 §4.1: the first retransmission after 4 s, …
const FIRST_RETRANSMISSION: Duration = Duration::from_secs(4);
/// … the delay doubles up to 64 s, …
const LAST_RETRANSMISSION: Duration = Duration::from_secs(64);
/// … and is spread by up to one second to either side.
const SPREAD: Duration = Duration::from_secs(1);
/// RFC 2131 §4.4.5: at least 60 s between retransmissions of a client that renews.
const RENEW_AT_LEAST: Duration = Duration::from_secs(60);
/// Transmissions of an INIT-REBOOT before the client asks for any address.
const REBOOT_TRIES: u32 = 2;
/// Transmissions of a request before the client discovers again.
const REQUEST_TRIES: u32 = 4;
/// RFC 2131 §3.1 (5): after a DHCPDECLINE, the client waits.
const AFTER_DECLINE: Duration = Duration::from_secs(10);
/// The shortest lease time that is used.
const SHORTEST: u32 = 10;

/// The identity of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// This end of the tunnel, to which the lease is to be bound.
    pub tunnel: Ipv6Addr,
    /// The client identifier (RFC 4361): type 255, IAID and DUID.
    pub client_id: Vec<u8>,
}

/// The state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// No lease is wanted.
    Idle,
    /// It asks for the address that it had (INIT-REBOOT, REBOOTING).
    Rebooting(Ipv4Addr),
    /// It looks for an offer.
    Selecting,
    /// It has requested what a server offered: the address, the server.
    Requesting(Ipv4Addr, Ipv4Addr),
    /// It has a lease.
    Bound(Held),
    /// It renews it with the server that has leased it.
    Renewing(Held),
    /// It renews it with any server.
    Rebinding(Held),
}

/// The client's view of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The address.
    pub ipv4: Ipv4Addr,
    /// The server.
    pub server: Ipv4Addr,
    /// T1, T2, and the end of the lease.
    pub times: [Instant; 3],
}

/// Events of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The host has this address until then.
    Bound(Ipv4Addr, Instant),
    /// It has none.
    Lost,
}

/// Why a response is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// It cannot be read.
    Malformed(Malformed),
    /// It is not a response.
    NotAResponse,
    /// It has another transaction id or hardware address: it is not for this client, or forged.
    NotForUs,
    /// No such message is awaited, or it comes from another server than the one that was asked.
    Unexpected,
    /// It lacks a usable address, a lease time or a server.
    Unusable,
}

/// The client.
#[derive(Clone, Debug)]
pub struct Client {
    settings: ClientSettings,
    state: ClientState,
    remembered: Option<Ipv4Addr>,
    /// The IPv6 address that the lease is bound to, if it is another one than this end.
    bound_elsewhere: Option<Ipv6Addr>,
    random: Random,
    xid: u32,
    /// When the exchange began.
    begun: Instant,
    /// Transmissions of the present message.
    tries: u32,
    /// When the present message is sent (again).
    next: Option<Instant>,
    /// Releases and declines, which are sent in addition.
    last_words: VecDeque<Vec<u8>>,
    events: VecDeque<ClientEvent>,
}

impl Client {
    /// A client that has no lease; `remembered` is the address that it had. `seed` is secret: transaction ids that are known allow forged
    /// responses.
    pub fn new(settings: ClientSettings, remembered: Option<Ipv4Addr>, seed: u64) -> Self {
        Self {
            settings,
            state: ClientState::Idle,
            remembered,
            bound_elsewhere: None,
            random: Random::new(seed),
            xid: 0,
            begun: Instant(0),
            tries: 0,
            next: None,
            last_words: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Its state.
    pub const fn state(&self) -> ClientState {
        self.state
    }

    /// The address that it has, or had.
    pub const fn remembered(&self) -> Option<Ipv4Addr> {
        self.remembered
    }

    /// The lease that it has.
    pub const fn held(&self) -> Option<Held> {
        match self.state {
            ClientState::Bound(held) | ClientState::Renewing(held) | ClientState::Rebinding(held) => {
                Some(held)
            }
            ClientState::Idle
            | ClientState::Rebooting(_)
            | ClientState::Selecting
            | ClientState::Requesting(..) => None,
        }
    }

    /// The IPv6 address to which the server has bound the lease (RFC 8539), if that is not this end of the tunnel: nothing passes then.
    pub fn bound_elsewhere(&self) -> Option<Ipv6Addr> {
        self.bound_elsewhere.filter(|_| self.held().is_some())
    }

    /// A lease is wanted.
    pub fn want(&mut self, now: Instant) {
        if self.state == ClientState::Idle {
            match self.remembered {
                Some(ipv4) => self.enter(ClientState::Rebooting(ipv4), now),
                None => self.enter(ClientState::Selecting, now),
            }
        }
    }

    /// Takes up a lease of the time before a restart.
    pub fn restore(&mut self, held: Held, now: Instant) {
        if held.times[2] > now {
            self.remembered = Some(held.ipv4);
            self.state = ClientState::Bound(held);
            self.next = Some(held.times[0]);
            self.events.push_back(ClientEvent::Bound(held.ipv4, held.times[2]));
        }
    }

    /// The lease is not needed any more: it is released (RFC 2131 §4.4.6).
    pub fn release(&mut self, _now: Instant) {
        if let Some(held) = self.held() {
            self.draw_xid();
            let release =
                Dhcpv4 { ciaddr: held.ipv4, server: Some(held.server), ..self.message(MessageKind::Release) };
            self.last_words.push_back(Envelope::query(release.to_octets(), true).to_octets());
            self.events.push_back(ClientEvent::Lost);
        }
        (self.state, self.next) = (ClientState::Idle, None);
    }

    /// Ends an expired lease while no server is known to which [`Self::poll_transmit`] could be sent.
    pub fn expire(&mut self, now: Instant) {
        if self.held().is_some_and(|held| now >= held.times[2]) {
            self.begin_anew(now);
        }
    }

    /// Another host uses the leased address, or it cannot be used here (RFC 2131 §4.4.1): it is declined, and another address is requested.
    pub fn decline(&mut self, now: Instant) {
        let Some(held) = self.held() else { return };
        let decline = Dhcpv4 {
            requested: Some(held.ipv4),
            server: Some(held.server),
            ..self.message(MessageKind::Decline)
        };
        self.last_words.push_back(Envelope::query(decline.to_octets(), false).to_octets());
        self.events.push_back(ClientEvent::Lost);
        self.remembered = None;
        self.enter(ClientState::Selecting, now);
        self.next = Some(now + AFTER_DECLINE);
    }

    /// A datagram that came from a server.
    ///
    /// # Errors
    /// Why it is ignored.
    pub fn handle_response(&mut self, now: Instant, octets: &[u8]) -> Result<(), Ignored> {
        let envelope = Envelope::parse(octets).map_err(Ignored::Malformed)?;
        let reply = Dhcpv4::parse(&envelope.dhcpv4).map_err(Ignored::Malformed)?;
        if !envelope.is_response || !reply.is_reply {
            return Err(Ignored::NotAResponse);
        }
        // Not before something was asked.
        if self.tries == 0 || reply.xid != self.xid || reply.hardware != self.hardware() {
            return Err(Ignored::NotForUs);
        }
        match (reply.kind, self.state) {
            (MessageKind::Offer, ClientState::Selecting) => {
                let server = reply.server.ok_or(Ignored::Unusable)?;
                let ipv4 = usable(&reply)?;
                self.state = ClientState::Requesting(ipv4, server);
                (self.tries, self.next) = (0, Some(now));
                Ok(())
            }
            (MessageKind::Ack, ClientState::Requesting(ipv4, server)) => {
                let is_same = reply.server == Some(server) && reply.yiaddr == ipv4;
                if is_same { self.bind(&reply) } else { Err(Ignored::Unexpected) }
            }
            (MessageKind::Ack, ClientState::Rebooting(ipv4)) => {
                if reply.yiaddr == ipv4 {
                    self.bind(&reply)
                } else {
                    Err(Ignored::Unexpected)
                }
            }
            (MessageKind::Ack, ClientState::Renewing(held)) => {
                let is_same = reply.server.is_none_or(|server| server == held.server);
                if is_same && reply.yiaddr == held.ipv4 {
                    self.bind(&reply)
                } else {
                    Err(Ignored::Unexpected)
                }
            }
            (MessageKind::Ack, ClientState::Rebinding(held)) => {
                if reply.yiaddr == held.ipv4 {
                    self.bind(&reply)
                } else {
                    Err(Ignored::Unexpected)
                }
            }
            (MessageKind::Nak, ClientState::Requesting(_, server)) => {
                if reply.server != Some(server) {
                    return Err(Ignored::Unexpected);
                }
                self.begin_anew(now);
                Ok(())
            }
            (MessageKind::Nak, ClientState::Renewing(held)) => {
                if reply.server.is_some_and(|server| server != held.server) {
                    return Err(Ignored::Unexpected);
                }
                self.begin_anew(now);
                Ok(())
            }
            (MessageKind::Nak, ClientState::Rebooting(_) | ClientState::Rebinding(_)) => {
                self.begin_anew(now);
                Ok(())
            }
            (_, _) => Err(Ignored::Unexpected),
        }
    }

    /// What is to be sent to the server's port at this time.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if let Some(words) = self.last_words.pop_front() {
            return Some(words);
        }
        self.next.filter(|next| *next <= now)?;
        match self.state {
            ClientState::Idle => {
                self.next = None;
                None
            }
            ClientState::Rebooting(ipv4) => {
                if self.tries == REBOOT_TRIES {
                    self.enter(ClientState::Selecting, now);
                    return self.poll_transmit(now);
                }
                self.send(MessageKind::Request, now, |message| message.requested = Some(ipv4), false)
            }
            ClientState::Selecting => {
                let remembered = self.remembered;
                self.send(MessageKind::Discover, now, |message| message.requested = remembered, false)
            }
            ClientState::Requesting(ipv4, server) => {
                if self.tries == REQUEST_TRIES {
                    self.enter(ClientState::Selecting, now);
                    return self.poll_transmit(now);
                }
                let with =
                    |message: &mut Dhcpv4| (message.requested, message.server) = (Some(ipv4), Some(server));
                self.send(MessageKind::Request, now, with, false)
            }
            ClientState::Bound(held) => {
                self.enter(ClientState::Renewing(held), now);
                self.poll_transmit(now)
            }
            ClientState::Renewing(held) | ClientState::Rebinding(held) => self.renew(held, now),
        }
    }

    /// Renews a lease, or reports that it has ended.
    fn renew(&mut self, held: Held, now: Instant) -> Option<Vec<u8>> {
        let [_, rebinding, end] = held.times;
        if now >= end {
            self.begin_anew(now);
            return self.poll_transmit(now);
        }
        if now >= rebinding && matches!(self.state, ClientState::Renewing(_)) {
            self.enter(ClientState::Rebinding(held), now);
        }
        let is_renewing = matches!(self.state, ClientState::Renewing(_));
        let until = if is_renewing { rebinding } else { end };
        let sent = self.send(MessageKind::Request, now, |message| message.ciaddr = held.ipv4, is_renewing);
        // RFC 2131 §4.4.5: half of the remaining time, at least 60 s.
        self.next = Some((now + (until.since(now) / 2).max(RENEW_AT_LEAST)).min(until));
        sent
    }

    /// Events of the lease.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// When [`Self::poll_transmit`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.last_words.is_empty() { self.next } else { Some(Instant(0)) }
    }

    fn bind(&mut self, reply: &Dhcpv4) -> Result<(), Ignored> {
        let ipv4 = usable(reply)?;
        let server = reply.server.ok_or(Ignored::Unusable)?;
        let lease = reply.lease_time.ok_or(Ignored::Unusable)?.max(SHORTEST);
        // RFC 2131 §4.4.5: by default half and seven eighths.
        let rebinding = reply.rebinding.filter(|t2| *t2 < lease).unwrap_or((u64::from(lease) * 7 / 8) as u32);
        let renewal = reply.renewal.filter(|t1| *t1 < rebinding).unwrap_or(lease / 2).min(rebinding);
        // RFC 2131 §4.4.1: from the time of the request.
        let times =
            [renewal, rebinding, lease].map(|seconds| self.begun + Duration::from_secs(seconds.into()));
        let held = Held { ipv4, server, times };
        self.remembered = Some(ipv4);
        self.bound_elsewhere = reply.softwire_source.filter(|end| *end != self.settings.tunnel);
        (self.state, self.next, self.tries) = (ClientState::Bound(held), Some(times[0]), 0);
        self.events.push_back(ClientEvent::Bound(ipv4, times[2]));
        Ok(())
    }

    /// The lease, or the requested address, is not available.
    fn begin_anew(&mut self, now: Instant) {
        if self.held().is_some() {
            self.events.push_back(ClientEvent::Lost);
        }
        self.remembered = None;
        self.enter(ClientState::Selecting, now);
    }

    fn enter(&mut self, state: ClientState, now: Instant) {
        self.draw_xid();
        (self.state, self.tries, self.begun, self.next) = (state, 0, now, Some(now));
    }

    fn draw_xid(&mut self) {
        self.xid = self.random.upto(Duration::from_nanos(u32::MAX.into())).as_nanos() as u32;
    }

    fn hardware(&self) -> (u8, Vec<u8>) {
        (HARDWARE_TYPE, self.settings.tunnel.octets().to_vec())
    }

    fn message(&self, kind: MessageKind) -> Dhcpv4 {
        Dhcpv4 {
            hardware: self.hardware(),
            client_id: self.settings.client_id.clone(),
            softwire_source: Some(self.settings.tunnel),
            ..Dhcpv4::new(kind, self.xid)
        }
    }

    fn send(
        &mut self,
        kind: MessageKind,
        now: Instant,
        with: impl FnOnce(&mut Dhcpv4),
        is_unicast: bool,
    ) -> Option<Vec<u8>> {
        let mut message = self.message(kind);
        message.secs = self.begun_seconds(now);
        with(&mut message);
        if kind == MessageKind::Request {
            self.begun = if self.tries == 0 { now } else { self.begun };
        }
        let delay = (FIRST_RETRANSMISSION * (1 << self.tries.min(4))).min(LAST_RETRANSMISSION);
        self.next = Some(now + (delay - SPREAD + self.random.upto(SPREAD * 2)));
        self.tries += 1;
        Some(Envelope::query(message.to_octets(), is_unicast).to_octets())
    }

    fn begun_seconds(&self, now: Instant) -> u16 {
        u16::try_from(now.since(self.begun).as_secs()).unwrap_or(u16::MAX)
    }
}

/// The offered or leased address, if a host can have it.
fn usable(reply: &Dhcpv4) -> Result<Ipv4Addr, Ignored> {
    let is_usable =
        !reply.yiaddr.is_unspecified() && !is_martian4(reply.yiaddr) && reply.lease_time != Some(0);
    if is_usable { Ok(reply.yiaddr) } else { Err(Ignored::Unusable) }
}
