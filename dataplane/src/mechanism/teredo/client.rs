//! The rules of a client (RFC 4380 §5.2.3, §5.2.4; RFC 5991 §3.2: the cone bit of peers is ignored; RFC 6081 §5.2, §5.6, §5.7).

use super::contacts::Contacts;
use super::datagram::Datagram;
use super::echo;
use super::peers::Place;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::tunnel::address::isatap::LINK_LOCAL;
use crate::verdict::Next;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Origin, Prologue, TEREDO_PORT, TeredoAddress, Trailer, alternate};

/// A client.
pub(super) struct Client {
    /// Its address, once it is qualified.
    pub(super) address: Option<TeredoAddress>,
    /// All addresses of its servers.
    servers: Vec<Ipv4Addr>,
}

impl Client {
    pub(super) const fn new(servers: Vec<Ipv4Addr>) -> Self {
        Self { address: None, servers }
    }

    /// Its server.
    pub(super) fn server(&self) -> Option<Endpoint4> {
        self.address.map(|own| Endpoint4::new(own.server, TEREDO_PORT))
    }

    /// A packet that is routed to a peer must have this client's address as source.
    #[inline(always)]
    pub(super) fn check_routed(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<(), DropReason> {
        let own = self.address.ok_or(DropReason::NoRemote)?.address();
        if source != own {
            return Err(DropReason::SourceNotOfSite);
        }
        if destination == own {
            return Err(DropReason::TunnelLoop);
        }
        Ok(())
    }

    /// Bubbles to a client, directly and through its server; to a native host, a test (§5.2.4, 2 and 5).
    pub(super) fn greet(
        &self,
        contacts: &mut Contacts,
        place: Place,
        local: Endpoint4,
        now: Instant,
        effects: &mut Effects,
    ) {
        let (Some(own), Some(server)) = (self.address, self.server()) else { return };
        let peer = contacts.get(place);
        let between = (own.address(), peer.address);
        if peer.is_local {
            // §5.2.4, 3: on the link, at any IPv4 address.
            let endpoint = peer.endpoint;
            contacts.local_bubble(place, between, (local, endpoint), now, effects);
            return;
        }
        match TeredoAddress::of(between.1) {
            Some(client) => {
                // RFC 6081 §5.2.4.2: the nonce of its bubble, if there was one.
                let nonce = (peer.nonce != 0).then(|| Trailer::Nonce(peer.nonce.to_be_bytes()));
                if contacts.may_send_to(client.mapped()) {
                    contacts.direct_bubble(between, (local, client.mapped()), nonce, now, effects);
                }
                let peer = contacts.get(place);
                if peer.nonce != 0 || peer.their_port != 0 {
                    contacts.predicted_bubble(place, (between.0, local), false, now, effects);
                }
                contacts.ask(place, (own, local), now, effects);
            }
            None => {
                let request = echo::request(between, contacts.nonce(place));
                contacts.test(place, (local, server), request, now, effects);
            }
        }
    }

    /// Asks a silent client for a direct bubble, before its server is used (RFC 6081 §5.7). Returns whether it did.
    pub(super) fn solicits(
        &self,
        contacts: &mut Contacts,
        place: Place,
        local: Endpoint4,
        now: Instant,
        effects: &mut Effects,
    ) -> bool {
        let Some(own) = self.address else { return false };
        let peer = contacts.get(place);
        if peer.bubbles > 0 || TeredoAddress::of(peer.address).is_none() {
            return false;
        }
        contacts.solicitation(place, (own.address(), local), now, effects);
        true
    }

    /// A datagram that arrived (§5.2.3).
    #[inline(always)]
    pub(super) fn receive(
        &self,
        contacts: &mut Contacts,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let Datagram { from, source, destination, .. } = datagram;
        let is_local = LINK_LOCAL.contains(source);
        // Solicited advertisements; control knows which routers it has solicited.
        if is_local && !datagram.is_bubble() {
            if contacts.is_spare(local) {
                return self.tested(contacts, &datagram, now, effects);
            }
            // An answer repeats the nonce that control always sends.
            let may = datagram.is_advertisement()
                && datagram.has_prologue()
                && from.port == TEREDO_PORT
                && self.servers.contains(&from.address)
                && contacts.may_tell_control(from.address, now);
            return if may { Ok(Next::Control) } else { Err(DropReason::TeredoUnexpected) };
        }
        let own = self.address.ok_or(DropReason::TeredoUnexpected)?;
        // Relays without a global address (miredo's) send bubbles from such addresses, through the server alone.
        if is_local && self.server() != Some(from) {
            return Err(DropReason::TeredoUnexpected);
        }
        if destination != own.address() {
            return Err(DropReason::DestinationNotInSite);
        }
        if source == destination {
            return Err(DropReason::SourceNotInTunnel);
        }
        if self.server() == Some(from) && !contacts.is_spare(local) {
            return self.forwarded(contacts, (datagram, local), now, effects);
        }
        if datagram.has_prologue() {
            return Err(DropReason::TeredoUnexpected);
        }
        let place = contacts.find(source);
        if let Some(place) = place {
            let peer = contacts.get(place);
            // §5.2.3, 1 and 5.
            if (peer.is_trusted || peer.is_local) && peer.endpoint == from && peer.port == local.port {
                return self.accepted(contacts, place, (datagram, local), now, effects);
            }
        }
        if contacts.is_spare(local) {
            return self.at_spare(contacts, place, (datagram, local), now, effects);
        }
        self.proves(contacts, place, (datagram, local), now, effects)
    }

    /// A packet of a peer from its proven endpoint.
    #[inline(always)]
    fn accepted(
        &self,
        contacts: &mut Contacts,
        place: Place,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        contacts.heard(place, datagram.from, now);
        if !datagram.is_bubble() {
            return Ok(Next::Leave);
        }
        if datagram.trailers()?.solicits {
            let between = (datagram.destination, datagram.source);
            contacts.advertisement(between, (local, datagram.from), now, effects);
        }
        Ok(Next::Absorb)
    }

    /// A packet from an endpoint that is not proven to be the sender's: it may be the proof (§5.2.3, 2, 3 and 6).
    #[inline(never)]
    fn proves(
        &self,
        contacts: &mut Contacts,
        place: Option<Place>,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let Datagram { from, source, .. } = datagram;
        // By its nonce a neighbour proves a local endpoint.
        let is_neighbours = self.is_neighbour(source) && contacts.is_near(from);
        if !contacts.may_send_to(from) && !is_neighbours {
            return Err(DropReason::TeredoNotTrusted);
        }
        if let Some(place) = place {
            let peer = contacts.get(place);
            // It expects answers from the port that it sends to, the service port (RFC 6081 §5.4.4.5).
            if peer.is_trusted && peer.endpoint == from {
                peer.port = local.port;
                return self.accepted(contacts, place, (datagram, local), now, effects);
            }
            let nonce = contacts.nonce(place);
            if contacts.get(place).is_tested(now) && echo::answers(&datagram, nonce) {
                contacts.heard(place, from, now);
                return Ok(Next::Absorb);
            }
        }
        match (TeredoAddress::of(source), place) {
            (Some(peer), _) if peer.mapped() == from => {
                let is_moved = place.is_some_and(|place| contacts.is_elsewhere(place, from, now));
                if is_moved && !datagram.is_bubble() {
                    return Err(DropReason::TeredoNotTrusted);
                }
                let (place, _) = contacts.entry(source, from, source, now, effects)?;
                contacts.get(place).port = local.port;
                self.accepted(contacts, place, (datagram, local), now, effects)
            }
            // Behind a symmetric NAT (RFC 6081 §5.2.4.4).
            (Some(_), Some(place)) if contacts.is_proof(place, datagram.trailers()?.nonce, now) => {
                let peer = contacts.get(place);
                peer.port = local.port;
                let nonce = peer.nonce;
                let nonce = (nonce != 0).then(|| Trailer::Nonce(nonce.to_be_bytes()));
                let next = self.accepted(contacts, place, (datagram, local), now, effects);
                // It has not received a direct bubble: those to the endpoint in its address did not arrive.
                contacts.answer_bubble((datagram.destination, source), (local, from), nonce, now, effects);
                next
            }
            (Some(_), _) => Err(DropReason::TeredoNotTrusted),
            (None, _) => self.unproven(contacts, (datagram, local), now, effects),
        }
    }

    /// A packet to a spare port: only the peer that the port is for is accepted there, by the same proofs as at the service port (RFC 6081 §5.4.4.5).
    #[cold]
    #[inline(never)]
    fn at_spare(
        &self,
        contacts: &mut Contacts,
        place: Option<Place>,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let Datagram { from, source, destination, .. } = datagram;
        let user = contacts.spares.user(local.port);
        let place = place.filter(|place| user == Some(*place)).ok_or(DropReason::TeredoNotTrusted)?;
        let peer = *contacts.get(place);
        if peer.is_trusted && peer.endpoint == from {
            contacts.get(place).port = local.port;
            return self.accepted(contacts, place, (datagram, local), now, effects);
        }
        let is_mapped = TeredoAddress::of(source).is_some_and(|client| client.mapped() == from);
        let is_proven = datagram.is_bubble()
            && contacts.may_send_to(from)
            && (is_mapped || contacts.is_proof(place, datagram.trailers()?.nonce, now));
        if !is_proven {
            return Err(DropReason::TeredoNotTrusted);
        }
        // Its bubble through the server has not arrived yet. Only the nonce in it lets this client prove to the peer that this port is its own.
        if peer.nonce == 0 && peer.bubbles < 2 {
            return Ok(Next::Absorb);
        }
        contacts.get(place).port = local.port;
        let next = self.accepted(contacts, place, (datagram, local), now, effects);
        let nonce = (peer.nonce != 0).then(|| Trailer::Nonce(peer.nonce.to_be_bytes()));
        contacts.answer_bubble((destination, source), (local, from), nonce, now, effects);
        next
    }

    /// A server's answer to a solicitation from a spare port.
    fn tested(
        &self,
        contacts: &mut Contacts,
        datagram: &Datagram<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let own = self.address.zip(contacts.local()).ok_or(DropReason::TeredoUnexpected)?;
        contacts.tested(datagram, own, now, effects)?;
        Ok(Next::Absorb)
    }

    /// Tests of the NAT that are due.
    pub(super) fn run_tests(
        &self,
        contacts: &mut Contacts,
        local: Endpoint4,
        now: Instant,
        effects: &mut Effects,
    ) {
        if let Some(own) = self.address {
            contacts.run_tests((own, local), now, effects);
        }
    }

    /// Sends what is needed to keep the mapping of a peer that is due.
    pub(super) fn keeps_mapping(
        &self,
        contacts: &mut Contacts,
        place: Place,
        local: Endpoint4,
        now: Instant,
        effects: &mut Effects,
    ) {
        if let Some(own) = self.address {
            contacts.keep_mapping(place, (own, local), now, effects);
        }
    }

    /// Whether an address is that of a client behind the same NAT.
    fn is_neighbour(&self, address: Ipv6Addr) -> bool {
        let mapped = |client: TeredoAddress| client.mapped().address;
        self.address.is_some() && self.address.map(mapped) == TeredoAddress::of(address).map(mapped)
    }

    /// A bubble that a server forwarded, of a peer that cannot reach this client yet.
    #[cold]
    #[inline(never)]
    fn forwarded(
        &self,
        contacts: &mut Contacts,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let Datagram { source, destination, .. } = datagram;
        if !datagram.is_bubble() {
            return Err(DropReason::TeredoUnexpected);
        }
        let trailers = datagram.trailers()?;
        let origin = Prologue::split(datagram.prologue()).ok().and_then(|(prologue, _)| prologue.origin);
        let between = (destination, source);
        let nonce = trailers.nonce.map(Trailer::Nonce);
        let Some(peer) = TeredoAddress::of(source) else {
            let Origin(origin) = origin.ok_or(DropReason::TeredoUnexpected)?;
            if contacts.may_send_to(origin) {
                contacts.answer_bubble(between, (local, origin), nonce, now, effects);
            }
            return Ok(Next::Absorb);
        };
        // To its proven endpoint: behind a symmetric NAT that is not the one in its address.
        let proven = contacts.proven_ends(source, local);
        let ends = proven.unwrap_or((local, peer.mapped()));
        if proven.is_some() || contacts.may_send_to(ends.1) {
            contacts.answer_bubble(between, ends, nonce, now, effects);
        }
        if self.is_neighbour(source) {
            let all = trailers.alternates;
            let once = all.iter().zip(0..).filter(|(one, place)| !all[..*place].contains(one));
            for to in once.map(|(one, _)| alternate(*one)) {
                // The sender must not be able to choose hosts of the Internet: one endpoint has been answered already.
                if contacts.is_near(to) {
                    contacts.answer_bubble(between, (local, to), nonce, now, effects);
                }
            }
        }
        // It may have another endpoint than the one in its address: a bubble of this client, with a nonce, finds out.
        let (place, is_new) = contacts.entry(source, peer.mapped(), source, now, effects)?;
        contacts.get(place).nonce = trailers.nonce.map_or(0, u32::from_be_bytes);
        contacts.hears_port(place, trailers.random_port, local, now);
        let asks = is_new || contacts.is_asked_back(place, now);
        if asks {
            contacts.prepare(place, local);
        }
        if proven.is_none() {
            contacts.predicted_bubble(place, (destination, local), true, now, effects);
        }
        if let Some(own) = self.address.filter(|_| asks) {
            contacts.ask(place, (own, local), now, effects);
        }
        Ok(Next::Absorb)
    }

    /// A packet of a native host from an endpoint that is not proven to be its relay: it is tested, and the packet dropped (§5.2.3, 6).
    #[cold]
    #[inline(never)]
    fn unproven(
        &self,
        contacts: &mut Contacts,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let Datagram { from, source, .. } = datagram;
        let server = self.server().ok_or(DropReason::TeredoUnexpected)?;
        let is_due = contacts.find(source).is_none_or(|place| contacts.may_test_again(place, now));
        // A trusted peer has one test in two seconds, which does not count for unknown peers.
        let is_trusted = contacts.find(source).is_some_and(|place| contacts.get(place).is_trusted);
        if is_due && contacts.find(source).is_none() {
            contacts.may_enter(from)?;
        }
        if is_due && (is_trusted || contacts.may_test_for(from, now)) {
            let (place, _) = contacts.entry_of_stranger(source, (server, from), now, effects)?;
            contacts.begin(place, now);
            self.greet(contacts, place, local, now, effects);
        }
        Err(DropReason::TeredoNotTrusted)
    }
}
