//! The peers of a relay or a client, with what waits for them and what may be sent to make them answer.

use super::echo::{self, Nonce};
use super::peers::{BUBBLE_INTERVAL, Peer, Peers, since, stamp};
use super::rates::BubbleRates;
use super::row::{PeerRow, PeerState, TeredoRow};
use super::shares::{OWN, Shares};
use super::trailers::BubbleNonce;
use super::waiting::Waiting;
use crate::drop_reason::DropReason;
use crate::effects::{Effects, Generated};
use crate::frame::Frame;
use crate::instant::Instant;
use crate::source_check::is_martian4;
use crate::tunnel::address::{Acceptable, Scope};
use crate::verdict::{Outer, PolicyId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_wire::teredo::{TEREDO_PORT, TeredoAddress, Trailer, bubble, is_global_unicast};
use sixway_wire::{Endpoint4, Prefix4};

/// RFC 4380 §5.2.6: bubbles without an answer.
const BUBBLES: u8 = 4;
/// RFC 4380 §5.2.4: an entry is valid for this time after the last packet from the peer.
pub(super) const VALID: Duration = Duration::from_secs(30);
/// The time that four bubbles take.
const ASKED: Duration = Duration::from_secs(8);
/// A peer is forgotten when no packet has passed for this time.
const IDLE: Duration = Duration::from_secs(300);
/// Hop limit of bubbles.
const BUBBLE_HOPS: u8 = 64;
/// Octets of a held packet that an ICMP error about it can quote.
const QUOTED: usize = 1_280;

/// Where a peer is in the list.
pub(super) type Place = u32;

/// All peers of a relay or a client.
pub(super) struct Contacts {
    /// The secret from which nonces follow.
    key: [u64; 2],
    peers: Peers,
    waiting: Waiting,
    rates: BubbleRates,
    shares: Shares,
    local: Option<Ipv4Addr>,
    acceptable: Acceptable,
    /// A peer that has answered, and for which packets wait.
    answered: Option<Place>,
    bubbles: u64,
    bubbles_limited: u64,
}

impl Contacts {
    /// No peers, and room for this many.
    pub(super) fn new(most: u32, [first, second]: [u64; 2]) -> Self {
        Self {
            key: [first, second],
            peers: Peers::new(most, first ^ second.rotate_left(13)),
            waiting: Waiting::new(second),
            rates: BubbleRates::new(first.rotate_left(7) ^ second),
            shares: Shares::new(most, second.rotate_left(29) ^ first),
            local: None,
            acceptable: Acceptable::new(Scope::Internet, &[]),
            answered: None,
            bubbles: 0,
            bubbles_limited: 0,
        }
    }

    /// The local end, and the networks that this host is attached to.
    pub(super) fn set_local(&mut self, local: Option<Endpoint4>, subnets: &[Prefix4]) {
        self.local = local.map(|local| local.address);
        self.acceptable = Acceptable::new(Scope::Internet, subnets);
    }

    /// Whether an address is that of a host of the Internet (RFC 4380 §5.2.4). It may be this one, which may have a server.
    fn is_host(&self, address: Ipv4Addr) -> bool {
        is_global_unicast(address) && self.acceptable.check(address).is_ok()
    }

    /// Whether datagrams may go to an endpoint that another node chose.
    pub(super) fn may_send_to(&self, to: Endpoint4) -> bool {
        to.port != 0 && self.is_host(to.address) && self.local != Some(to.address)
    }

    #[inline(always)]
    pub(super) fn find(&self, address: Ipv6Addr) -> Option<Place> {
        self.peers.find(address)
    }

    #[inline(always)]
    pub(super) fn get(&mut self, place: Place) -> &mut Peer {
        self.peers.get(place)
    }

    /// A packet goes to a peer.
    #[inline(always)]
    pub(super) fn sent(&mut self, place: Place, now: Instant) {
        let peer = self.peers.get(place);
        peer.sent = Some(stamp(now));
        if peer.state == PeerState::Trusted {
            self.peers.put(place, PeerState::Established, now);
        }
    }

    /// A packet came from a peer, from an endpoint that is proven to be its own.
    #[inline(always)]
    pub(super) fn heard(&mut self, place: Place, from: Endpoint4, now: Instant) {
        let peer = self.peers.get(place);
        peer.heard = Some(stamp(now));
        peer.bubbles = 0;
        if peer.state != PeerState::Established || peer.endpoint != from {
            self.proven(place, from, now);
        }
    }

    #[inline(never)]
    fn proven(&mut self, place: Place, from: Endpoint4, now: Instant) {
        let peer = self.peers.get(place);
        if !peer.is_trusted {
            self.shares.proven(peer.creator);
        }
        (peer.is_trusted, peer.endpoint) = (true, from);
        let is_used = since(peer.sent, now).is_some_and(|time| time < IDLE);
        let state = if is_used { PeerState::Established } else { PeerState::Trusted };
        if peer.state != state {
            self.answered = (peer.waiting > 0).then_some(place).or(self.answered);
            self.peers.put(place, state, now);
        }
    }

    /// A peer of the same link.
    pub(super) fn learn_local(
        &mut self,
        address: Ipv6Addr,
        endpoint: Endpoint4,
        now: Instant,
        effects: &mut Effects,
    ) {
        let Ok((place, _)) = self.entry(address, endpoint, address, now, effects) else { return };
        let peer = self.peers.get(place);
        if !peer.is_trusted {
            (peer.is_local, peer.endpoint) = (true, endpoint);
        }
    }

    /// The peer that a packet is for, and whether it is to be greeted now. `server`: that of a client, for native peers.
    pub(super) fn approach(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        server: Option<Endpoint4>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(Place, bool), DropReason> {
        // A client's peers are those of its own host.
        let creator = if server.is_some() { OWN } else { self.shares.creator(source) };
        if let Some(place) = self.peers.find(destination) {
            let peer = self.peers.get(place);
            match peer.state {
                // The rate of another sender kept it from being asked.
                PeerState::Contacting if peer.bubbles == 0 && peer.creator != creator => {
                    self.forget(place, effects);
                    return self.approach(source, destination, server, now, effects);
                }
                PeerState::Contacting => return Ok((place, false)),
                PeerState::Unreachable => return Err(DropReason::TeredoUnreachable),
                PeerState::Trusted | PeerState::Established => {}
            }
            (peer.contacted, peer.bubbles) = (stamp(now), 0);
            self.peers.put(place, PeerState::Contacting, now);
            return Ok((place, true));
        }
        let endpoint = match TeredoAddress::of(destination) {
            Some(peer) => {
                if !self.is_host(peer.server) || !self.may_send_to(peer.mapped()) {
                    return Err(DropReason::TeredoUnreachable);
                }
                peer.mapped()
            }
            None => server.ok_or(DropReason::NoRemote)?,
        };
        self.entry_of(destination, endpoint, creator, now, effects)
    }

    /// The endpoint that a peer has proven.
    pub(super) fn proven_endpoint(&mut self, address: Ipv6Addr) -> Option<Endpoint4> {
        let place = self.peers.find(address)?;
        let peer = self.peers.get(place);
        peer.is_trusted.then_some(peer.endpoint)
    }

    /// Begins to contact a peer again that was trusted and has been silent since: it may be at another endpoint. Whether it was one.
    pub(super) fn approaches_again(&mut self, place: Place, now: Instant) -> bool {
        let peer = self.peers.get(place);
        let is_idle = matches!(peer.state, PeerState::Trusted | PeerState::Established);
        if !is_idle || peer.was_heard(VALID, now) {
            return false;
        }
        (peer.contacted, peer.bubbles) = (stamp(now), 0);
        self.peers.put(place, PeerState::Contacting, now);
        true
    }

    /// The peer with an address, and whether it is new. `creator` has the share that it counts for.
    pub(super) fn entry(
        &mut self,
        address: Ipv6Addr,
        endpoint: Endpoint4,
        creator: Ipv6Addr,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(Place, bool), DropReason> {
        let creator = self.shares.creator(creator);
        self.entry_of(address, endpoint, creator, now, effects)
    }

    fn entry_of(
        &mut self,
        address: Ipv6Addr,
        endpoint: Endpoint4,
        creator: u16,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(Place, bool), DropReason> {
        if let Some(place) = self.peers.find(address) {
            return Ok((place, false));
        }
        self.shares.check(creator, mapped(address))?;
        if self.peers.is_full() {
            let place = self.peers.displaced().ok_or(DropReason::TeredoPeersFull)?;
            self.forget(place, effects);
        }
        self.shares.add(creator, mapped(address));
        Ok((self.peers.insert(address, endpoint, creator, now), true))
    }

    /// Removes a peer; what waits for it is dropped.
    fn forget(&mut self, place: Place, effects: &mut Effects) {
        self.drop_waiting(place, effects);
        self.answered = self.answered.filter(|answered| *answered != place);
        let peer = self.peers.get(place);
        self.shares.remove(peer.creator, mapped(peer.address), !peer.is_trusted);
        self.peers.remove(place);
    }

    /// Forgets all peers.
    pub(super) fn forget_all(&mut self, effects: &mut Effects) {
        while let Some(place) = self.peers.any() {
            self.forget(place, effects);
        }
    }

    /// Stores a packet until a peer answers.
    pub(super) fn hold(&mut self, place: Place, frame: &Frame) -> Result<(), DropReason> {
        let peer = self.peers.get(place);
        self.waiting.hold(place, peer.creator, frame)?;
        peer.waiting += 1;
        Ok(())
    }

    /// Whether packets can go to a peer that has answered.
    #[inline(always)]
    pub(super) const fn has_answered(&self) -> bool {
        self.answered.is_some()
    }

    /// Sends the packets that wait for the peer that has answered.
    #[cold]
    #[inline(never)]
    pub(super) fn release(&mut self, (local, policy): (Endpoint4, PolicyId), effects: &mut Effects) {
        let Some(place) = self.answered.take() else { return };
        let peer = self.peers.get(place);
        peer.waiting = 0;
        let outer = Outer::Udp4 { source: local, destination: peer.endpoint };
        peer.sent = peer.heard;
        for packet in self.waiting.take(place, peer.creator) {
            if effects.has_room() {
                effects.send(Generated::Released(packet, outer, policy));
            } else {
                effects.counters.drop_held(DropReason::OutboxFull, 1);
            }
        }
        let now = Instant(peer.heard.map_or(0, |heard| heard.get() - 1));
        if peer.state == PeerState::Trusted {
            self.peers.put(place, PeerState::Established, now);
        }
    }

    /// The peer does not answer: tells the senders of what waits.
    fn drop_waiting(&mut self, place: Place, effects: &mut Effects) {
        let peer = self.peers.get(place);
        if core::mem::take(&mut peer.waiting) == 0 {
            return;
        }
        for packet in self.waiting.take(place, peer.creator) {
            let reason = DropReason::TeredoUnreachable;
            effects.counters.drop_held(reason, 1);
            effects.send(Generated::Answer(reason, packet.octets.iter().take(QUOTED).copied().collect()));
        }
    }

    /// The next peer that is to be looked at.
    pub(super) fn due(&self, now: Instant) -> Option<Place> {
        self.peers.due(now)
    }

    /// Looks at a peer whose time has come. Whether it is to be greeted once more.
    pub(super) fn look_again(&mut self, place: Place, now: Instant, effects: &mut Effects) -> bool {
        let peer = self.peers.get(place);
        match peer.state {
            // It was not asked, because of a rate: it may be there.
            PeerState::Contacting
                if peer.bubbles == 0
                    && since(Some(peer.contacted), now).is_some_and(|time| time >= ASKED) =>
            {
                self.forget(place, effects);
            }
            PeerState::Contacting if peer.bubbles < BUBBLES => {
                self.peers.put(place, PeerState::Contacting, now);
                return true;
            }
            PeerState::Contacting => {
                self.drop_waiting(place, effects);
                self.peers.put(place, PeerState::Unreachable, now);
            }
            PeerState::Trusted | PeerState::Established if peer.is_used(IDLE, now) => {
                let passes = |stamp| since(stamp, now).is_some_and(|time| time < IDLE);
                let both = passes(peer.heard) && passes(peer.sent);
                self.peers.put(place, if both { PeerState::Established } else { PeerState::Trusted }, now);
            }
            PeerState::Unreachable | PeerState::Trusted | PeerState::Established => {
                self.forget(place, effects);
            }
        }
        false
    }

    /// Whether a silent peer may get a bubble.
    pub(super) fn may_refresh(&mut self, place: Place, now: Instant) -> bool {
        let peer = self.peers.get(place);
        // Counted from the last bubble and not from the last packet (RFC 4380 §5.2.6), or a stream in one direction would stop for two seconds each
        // half minute.
        peer.bubbles < BUBBLES && since(peer.bubble, now).is_none_or(|time| time >= BUBBLE_INTERVAL)
    }

    /// Takes a token for an attempt to make a peer answer, and counts it.
    fn may_greet(&mut self, place: Place, to: Ipv4Addr, now: Instant, effects: &Effects) -> bool {
        let creator = self.peers.get(place).creator;
        if creator != OWN && !self.rates.admit_sender(creator, now) {
            self.bubbles_limited += 1;
            return false;
        }
        let may = self.may_send(to, now, effects);
        if may {
            let peer = self.peers.get(place);
            (peer.bubbles, peer.bubble) = (peer.bubbles.saturating_add(1), Some(stamp(now)));
        }
        may
    }

    /// Whether control may hear from an address: it has a rate, so that a flood leaves room for the advertisements of servers.
    pub(super) fn may_tell_control(&mut self, from: Ipv4Addr, now: Instant) -> bool {
        self.rates.admit_control(from, now)
    }

    /// Takes a token for a bubble or a test.
    fn may_send(&mut self, to: Ipv4Addr, now: Instant, effects: &Effects) -> bool {
        let may = effects.has_room() && self.rates.admit(to, now);
        self.bubbles += u64::from(may);
        self.bubbles_limited += u64::from(!may);
        may
    }

    /// The nonce of a test of a peer.
    pub(super) fn nonce(&mut self, place: Place) -> Nonce {
        let peer = self.peers.get(place);
        echo::nonce(self.key, peer.address, peer.contacted)
    }

    /// Whether a direct bubble proves by its nonce that its sender got the last one through its server (RFC 6081 §5.2.4.4).
    pub(super) fn is_proof(&mut self, place: Place, nonce: Option<BubbleNonce>, now: Instant) -> bool {
        let is_awaited = self.peers.get(place).is_tested(now);
        is_awaited && nonce.is_some_and(|nonce| self.nonce(place).starts_with(&nonce))
    }

    /// A bubble through a peer's server (RFC 4380 §5.2.6), with a nonce (RFC 6081 §5.2.4.1) and, for a peer behind the same NAT, the local endpoint
    /// (§5.6.4).
    pub(super) fn indirect_bubble(
        &mut self,
        place: Place,
        (source, local): (Ipv6Addr, Endpoint4),
        behind: Option<Ipv4Addr>,
        now: Instant,
        effects: &mut Effects,
    ) {
        let address = self.peers.get(place).address;
        let Some(peer) = TeredoAddress::of(address) else { return };
        // §5.2.4: who sent a bubble wrote this address.
        if self.is_host(peer.server) && self.may_greet(place, peer.server, now, effects) {
            let to = Endpoint4::new(peer.server, TEREDO_PORT);
            let [a, b, c, d, ..] = self.nonce(place);
            let own = [endpoint_octets(local)];
            let nonce = Trailer::Nonce([a, b, c, d]);
            let octets = match behind == Some(peer.mapped().address) {
                true => with_trailers(source, address, &[nonce, Trailer::AlternateAddresses(&own)]),
                false => with_trailers(source, address, &[nonce]),
            };
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// A bubble from one address to another, directly to an endpoint, if it may be sent there. The nonce is that of the peer's bubble through a server.
    pub(super) fn direct_bubble(
        &mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        trailer: Option<Trailer<'_>>,
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_send_to(to) && self.may_send(to.address, now, effects) {
            let octets = with_trailers(source, destination, trailer.as_slice());
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// Whether an endpoint may be that of a peer behind the same NAT: of a host, which may have a private address.
    pub(super) fn is_alternate(&self, endpoint: Endpoint4) -> bool {
        endpoint.port != 0
            && !is_martian4(endpoint.address)
            && self.acceptable.check(endpoint.address) != Err(DropReason::EmbeddedNotUnicast)
            && self.local != Some(endpoint.address)
    }

    /// The same to an endpoint in the network of a peer behind the same NAT, which may be private (RFC 6081 §5.6).
    pub(super) fn alternate_bubble(
        &mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        nonce: Option<BubbleNonce>,
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.is_alternate(to) && self.may_send(to.address, now, effects) {
            let octets = with_trailers(source, destination, nonce.map(Trailer::Nonce).as_slice());
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// A direct bubble that asks a trusted peer for one (RFC 6081 §5.7).
    pub(super) fn solicitation(
        &mut self,
        place: Place,
        (source, local): (Ipv6Addr, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) {
        let Peer { address, endpoint, .. } = *self.peers.get(place);
        if self.may_greet(place, endpoint.address, now, effects) {
            let octets = with_trailers(source, address, &[Trailer::Solicitation]);
            effects.send(Generated::Datagram(local, endpoint, octets));
        }
    }

    /// The direct bubble that a trusted peer has asked for.
    pub(super) fn advertisement(
        &mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_send(to.address, now, effects) {
            let octets = with_trailers(source, destination, &[Trailer::Advertisement]);
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// A bubble to a peer of the same link, whatever its address is.
    pub(super) fn local_bubble(
        &mut self,
        place: Place,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_greet(place, to.address, now, effects) {
            effects.send(Generated::Datagram(local, to, with_trailers(source, destination, &[])));
        }
    }

    /// Whether a peer is to be tested again because a packet came from an endpoint that is not proven. A peer that is trusted stays so meanwhile.
    pub(super) fn tests_again(&mut self, place: Place, now: Instant) -> bool {
        let is_due = self.may_refresh(place, now);
        let peer = self.peers.get(place);
        let is_contacted = matches!(peer.state, PeerState::Contacting | PeerState::Unreachable);
        if is_due && !is_contacted {
            peer.contacted = stamp(now);
        }
        is_due && !is_contacted
    }

    /// A test of a native peer, through the client's server (RFC 4380 §5.2.9).
    pub(super) fn test(
        &mut self,
        place: Place,
        (local, server): (Endpoint4, Endpoint4),
        echo: Box<[u8]>,
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_greet(place, server.address, now, effects) {
            effects.send(Generated::Datagram(local, server, echo));
        }
    }

    /// A peer in words.
    pub(super) fn row_of(&self, address: Ipv6Addr, now: Instant) -> Option<PeerRow> {
        let place = self.peers.find(address)?;
        let (mut rows, _) = self.peers.page(place, 1);
        rows.next().map(|peer| shown(peer, now))
    }

    /// Some peers from a place on, and the next place, if there are more.
    pub(super) fn rows(&self, from: u32, most: usize, now: Instant) -> (Vec<PeerRow>, Option<u32>) {
        let (rows, next) = self.peers.page(from, most);
        (rows.map(|peer| shown(peer, now)).collect(), next)
    }

    /// Octets of memory that the peers take, and what is counted for them.
    pub(super) fn memory_used(&self) -> usize {
        self.peers.memory_used() + self.shares.memory_used() + self.rates.memory_used()
    }

    /// The whole.
    pub(super) const fn row(&self) -> TeredoRow {
        let peers = [
            self.peers.count(PeerState::Unreachable),
            self.peers.count(PeerState::Contacting),
            self.peers.count(PeerState::Trusted),
            self.peers.count(PeerState::Established),
        ];
        let (bubbles, bubbles_limited) = (self.bubbles, self.bubbles_limited);
        TeredoRow { peers, waiting: self.waiting.len(), bubbles, bubbles_limited }
    }
}

/// A bubble with these trailers.
fn with_trailers(source: Ipv6Addr, destination: Ipv6Addr, trailers: &[Trailer<'_>]) -> Box<[u8]> {
    let mut octets = bubble(source, destination, BUBBLE_HOPS).to_vec();
    for trailer in trailers {
        let mut room = [0; 32];
        let length = trailer.write(&mut room).unwrap_or_default();
        octets.extend(room.iter().take(length));
    }
    octets.into_boxed_slice()
}

/// An endpoint as [`Trailer::AlternateAddresses`] has it.
fn endpoint_octets(endpoint: Endpoint4) -> [u8; 6] {
    let ([a, b, c, d], [high, low]) = (endpoint.address.octets(), endpoint.port.to_be_bytes());
    [a, b, c, d, high, low]
}

fn shown(peer: &Peer, now: Instant) -> PeerRow {
    PeerRow {
        address: peer.address,
        endpoint: peer.endpoint,
        state: peer.state,
        is_local: peer.is_local,
        heard: since(peer.heard, now),
        sent: since(peer.sent, now),
        bubbles: peer.bubbles,
        waiting: peer.waiting,
    }
}

/// The IPv4 address that a client's address contains.
fn mapped(address: Ipv6Addr) -> Option<Ipv4Addr> {
    TeredoAddress::of(address).map(|client| client.mapped().address)
}
