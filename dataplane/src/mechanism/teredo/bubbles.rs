//! Bubbles with their trailers, and connectivity tests: requests to peers, and answers to requests of peers.

use super::contacts::Contacts;
use super::peers::{Peer, Place};
use super::spares::at_port;
use crate::effects::{Effects, Generated};
use crate::instant::Instant;
use alloc::boxed::Box;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{TEREDO_PORT, TeredoAddress, Trailer, bubble};

/// Hop limit of bubbles.
const BUBBLE_HOPS: u8 = 64;

impl Contacts {
    /// A bubble through a peer's server (RFC 4380 §5.2.6), with a nonce (RFC 6081 §5.2.4.1) and, for a peer behind the same NAT, the local endpoint
    /// (§5.6.4) and, from behind a symmetric NAT, the port that is predicted (§5.4.4.2, §5.5.4.2).
    pub(super) fn indirect_bubble(
        &mut self,
        place: Place,
        (source, local): (Ipv6Addr, Endpoint4),
        behind: Option<Ipv4Addr>,
        now: Instant,
        effects: &mut Effects,
    ) {
        let address = self.get(place).address;
        let Some(peer) = TeredoAddress::of(address) else { return };
        // §5.2.4: who sent a bubble wrote this address.
        if self.is_host(peer.server) && self.may_greet(place, peer.server, now, effects) {
            let to = Endpoint4::new(peer.server, TEREDO_PORT);
            let own = [endpoint_octets(local)];
            let nonce = Some(Trailer::Nonce(self.bubble_nonce(place)));
            let is_behind = behind == Some(peer.mapped().address);
            let alternates = is_behind.then_some(Trailer::AlternateAddresses(&own));
            let port = self.spares.outside(place).map(Trailer::RandomPort);
            let octets = with_trailers(source, address, [nonce, alternates, port].into_iter().flatten());
            effects.send(Generated::Datagram(local, to, octets));
        }
    }

    /// A bubble from one address to another, directly to an endpoint that may be sent to. The nonce is that of the peer's bubble through a server.
    pub(super) fn direct_bubble<'t>(
        &mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        trailers: impl IntoIterator<Item = Trailer<'t>>,
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_send(to.address, now, effects) {
            let octets = with_trailers(source, destination, trailers);
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
        let known = self.find(between.1).map(|place| self.get(place));
        // At the endpoint of a trusted peer: forged bubbles of others must not suppress the answer.
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
        let Peer { address, endpoint, port, .. } = *self.get(place);
        if self.may_greet(place, endpoint.address, now, effects) {
            let octets = with_trailers(source, address, [Trailer::Solicitation]);
            effects.send(Generated::Datagram(at_port(local, port), endpoint, octets));
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

    /// A bubble to a peer of the same link, at any IPv4 address.
    pub(super) fn local_bubble(
        &mut self,
        place: Place,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (local, to): (Endpoint4, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) {
        if self.may_greet(place, to.address, now, effects) {
            effects.send(Generated::Datagram(local, to, with_trailers(source, destination, [])));
        }
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
}

/// A bubble with these trailers.
fn with_trailers<'t>(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    trailers: impl IntoIterator<Item = Trailer<'t>>,
) -> Box<[u8]> {
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
