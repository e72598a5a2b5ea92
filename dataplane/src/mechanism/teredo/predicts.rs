//! How a client behind a symmetric NAT reaches peers behind port-restricted NATs: it uses a separate port for each, predicts the port that
//! its NAT maps it to, and sends this number to the peer through the peer's server (RFC 6081 §5.4, §5.5).
//!
//! ```text
//!     port-preserving: bubble through the server, port P ─▶ ... ◀─ the peer's answer ─ bubble from P to the peer
//!     sequential:      P: solicitation ─▶ server, bubble ─▶ peer, solicitation ─▶ server's second address;
//!                      bubble through the server, the port between the two that the server saw ─▶ the peer sends there
//! ```

use super::config::PortRule;
use super::contacts::{Contacts, VALID};
use super::datagram::Datagram;
use super::echo::{self, PortNonce};
use super::peers::{Place, Stamp, since};
use super::row::PeerState;
use super::spares::{TestStep, at_port};
use crate::drop_reason::DropReason;
use crate::effects::{Effects, Generated};
use crate::instant::Instant;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Origin, Prologue, TEREDO_PORT, TeredoAddress, Trailer};

/// A client's address, and its service port.
pub(super) type Own = (TeredoAddress, Endpoint4);

impl Contacts {
    /// Whether a datagram came to another port than the service port.
    #[inline(always)]
    pub(super) fn is_spare(&self, end: Endpoint4) -> bool {
        self.local().is_some_and(|local| local.port != end.port)
    }

    /// Asks a client for a direct bubble, through its server; from the first time on with the port that the NAT is predicted to use.
    pub(super) fn ask(&mut self, place: Place, own: Own, now: Instant, effects: &mut Effects) {
        self.prepare(place, own.1);
        if self.spares.tests(place, now) {
            self.run_tests(own, now, effects);
        } else {
            self.ask_now(place, own, now, effects);
        }
    }

    /// Reserves a spare port for the peer, if the kind of NAT needs it and the peer is not reached otherwise.
    pub(super) fn prepare(&mut self, place: Place, local: Endpoint4) {
        let peer = self.get(place);
        let is_found = peer.is_local || peer.is_trusted && peer.their_port == 0;
        let creator = peer.creator;
        if !is_found || peer.port != local.port {
            self.spares.assign(place, creator);
        }
    }

    fn ask_now(&mut self, place: Place, (own, local): Own, now: Instant, effects: &mut Effects) {
        self.indirect_bubble(place, (own.address(), local), Some(own.mapped().address), now, effects);
    }

    /// A bubble through the server has the port that its sender predicts (§5.4.4.4). While packets pass, and during an attempt, a different one is ignored.
    pub(super) fn hears_port(&mut self, place: Place, port: u16, local: Endpoint4, now: Instant) {
        let peer = self.get(place);
        let is_idle = match peer.state {
            PeerState::Trusted | PeerState::Established => true,
            PeerState::Contacting | PeerState::Unreachable => peer.port != local.port,
        };
        let is_moved = is_idle && !peer.is_used(VALID, now);
        if port == 0 || peer.their_port == port || peer.their_port != 0 && !is_moved {
            return;
        }
        let is_other = core::mem::replace(&mut peer.their_port, port) != 0;
        if is_other {
            peer.port = local.port;
            self.spares.release(place);
        }
    }

    /// A bubble to the port that a client has sent, from the spare port for this client if there is one (§5.4.4.3). `is_answer`: to a bubble of its own.
    pub(super) fn predicted_bubble(
        &mut self,
        place: Place,
        (own, local): (Ipv6Addr, Endpoint4),
        is_answer: bool,
        now: Instant,
        effects: &mut Effects,
    ) {
        if !self.spares.awaits(place) {
            self.bubble_by_path(place, (own, local), is_answer, now, effects);
        }
    }

    fn bubble_by_path(
        &mut self,
        place: Place,
        (own, local): (Ipv6Addr, Endpoint4),
        is_answer: bool,
        now: Instant,
        effects: &mut Effects,
    ) {
        let Some(ends) = self.path(place, local) else { return };
        let peer = *self.get(place);
        let nonce = (peer.nonce != 0).then(|| Trailer::Nonce(peer.nonce.to_be_bytes()));
        let port = self.spares.outside(place).map(Trailer::RandomPort);
        if !is_answer || self.may_answer(peer.address, now) {
            self.spares.sends(place);
            let trailers = [nonce, port].into_iter().flatten();
            self.direct_bubble((own, peer.address), ends, trailers, now, effects);
        }
    }

