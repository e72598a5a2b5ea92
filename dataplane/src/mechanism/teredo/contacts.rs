//! The peers of a relay or a client, with the packets that wait for them and the limits of bubbles and tests to them.

use super::config::Prediction;
use super::echo::{self, Nonce};
use super::peers::{BUBBLE_INTERVAL, Peer, Peers, Place, since, stamp};
use super::rates::BubbleRates;
use super::row::{PeerRow, PeerState, TeredoRow};
use super::shares::{OWN, Shares};
use super::spares::{Spares, at_port};
use super::trailers::BubbleNonce;
use super::waiting::Waiting;
use crate::drop_reason::DropReason;
use crate::effects::{Effects, Generated};
use crate::frame::Frame;
use crate::instant::Instant;
use crate::source_check::is_martian4;
use crate::tunnel::address::{Acceptable, Scope};
use crate::verdict::{Outer, PolicyId};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_wire::teredo::{TeredoAddress, is_global_unicast};
use sixway_wire::{Endpoint4, Prefix4};

/// RFC 4380 §5.2.6: bubbles without an answer.
const BUBBLES: u8 = 4;
/// RFC 4380 §5.2.4: an entry is valid for this time after the last packet from the peer.
pub(super) const VALID: Duration = Duration::from_secs(30);
/// The time that four bubbles take.
const ASKED: Duration = Duration::from_secs(8);
/// RFC 4380 §5.2.6: after this time from the first of them, there may be four others.
const ASKED_AGAIN: Duration = Duration::from_secs(300);
/// A peer is forgotten when no packet has passed for this time.
const IDLE: Duration = Duration::from_secs(300);
/// RFC 6598: addresses between a provider's NAT and its customers.
const SHARED: Prefix4 = Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10);
/// Octets of a held packet that an ICMP error about it can quote.
const QUOTED: usize = 1_280;

/// All peers of a relay or a client.
pub(super) struct Contacts {
    /// The secret from which nonces follow.
    key: [u64; 2],
    peers: Peers,
    waiting: Waiting,
    rates: BubbleRates,
    shares: Shares,
    local: Option<Endpoint4>,
    pub(super) spares: Spares,
    acceptable: Acceptable,
    subnets: Vec<Prefix4>,
    /// A peer that has answered, and for which packets wait.
    answered: Option<Place>,
    bubbles: u64,
    bubbles_limited: u64,
}

impl Contacts {
    /// An empty list for this many peers.
    pub(super) fn new(most: u32, [first, second]: [u64; 2]) -> Self {
        Self {
            key: [first, second],
            peers: Peers::new(most, first ^ second.rotate_left(13)),
            waiting: Waiting::new(second),
            rates: BubbleRates::new(first.rotate_left(7) ^ second),
            shares: Shares::new(most, second.rotate_left(29) ^ first),
            local: None,
            spares: Spares::default(),
            acceptable: Acceptable::new(Scope::Internet, &[]),
            subnets: Vec::new(),
            answered: None,
            bubbles: 0,
            bubbles_limited: 0,
        }
    }

    /// The local end, and the networks that this host is attached to.
    pub(super) fn set_local(&mut self, local: Option<Endpoint4>, subnets: &[Prefix4]) {
        self.local = local;
        self.acceptable = Acceptable::new(Scope::Internet, subnets);
        self.subnets = subnets.to_vec();
    }

    /// Whether an address is that of a host of the Internet (RFC 4380 §5.2.4). It may be this one, which may have a server.
    pub(super) fn is_host(&self, address: Ipv4Addr) -> bool {
        is_global_unicast(address) && self.acceptable.check(address).is_ok()
    }

    /// The service port.
    pub(super) const fn local(&self) -> Option<Endpoint4> {
        self.local
    }

    /// The secret from which nonces follow.
    pub(super) const fn key(&self) -> [u64; 2] {
        self.key
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        self.local.is_some_and(|local| local.address == address)
    }

    /// Whether datagrams may go to an endpoint that another node chose.
    pub(super) fn may_send_to(&self, to: Endpoint4) -> bool {
        to.port != 0 && self.is_host(to.address) && !self.is_own(to.address)
    }

