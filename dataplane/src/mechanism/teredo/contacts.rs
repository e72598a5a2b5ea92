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
/// RFC 4380 §5.2.6: after this time from the first of them, there may be four others.
const ASKED_AGAIN: Duration = Duration::from_secs(300);
/// A peer is forgotten when no packet has passed for this time.
const IDLE: Duration = Duration::from_secs(300);
/// RFC 6598: addresses between a provider's NAT and its customers.
const SHARED: Prefix4 = Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10);
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
    subnets: Vec<Prefix4>,
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
            subnets: Vec::new(),
            answered: None,
            bubbles: 0,
            bubbles_limited: 0,
        }
    }

    /// The local end, and the networks that this host is attached to.
    pub(super) fn set_local(&mut self, local: Option<Endpoint4>, subnets: &[Prefix4]) {
        self.local = local.map(|local| local.address);
        self.acceptable = Acceptable::new(Scope::Internet, subnets);
        self.subnets = subnets.to_vec();
    }

    /// Whether an address is that of a host of the Internet (RFC 4380 §5.2.4). It may be this one, which may have a server.
    fn is_host(&self, address: Ipv4Addr) -> bool {
        is_global_unicast(address) && self.acceptable.check(address).is_ok()
    }

    /// Whether datagrams may go to an endpoint that another node chose.
    pub(super) fn may_send_to(&self, to: Endpoint4) -> bool {
        to.port != 0 && self.is_host(to.address) && self.local != Some(to.address)
    }

    /// Whether an endpoint is that of another host in a local network (RFC 6081 §5.6): private, or of an attached one.
    pub(super) fn is_near(&self, to: Endpoint4) -> bool {
        to.port != 0
            && self.local != Some(to.address)
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
                PeerState::Contacting if peer.is_wanted && peer.bubbles == 0 && peer.creator != creator => {
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

    /// Whether a peer has proven another endpoint than this one, and is heard from there: only a bubble moves it.
    pub(super) fn is_elsewhere(&mut self, place: Place, from: Endpoint4, now: Instant) -> bool {
        let peer = self.peers.get(place);
        peer.is_trusted && peer.endpoint != from && peer.was_heard(VALID, now)
    }

    /// The endpoint that a peer has proven.
    pub(super) fn proven_endpoint(&mut self, address: Ipv6Addr) -> Option<Endpoint4> {
        let place = self.peers.find(address)?;
        let peer = self.peers.get(place);
        peer.is_trusted.then_some(peer.endpoint)
    }

    /// Whether a peer that has sent a bubble through the server gets one by its own. One that was trusted and has been silent since may be at another
    /// endpoint; one that this side does not want is not asked without its own bubbles.
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

    /// The same of a native peer that a stranger's datagram names: it counts for the IPv4 address that the datagram came from, which alone is not freely
    /// chosen.
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
            PeerState::Contacting if peer.bubbles == 0 && now.since(asked_at(peer)) >= ASKED => {
                self.forget(place, effects);
            }
            // A stranger alone wants to be answered: he repeats what he sends, or it is not worth a repetition.
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
        is_awaited && nonce.is_some_and(|nonce| self.bubble_nonce(place) == nonce)
    }

    /// The nonce of the last bubble to a peer: each bubble has another one (RFC 6081 §5.2.4.1).
    fn bubble_nonce(&mut self, place: Place) -> BubbleNonce {
        let peer = self.peers.get(place);
        let [a, b, c, d, ..] = echo::nonce(self.key, peer.address, peer.bubble.unwrap_or(peer.contacted));
        [a, b, c, d]
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
            let own = [endpoint_octets(local)];
            let nonce = Trailer::Nonce(self.bubble_nonce(place));
            let octets = match behind == Some(peer.mapped().address) {
                true => with_trailers(source, address, &[nonce, Trailer::AlternateAddresses(&own)]),
                false => with_trailers(source, address, &[nonce]),
            };
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// A bubble from one address to another, directly to an endpoint that may be sent to. The nonce is that of the peer's bubble through a server.
    pub(super) fn direct_bubble(
        &mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        trailer: Option<Trailer<'_>>,
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_send(to.address, now, effects) {
            let octets = with_trailers(source, destination, trailer.as_slice());
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// The answer to a peer's bubble.
    pub(super) fn answer_bubble(
        &mut self,
        between: (Ipv6Addr, Ipv6Addr),
        ends: (Endpoint4, Endpoint4),
        trailer: Option<Trailer<'_>>,
        now: Instant,
        effects: &mut Effects,
    ) {
        let known = self.find(between.1).map(|place| self.peers.get(place));
        // Where a trusted peer is, forged bubbles of others do not keep it from its answer.
        let is_trusted = known.is_some_and(|peer| peer.is_trusted && peer.endpoint == ends.1);
        if is_trusted || self.may_answer(between.1, now) {
            self.direct_bubble(between, ends, trailer, now, effects);
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
        self.answer_bubble((source, destination), (local, to), Some(Trailer::Advertisement), now, effects);
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

    /// Whether a peer may be tested again because a packet came from an endpoint that is not proven. A peer that is trusted stays so meanwhile.
    pub(super) fn may_test_again(&mut self, place: Place, now: Instant) -> bool {
        let peer = self.peers.get(place);
        let may = match peer.state {
            PeerState::Unreachable => false,
            // It is tested again by its time.
            PeerState::Contacting => !peer.is_wanted,
            PeerState::Trusted | PeerState::Established => true,
        };
        may && self.may_refresh(place, now)
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
        self.peers.memory_used()
            + self.waiting.memory_used()
            + self.shares.memory_used()
            + self.rates.memory_used()
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

/// When a peer was asked for the first time since it answered.
fn asked_at(peer: &Peer) -> Instant {
    Instant(peer.contacted.get() - 1)
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
