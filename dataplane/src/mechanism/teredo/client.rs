//! The rules of a client (RFC 4380 §5.2.3, §5.2.4; RFC 5991 §3.2: the cone bit of peers is ignored).

use super::contacts::{Contacts, Place};
use super::echo;
use super::tunnel::Datagram;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::tunnel::address::isatap::LINK_LOCAL;
use crate::verdict::Next;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Prologue, TEREDO_PORT, TeredoAddress};

/// A client.
pub(super) struct Client {
    /// Its address, once it is qualified.
    pub(super) address: Option<TeredoAddress>,
    /// The secret from which the tests of native peers follow.
    key: [u64; 2],
}

impl Client {
    pub(super) const fn new(key: [u64; 2]) -> Self {
        Self { address: None, key }
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
        let (Some(own), Some(server)) = (self.address.map(TeredoAddress::address), self.server()) else {
            return;
        };
        let peer = contacts.get(place);
        let address = peer.address;
        if peer.is_local {
            // §5.2.4, 3: on the link, whatever its address is.
            let endpoint = peer.endpoint;
            contacts.local_bubble(place, (own, address), (local, endpoint), now, effects);
            return;
        }
        match TeredoAddress::of(address) {
            Some(client) => {
                contacts.direct_bubble((own, address), (local, client.mapped()), now, effects);
                contacts.indirect_bubble(place, (own, local), now, effects);
            }
            None => {
                let nonce = echo::nonce(self.key, address, contacts.get(place).contacted);
                let request = echo::request((own, address), nonce);
                contacts.test(place, (local, server), request, now, effects);
            }
        }
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
        let Datagram { from, source, destination, prologue, .. } = datagram;
        // Solicited advertisements; control knows whom it has asked.
        if LINK_LOCAL.contains(source) {
            return Ok(Next::Control);
        }
        let own = self.address.ok_or(DropReason::TeredoUnexpected)?;
        if destination != own.address() {
            return Err(DropReason::DestinationNotInSite);
        }
        if source == destination {
            return Err(DropReason::SourceNotInTunnel);
        }
        if self.server() == Some(from) {
            return self.from_server(contacts, (datagram, local), now, effects);
        }
        if !prologue.is_empty() {
            return Err(DropReason::TeredoUnexpected);
        }
        if let Some(place) = contacts.find(source) {
            let peer = contacts.get(place);
            if peer.is_trusted && peer.endpoint == from {
                contacts.heard(place, from, now);
                return Ok(if datagram.is_bubble() { Next::Absorb } else { Next::Leave });
            }
            let nonce = echo::nonce(self.key, source, peer.contacted);
            if peer.is_tested(now) && echo::answers(&datagram, nonce) {
                contacts.heard(place, from, now);
                return Ok(Next::Absorb);
            }
            // §5.2.3, 5.
            if peer.is_local && peer.endpoint == from {
                contacts.heard(place, from, now);
                return Ok(if datagram.is_bubble() { Next::Absorb } else { Next::Leave });
            }
        }
        match TeredoAddress::of(source) {
            Some(peer) if peer.mapped() == from => {
                let (place, _) = contacts.entry(source, from, source, now, effects)?;
                contacts.heard(place, from, now);
                Ok(if datagram.is_bubble() { Next::Absorb } else { Next::Leave })
            }
            Some(_) => Err(DropReason::TeredoNotTrusted),
            None => self.from_unproven(contacts, (source, local), now, effects),
        }
    }

    /// What a server forwarded: a bubble of somebody who cannot reach this client yet.
    #[cold]
    #[inline(never)]
    fn from_server(
        &self,
        contacts: &mut Contacts,
        (datagram, local): (Datagram<'_>, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let Datagram { source, destination, prologue, .. } = datagram;
        if !datagram.is_bubble() {
            return Err(DropReason::TeredoUnexpected);
        }
        let origin = Prologue::split(prologue).ok().and_then(|(prologue, _)| prologue.origin);
        let to = match (TeredoAddress::of(source), origin) {
            (Some(peer), _) => peer.mapped(),
            (None, Some(origin)) => origin.0,
            (None, None) => return Err(DropReason::TeredoUnexpected),
        };
        contacts.direct_bubble((destination, source), (local, to), now, effects);
        Ok(Next::Absorb)
    }

    /// A packet of a native host from an endpoint that is not proven to be its relay: it is tested, and the packet dropped (§5.2.3, 6).
    #[cold]
    #[inline(never)]
    fn from_unproven(
        &self,
        contacts: &mut Contacts,
        (source, local): (Ipv6Addr, Endpoint4),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Next, DropReason> {
        let server = self.server().ok_or(DropReason::TeredoUnexpected)?;
        let (place, is_new) = contacts.entry(source, server, source, now, effects)?;
        if is_new || contacts.tests_again(place, now) {
            self.greet(contacts, place, local, now, effects);
        }
        Err(DropReason::TeredoNotTrusted)
    }
}
