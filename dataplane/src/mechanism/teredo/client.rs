//! The rules of a client (RFC 4380 §5.2.3, §5.2.4; RFC 5991 §3.2: the cone bit of peers is ignored; RFC 6081 §5.2, §5.6, §5.7).

use super::contacts::{Contacts, Place};
use super::datagram::Datagram;
use super::echo;
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

    /// What is routed to a peer comes from this client's address.
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
            // §5.2.4, 3: on the link, whatever its address is.
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
                let behind = Some(own.mapped().address);
                contacts.indirect_bubble(place, (between.0, local), behind, now, effects);
            }
            None => {
                let request = echo::request(between, contacts.nonce(place));
                contacts.test(place, (local, server), request, now, effects);
            }
        }
    }

    /// Asks a client that is silent for a direct bubble, before its server is troubled (RFC 6081 §5.7). Whether that was done.
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
        // Solicited advertisements; control knows whom it has asked.
        if is_local && !datagram.is_bubble() {
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
        if self.server() == Some(from) {
            return self.forwarded(contacts, (datagram, local), now, effects);
        }
        if datagram.has_prologue() {
            return Err(DropReason::TeredoUnexpected);
        }
        let place = contacts.find(source);
        if let Some(place) = place {
            let peer = contacts.get(place);
            // §5.2.3, 1 and 5.
            if (peer.is_trusted || peer.is_local) && peer.endpoint == from {
                return self.accepted(contacts, place, (datagram, local), now, effects);
            }
        }
        self.proves(contacts, place, (datagram, local), now, effects)
    }

    /// A packet of a peer from an endpoint that is its own.
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

    /// A packet from an endpoint that is not known to be the sender's: what proves it (§5.2.3, 2, 3 and 6).
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
                self.accepted(contacts, place, (datagram, local), now, effects)
            }
            // Behind a symmetric NAT (RFC 6081 §5.2.4.4).
            (Some(_), Some(place)) if contacts.is_proof(place, datagram.trailers()?.nonce, now) => {
                let nonce = contacts.get(place).nonce;
                let nonce = (nonce != 0).then(|| Trailer::Nonce(nonce.to_be_bytes()));
                let next = self.accepted(contacts, place, (datagram, local), now, effects);
                // It has not heard of this client directly: what was sent to the endpoint in its address did not arrive.
                contacts.answer_bubble((datagram.destination, source), (local, from), nonce, now, effects);
                next
            }
            (Some(_), _) => Err(DropReason::TeredoNotTrusted),
            (None, _) => self.unproven(contacts, (datagram, local), now, effects),
        }
    }

    /// Whether an address is that of a client behind the same NAT.
    fn is_neighbour(&self, address: Ipv6Addr) -> bool {
        let mapped = |client: TeredoAddress| client.mapped().address;
        self.address.is_some() && self.address.map(mapped) == TeredoAddress::of(address).map(mapped)
    }

    /// What a server forwarded: a bubble of somebody who cannot reach this client yet.
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
        // Where it is known to be: behind a symmetric NAT not where its address says.
        let proven = contacts.proven_endpoint(source);
        let to = proven.unwrap_or(peer.mapped());
        if proven.is_some() || contacts.may_send_to(to) {
            contacts.answer_bubble(between, (local, to), nonce, now, effects);
        }
        if self.is_neighbour(source) {
            let all = trailers.alternates;
            let once = all.iter().zip(0..).filter(|(one, place)| !all[..*place].contains(one));
            for to in once.map(|(one, _)| alternate(*one)) {
                // Whoever wrote them must not choose hosts of the Internet: one endpoint has been answered already.
                if contacts.is_near(to) {
                    contacts.answer_bubble(between, (local, to), nonce, now, effects);
                }
            }
        }
        // It may be somewhere else than its address says: a bubble of ours, with a nonce, finds out.
        let (place, is_new) = contacts.entry(source, peer.mapped(), source, now, effects)?;
        contacts.get(place).nonce = trailers.nonce.map_or(0, u32::from_be_bytes);
        if is_new || contacts.is_asked_back(place, now) {
            let behind = self.address.map(|own| own.mapped().address);
            contacts.indirect_bubble(place, (destination, local), behind, now, effects);
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
        // One that is trusted has a test in two seconds, and takes none of the strangers'.
        let is_trusted = contacts.find(source).is_some_and(|place| contacts.get(place).is_trusted);
        if is_due && (is_trusted || contacts.may_test_for(from, now)) {
            let (place, _) = contacts.entry_of_stranger(source, (server, from), now, effects)?;
            contacts.begin(place, now);
            self.greet(contacts, place, local, now, effects);
        }
        Err(DropReason::TeredoNotTrusted)
    }
}