    /// The local port and the endpoint of a bubble: from the spare port for the client to the port that it sent, otherwise to the one in its address.
    /// Without a spare port, only if the client sent a port and this NAT needs no prediction.
    fn path(&mut self, place: Place, local: Endpoint4) -> Option<(Endpoint4, Endpoint4)> {
        let own = self.spares.port_of(place);
        let peer = self.get(place);
        let mapped = TeredoAddress::of(peer.address)?.mapped();
        let is_found = peer.is_trusted && Some(peer.port) == own;
        let to = match peer.their_port {
            _ if is_found => peer.endpoint,
            0 => mapped,
            port => at_port(mapped, port),
        };
        let tells = peer.their_port != 0;
        let from = match (own, self.spares.rule()) {
            (Some(port), _) => at_port(local, port),
            (None, None) if tells => local,
            (None, _) => return None,
        };
        self.may_send_to(to).then_some((from, to))
    }

    /// Continues the tests that are due (§5.5.2.2).
    pub(super) fn run_tests(&mut self, own: Own, now: Instant, effects: &mut Effects) {
        while let Some(place) = self.spares.due(now) {
            match self.spares.step(place, now) {
                Some(TestStep::Send(began)) => self.send_test(place, began, own, now, effects),
                Some(TestStep::GiveUp) => self.ask_now(place, own, now, effects),
                None => return,
            }
        }
    }

    /// A solicitation to each address of the server, and between them a bubble to the client (§5.5.4.1.1).
    fn send_test(
        &mut self,
        place: Place,
        began: Stamp,
        (own, local): Own,
        now: Instant,
        effects: &mut Effects,
    ) {
        let Some((from, _)) = self.path(place, local) else { return };
        let Some(secondary) = self.secondary() else { return };
        let address = self.get(place).address;
        let [first, last] = echo::port_nonces(self.key(), address, began);
        let mut solicits = |contacts: &mut Self, server: Ipv4Addr, nonce: PortNonce| {
            if contacts.may_send(server, now, effects) {
                let octets = echo::solicitation(own.interface.link_local(), nonce);
                effects.send(Generated::Datagram(from, Endpoint4::new(server, TEREDO_PORT), octets));
            }
            // The bubble is sent between the two.
            if nonce == first {
                contacts.bubble_by_path(place, (own.address(), local), false, now, effects);
            }
        };
        solicits(self, own.server, first);
        solicits(self, secondary, last);
    }

    fn secondary(&self) -> Option<Ipv4Addr> {
        match self.spares.rule()? {
            PortRule::Sequential { secondary } => Some(secondary),
            PortRule::Preserved => None,
        }
    }

    /// An advertisement at a spare port: the mapping that one address of the server saw (§5.5.4.4). After the second one, the indirect bubble is sent.
    #[cold]
    #[inline(never)]
    pub(super) fn tested(
        &mut self,
        datagram: &Datagram<'_>,
        own: Own,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), DropReason> {
        let unexpected = DropReason::TeredoUnexpected;
        let place = self.spares.user(datagram.to_port).ok_or(unexpected)?;
        let servers = [own.0.server, self.secondary().ok_or(unexpected)?];
        let is_from = |server: &Ipv4Addr| Endpoint4::new(*server, TEREDO_PORT) == datagram.from;
        let which = servers.iter().position(is_from).ok_or(unexpected)?;
        let (prologue, _) = Prologue::split(datagram.prologue()).map_err(|_| unexpected)?;
        let began = self.spares.began(place).ok_or(unexpected)?;
        let nonces = echo::port_nonces(self.key(), self.get(place).address, began);
        let answers = |nonce: PortNonce| nonces.get(which) == Some(&nonce);
        let is_answer = datagram.is_advertisement()
            && prologue.authentication.is_some_and(|authentication| answers(authentication.nonce));
        let Origin(seen) = prologue.origin.filter(|_| is_answer).ok_or(unexpected)?;
        // The client would not accept packets from another address.
        if seen.address != own.0.mapped().address {
            return Err(unexpected);
        }
        if self.spares.saw(place, which, seen.port) {
            self.ask_now(place, own, now, effects);
        }
        Ok(())
    }

    /// A client that is due: if it was reached by the service port, its spare port is released (§5.4.4.5); otherwise its mapping is maintained while no
    /// data are sent (§5.4.2.1).
    pub(super) fn keep_mapping(&mut self, place: Place, own: Own, now: Instant, effects: &mut Effects) {
        let Some(port) = self.spares.port_of(place) else { return };
        let peer = *self.get(place);
        match peer.state {
            PeerState::Trusted | PeerState::Established => {}
            PeerState::Contacting | PeerState::Unreachable => return,
        }
        if peer.port != port {
            self.spares.release(place);
            return;
        }
        let was_sent = since(peer.sent, now).is_some_and(|time| time < VALID);
        if self.spares.refreshes(place, was_sent) {
            let ends = (at_port(own.1, port), peer.endpoint);
            self.direct_bubble((own.0.address(), peer.address), ends, None, now, effects);
        }
    }
}
