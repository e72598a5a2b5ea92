//! The rules of a relay (RFC 4380 §5.4).

use super::config::RelayConfig;
use super::contacts::Contacts;
use super::datagram::Datagram;
use super::peers::Place;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::verdict::Next;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{TEREDO_PREFIX, TeredoAddress};

/// A relay.
pub(super) struct Relay {
    config: RelayConfig,
}

impl Relay {
    pub(super) const fn new(config: RelayConfig) -> Self {
        Self { config }
    }

    /// A packet that is routed to a client must come from a native host (RFC 6324 §3.2: not from another client, which needs no relay).
    #[inline(always)]
    pub(super) const fn check_routed(source: Ipv6Addr, destination: Ipv6Addr) -> Result<(), DropReason> {
        if TEREDO_PREFIX.contains(source) {
            return Err(DropReason::TunnelLoop);
        }
        if !TEREDO_PREFIX.contains(destination) {
            return Err(DropReason::NoRelay);
        }
        Ok(())
    }

    /// A bubble through the client's server (§5.4.1, 3).
    pub(super) fn greet(
        &self,
        contacts: &mut Contacts,
        place: Place,
        local: Endpoint4,
        now: Instant,
        effects: &mut Effects,
    ) {
        contacts.indirect_bubble(place, (self.config.address, local), None, now, effects);
    }

    /// A packet from a client (§5.4.2).
    #[inline(always)]
    pub(super) fn receive(
        &self,
        contacts: &mut Contacts,
        datagram: Datagram<'_>,
        now: Instant,
    ) -> Result<Next, DropReason> {
        let Datagram { from, source, destination, .. } = datagram;
        // Only servers and clients send them.
        if datagram.has_prologue() {
            return Err(DropReason::TeredoUnexpected);
        }
        let place = contacts.find(source);
        let known = place.filter(|place| {
            let peer = contacts.get(*place);
            peer.is_trusted && peer.endpoint == from
        });
        let place = match known {
            Some(place) => place,
            None => Self::proves(contacts, place, &datagram, now)?,
        };
        contacts.heard(place, from, now);
        if datagram.is_bubble() {
            return Ok(Next::Absorb);
        }
        if TEREDO_PREFIX.contains(destination) {
            return Err(DropReason::TunnelLoop);
        }
        let serves = &self.config.serves;
        if !serves.is_empty() && !serves.iter().any(|prefix| prefix.contains(destination)) {
            return Err(DropReason::DestinationNotInSite);
        }
        Ok(Next::Leave)
    }

    /// A packet from an endpoint that is not proven to be the client's: whether it is the proof.
    #[cold]
    #[inline(never)]
    fn proves(
        contacts: &mut Contacts,
        place: Option<Place>,
        datagram: &Datagram<'_>,
        now: Instant,
    ) -> Result<Place, DropReason> {
        let from = datagram.from;
        let client = TeredoAddress::of(datagram.source).ok_or(DropReason::SourceNotRelay)?;
        let is_mapped = client.mapped() == from;
        let Some(place) = place else {
            return Err(if is_mapped {
                DropReason::TeredoNotTrusted
            } else {
                DropReason::SpoofedEmbeddedSource
            });
        };
        let is_proven = if is_mapped {
            // A forged packet does not change the endpoint that the client has proven.
            datagram.is_bubble() || !contacts.is_elsewhere(place, from, now)
        } else {
            // Behind a symmetric NAT, if it proves that it got the bubble (RFC 6081 §5.2.4.4).
            let nonce = datagram.trailers()?.nonce;
            contacts.may_send_to(from) && contacts.is_proof(place, nonce, now)
        };
        is_proven.then_some(place).ok_or(DropReason::SpoofedEmbeddedSource)
    }
}