    /// Whether an endpoint is that of another host in a local network (RFC 6081 §5.6): private, or of an attached one.
    pub(super) fn is_near(&self, to: Endpoint4) -> bool {
        to.port != 0
            && !self.is_own(to.address)
            && !is_martian4(to.address)
            && self.acceptable.check(to.address) != Err(DropReason::EmbeddedNotUnicast)
            && (to.address.is_private()
                || SHARED.contains(to.address)
                || self.subnets.iter().any(|subnet| subnet.contains(to.address)))
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
            self.shares.release(peer.creator, mapped(peer.address));
        }
        (peer.is_trusted, peer.endpoint, peer.is_wanted) = (true, from, false);
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
            (peer.is_local, peer.endpoint, peer.is_wanted) = (true, endpoint, true);
        }
    }

    /// The peer that a packet is for, and whether to send it a bubble or test now. `server`: that of a client, for native peers.
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
                // It was not contacted because of another sender's rate.
                PeerState::Contacting if peer.is_wanted && peer.bubbles == 0 && peer.creator != creator => {
                    // The proven endpoint of a peer is kept when the packets that wait for it are dropped.
                    if peer.is_trusted {
                        self.drop_waiting(place, effects);
                        self.adopt(place, creator);
                        return Ok((place, self.may_refresh(place, now)));
                    }
                    self.forget(place, effects);
                    return self.approach(source, destination, server, now, effects);
                }
                PeerState::Contacting if peer.is_wanted => return Ok((place, false)),
                PeerState::Contacting => {}
                PeerState::Unreachable => return Err(DropReason::TeredoUnreachable),
                PeerState::Trusted | PeerState::Established => {
                    self.begin(place, now);
                    if self.has_failed(place, now) {
                        return Err(DropReason::TeredoUnreachable);
                    }
                    self.peers.put(place, PeerState::Contacting, now);
                }
            }
            self.adopt(place, creator);
            self.peers.get(place).is_wanted = true;
            return Ok((place, self.may_refresh(place, now)));
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
        let (place, is_new) = self.entry_of(destination, endpoint, creator, now, effects)?;
        self.peers.get(place).is_wanted = true;
        Ok((place, is_new))
    }

    /// A peer counts for another sender from now on, if nothing waits for it.
    fn adopt(&mut self, place: Place, creator: u16) {
        let peer = self.peers.get(place);
        if peer.waiting > 0 || peer.creator == creator {
            return;
        }
        let (before, address) = (core::mem::replace(&mut peer.creator, creator), mapped(peer.address));
        if !peer.is_trusted {
            self.shares.release(before, address);
            self.shares.claim(creator, address);
        }
    }

    /// A peer is going to be asked: the first time since it answered, or the first time within the time that four bubbles are for.
    pub(super) fn begin(&mut self, place: Place, now: Instant) {
        let peer = self.peers.get(place);
        if peer.bubbles == 0 || now.since(asked_at(peer)) >= ASKED_AGAIN {
            (peer.contacted, peer.bubbles) = (stamp(now), 0);
        }
    }

    /// Whether a peer has not answered four bubbles.
    fn has_failed(&mut self, place: Place, now: Instant) -> bool {
        let peer = self.peers.get(place);
        peer.bubbles >= BUBBLES && since(peer.bubble, now).is_none_or(|time| time >= BUBBLE_INTERVAL)
    }

    /// Whether a peer has proven another endpoint than this one, and sends from it: then only a bubble changes the endpoint.
    pub(super) fn is_elsewhere(&mut self, place: Place, from: Endpoint4, now: Instant) -> bool {
        let peer = self.peers.get(place);
        peer.is_trusted && peer.endpoint != from && peer.was_heard(VALID, now)
    }

    /// The endpoint that a peer has proven, and the own one that it is reached from.
    pub(super) fn proven_ends(
        &mut self,
        address: Ipv6Addr,
        local: Endpoint4,
    ) -> Option<(Endpoint4, Endpoint4)> {
        let place = self.peers.find(address)?;
        let peer = self.peers.get(place);
        peer.is_trusted.then_some((at_port(local, peer.port), peer.endpoint))
    }

    /// Whether a peer that has sent a bubble through the server gets one through its own server. A peer that was trusted and has been silent since may
    /// have another endpoint; a peer that this side does not need gets one only as an answer to its own bubbles.
    pub(super) fn is_asked_back(&mut self, place: Place, now: Instant) -> bool {
        let peer = self.peers.get(place);
        let may = match peer.state {
            PeerState::Unreachable => false,
            PeerState::Contacting => !peer.is_wanted,
            PeerState::Trusted | PeerState::Established => !peer.was_heard(VALID, now),
        };
        if !may {
            return false;
        }
        self.begin(place, now);
        let may = self.may_refresh(place, now);
        if may && self.peers.get(place).state != PeerState::Contacting {
            self.peers.put(place, PeerState::Contacting, now);
        }
        may
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

    /// The same for a native peer in a datagram of an unknown sender: it counts for the IPv4 address that the datagram came from, the only
    /// one that the sender cannot choose freely.
    pub(super) fn entry_of_stranger(
        &mut self,
        address: Ipv6Addr,
        (server, from): (Endpoint4, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(Place, bool), DropReason> {
        let creator = self.shares.creator4(from.address);
        self.entry_of(address, server, creator, now, effects)
    }

    /// Whether an unknown sender's datagram may create an entry; checked before its test is counted.
    pub(super) fn may_enter(&self, from: Endpoint4) -> Result<(), DropReason> {
        self.shares.check(self.shares.creator4(from.address), None)?;
        match self.peers.is_full() && self.peers.displaced().is_none() {
            true => Err(DropReason::TeredoPeersFull),
            false => Ok(()),
        }
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
        let port = self.local.map_or(0, |local| local.port);
        Ok((self.peers.insert(address, endpoint, (creator, port), now), true))
    }

    /// Removes a peer; what waits for it is dropped.
    fn forget(&mut self, place: Place, effects: &mut Effects) {
        self.drop_waiting(place, effects);
        self.answered = self.answered.filter(|answered| *answered != place);
        let peer = self.peers.get(place);
        self.shares.remove(peer.creator, mapped(peer.address), !peer.is_trusted);
        self.spares.release(place);
        self.peers.remove(place);
    }

    /// The spare ports are these. A peer that has lost its port is contacted again with the next packet to it.
    pub(super) fn set_spares(&mut self, prediction: &Prediction, effects: &mut Effects) {
        for place in self.spares.set(prediction) {
            self.forget(place, effects);
        }
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
        let outer = Outer::Udp4 { source: at_port(local, peer.port), destination: peer.endpoint };
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

    /// The peer does not answer: the senders of the packets that wait get ICMP errors.
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

    /// The next peer that is due.
    pub(super) fn due(&self, now: Instant) -> Option<Place> {
        self.peers.due(now)
    }

    /// Processes a peer that is due. Returns whether to send another bubble or test.
    pub(super) fn look_again(&mut self, place: Place, now: Instant, effects: &mut Effects) -> bool {
        let peer = self.peers.get(place);
        match peer.state {
            // It was not contacted, because of a rate: it may be reachable.
            PeerState::Contacting if peer.bubbles == 0 && now.since(asked_at(peer)) >= ASKED => {
                self.forget(place, effects);
            }
            // Only an unknown sender needs the answer: its own retransmissions repeat the test.
            PeerState::Contacting if !peer.is_wanted && now.since(asked_at(peer)) < ASKED => {
                self.peers.put(place, PeerState::Contacting, now);
            }
            PeerState::Contacting if !peer.is_wanted && peer.is_trusted => {
                self.peers.put(place, PeerState::Trusted, now);
            }
            PeerState::Contacting if !peer.is_wanted => self.forget(place, effects),
            PeerState::Contacting if peer.bubbles < BUBBLES => {
                self.peers.put(place, PeerState::Contacting, now);
                return self.may_refresh(place, now);
            }
            PeerState::Contacting => {
                self.drop_waiting(place, effects);
                let peer = self.peers.get(place);
                peer.their_port = 0;
                if !peer.is_trusted {
                    self.spares.release(place);
                }
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

    /// The same while packets to it pass: half of the bubbles are left for when it is asked again (RFC 4380 §5.2.6: four in 300 s).
    pub(super) fn may_keep_valid(&mut self, place: Place, now: Instant) -> bool {
        self.peers.get(place).bubbles < BUBBLES / 2 && self.may_refresh(place, now)
    }

    /// Takes a token for an attempt to make a peer answer, and counts it.
    pub(super) fn may_greet(&mut self, place: Place, to: Ipv4Addr, now: Instant, effects: &Effects) -> bool {
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

    /// Whether an advertisement from an address may be passed to control: rates keep a flood from displacing those of servers.
    pub(super) fn may_tell_control(&mut self, from: Ipv4Addr, now: Instant) -> bool {
        self.rates.admit_control(from, now)
    }

    /// Takes a token for an answer to a peer's bubble.
    pub(super) fn may_answer(&mut self, peer: Ipv6Addr, now: Instant) -> bool {
        let may = self.rates.admit_answer(self.shares.creator(peer), now);
        self.bubbles_limited += u64::from(!may);
        may
    }

    /// Takes a token for a test because of a datagram from this endpoint.
    pub(super) fn may_test_for(&mut self, from: Endpoint4, now: Instant) -> bool {
        let may = self.rates.admit_stranger(from.address, now);
        self.bubbles_limited += u64::from(!may);
        may
    }

    /// Takes a token for a bubble or a test.
    pub(super) fn may_send(&mut self, to: Ipv4Addr, now: Instant, effects: &Effects) -> bool {
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
        is_awaited && nonce.is_some_and(|nonce| self.bubble_nonce(place) == nonce)
    }

    /// The nonce of the last bubble to a peer: each bubble has another one (RFC 6081 §5.2.4.1).
    pub(super) fn bubble_nonce(&mut self, place: Place) -> BubbleNonce {
        let peer = self.peers.get(place);
        let [a, b, c, d, ..] = echo::nonce(self.key, peer.address, peer.bubble.unwrap_or(peer.contacted));
        [a, b, c, d]
    }

    /// Whether a peer may be tested again because a packet came from an unproven endpoint. A trusted peer remains trusted meanwhile.
    pub(super) fn may_test_again(&mut self, place: Place, now: Instant) -> bool {
        let peer = self.peers.get(place);
        let may = match peer.state {
            PeerState::Unreachable => false,
            // Its own timer repeats the test.
            PeerState::Contacting => !peer.is_wanted,
            PeerState::Trusted | PeerState::Established => true,
        };
        may && self.may_refresh(place, now)
    }

    /// A peer in words.
    pub(super) fn row_of(&self, address: Ipv6Addr, now: Instant) -> Option<PeerRow> {
        let place = self.peers.find(address)?;
        let (mut rows, _) = self.peers.page(place, 1);
        let local = self.local;
        rows.next().map(|peer| shown(peer, local, now))
    }

    /// Some peers from a place on, and the next place, if there are more.
    pub(super) fn rows(&self, from: u32, most: usize, now: Instant) -> (Vec<PeerRow>, Option<u32>) {
        let (rows, next) = self.peers.page(from, most);
        (rows.map(|peer| shown(peer, self.local, now)).collect(), next)
    }

    /// Octets of memory that the peers take, and what is counted for them.
    pub(super) fn memory_used(&self) -> usize {
        self.peers.memory_used()
            + self.waiting.memory_used()
            + self.shares.memory_used()
            + self.rates.memory_used()
    }

    /// The totals.
    pub(super) fn row(&self) -> TeredoRow {
        let peers = [
            self.peers.count(PeerState::Unreachable),
            self.peers.count(PeerState::Contacting),
            self.peers.count(PeerState::Trusted),
            self.peers.count(PeerState::Established),
        ];
        let (bubbles, bubbles_limited) = (self.bubbles, self.bubbles_limited);
        TeredoRow { peers, waiting: self.waiting.len(), bubbles, bubbles_limited, spares: self.spares.row() }
    }
}

/// When a peer was asked for the first time since it answered.
fn asked_at(peer: &Peer) -> Instant {
    Instant(peer.contacted.get() - 1)
}

fn shown(peer: &Peer, local: Option<Endpoint4>, now: Instant) -> PeerRow {
    PeerRow {
        address: peer.address,
        endpoint: peer.endpoint,
        state: peer.state,
        is_local: peer.is_local,
        port: local.is_some_and(|local| local.port != peer.port).then_some(peer.port),
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
