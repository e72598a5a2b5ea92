//! The engine's interface to a relay or a client.

use super::client::Client;
use super::config::{TeredoChange, TeredoConfig, TeredoRole};
use super::contacts::{Contacts, VALID};
use super::datagram::Datagram;
use super::peers::Place;
use super::relay::Relay;
use super::row::{PeerRow, TeredoRow};
use super::spares::at_port;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{Arrival, Build, BuildContext, Mechanism};
use crate::parse::{Packet, QuotedTuple};
use crate::source_check;
use crate::tunnel::decision::{refuse_bare_ipv4, routed};
use crate::verdict::{Decision, Next, Outer, PolicyId, WorkerId};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_wire::Endpoint4;

/// A peer that is sent to and silent for this time gets a bubble, so that its entry stays valid.
const SILENT: Duration = Duration::from_secs(20);

/// Relay or client.
enum Side {
    Relay(Relay),
    Client(Client),
}

/// A relay or a client. The first worker has all of its peers.
pub struct Teredo {
    side: Side,
    local: Option<Endpoint4>,
    policy: PolicyId,
    contacts: Contacts,
}

impl Teredo {
    /// The endpoint at which its UDP packets arrive.
    pub const fn local(&self) -> Option<Endpoint4> {
        self.local
    }

    /// Further ports at which they arrive: a client's spare ports.
    pub(crate) fn spares(&self) -> impl Iterator<Item = Endpoint4> {
        let local = self.local;
        self.contacts.spares.ports().filter_map(move |port| Some(at_port(local?, port)))
    }

    /// Its policy.
    pub(crate) const fn policy(&self) -> PolicyId {
        self.policy
    }

    /// Applies a change.
    pub(crate) fn change(&mut self, change: &TeredoChange, now: Instant, effects: &mut Effects) {
        match (change, &mut self.side) {
            (TeredoChange::Local(local, subnets), _) => {
                // Peers that were reached from the previous endpoint may not be reached from the new one: their NATs only accept the previous one.
                if core::mem::replace(&mut self.local, *local) != *local {
                    self.contacts.forget_all(effects);
                }
                self.contacts.set_local(*local, subnets);
            }
            (TeredoChange::Client(address), Side::Client(client)) => {
                if core::mem::replace(&mut client.address, *address) != *address {
                    self.contacts.forget_all(effects);
                }
            }
            (TeredoChange::LocalPeer(address, endpoint), Side::Client(_)) => {
                self.contacts.learn_local(*address, *endpoint, now, effects);
            }
            (TeredoChange::Prediction(prediction), Side::Client(_)) => {
                self.contacts.set_spares(prediction, effects);
            }
            (
                TeredoChange::Client(_) | TeredoChange::LocalPeer(..) | TeredoChange::Prediction(_),
                Side::Relay(_),
            ) => {}
        }
    }

    /// The known data about a peer.
    pub fn peer(&self, address: Ipv6Addr, now: Instant) -> Option<PeerRow> {
        self.contacts.row_of(address, now)
    }

    /// Some peers, from this position on, and the next position, if there are more.
    pub fn peers(&self, from: u32, most: usize, now: Instant) -> (Vec<PeerRow>, Option<u32>) {
        self.contacts.rows(from, most, now)
    }

    /// Octets of memory that its peers take.
    pub fn memory_used(&self) -> usize {
        self.contacts.memory_used()
    }

    /// The totals.
    pub fn row(&self) -> TeredoRow {
        self.contacts.row()
    }

    /// A packet that is routed to a peer.
    #[inline(always)]
    fn transmit(
        &mut self,
        arrival: &Arrival<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let local = self.local.ok_or(DropReason::NoRemote)?;
        let (source, destination) = routed(arrival.packet)?;
        match &self.side {
            Side::Relay(_) => Relay::check_routed(source, destination)?,
            Side::Client(client) => client.check_routed(source, destination)?,
        }
        if let Some(place) = self.contacts.find(destination) {
            let peer = self.contacts.get(place);
            if peer.is_trusted && peer.was_heard(VALID, now) {
                let (source, endpoint) = (at_port(local, peer.port), peer.endpoint);
                self.contacts.sent(place, now);
                if !peer_was_heard_lately(&mut self.contacts, place, now) {
                    self.refresh(place, local, now, effects);
                }
                let outer = effects.outer(Outer::Udp4 { source, destination: endpoint });
                return Ok(Decision::encap(outer, self.policy));
            }
        }
        self.hold(arrival, local, (source, destination), now, effects)
    }

    /// A peer that was sent to is silent.
    #[cold]
    #[inline(never)]
    fn refresh(&mut self, place: Place, local: Endpoint4, now: Instant, effects: &mut Effects) {
        if !self.contacts.may_keep_valid(place, now) {
            return;
        }
        self.contacts.begin(place, now);
        match &self.side {
            Side::Client(client) if client.solicits(&mut self.contacts, place, local, now, effects) => {}
            Side::Client(_) | Side::Relay(_) => self.greet(place, local, now, effects),
        }
    }

    /// Sends what makes a peer answer.
    fn greet(&mut self, place: Place, local: Endpoint4, now: Instant, effects: &mut Effects) {
        match &self.side {
            Side::Relay(relay) => relay.greet(&mut self.contacts, place, local, now, effects),
            Side::Client(client) => client.greet(&mut self.contacts, place, local, now, effects),
        }
    }

    /// The packet waits until the peer answers.
    #[cold]
    #[inline(never)]
    fn hold(
        &mut self,
        arrival: &Arrival<'_>,
        local: Endpoint4,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let server = match &self.side {
            Side::Relay(_) => None,
            Side::Client(client) => client.server(),
        };
        let (place, is_new) = self.contacts.approach(source, destination, server, now, effects)?;
        if is_new {
            self.greet(place, local, now, effects);
        }
        self.contacts.hold(place, arrival.frame)?;
        Ok(Decision::keep(Next::Held))
    }

    /// A packet that came from a peer.
    #[inline(always)]
    fn receive(
        &mut self,
        datagram: Datagram<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let (local, policy) = (self.local.ok_or(DropReason::NoTunnel)?, self.policy);
        let next = match &mut self.side {
            Side::Relay(relay) => relay.receive(&mut self.contacts, datagram, now),
            Side::Client(client) => {
                let at = at_port(local, datagram.to_port);
                client.receive(&mut self.contacts, (datagram, at), now, effects)
            }
        };
        // Also if the packet itself is refused: it has proven the peer's endpoint.
        if self.contacts.has_answered() {
            self.contacts.release((local, policy), effects);
        }
        Ok(match next? {
            Next::Leave => {
                source_check::check(datagram.packet)?;
                refuse_bare_ipv4(datagram.source, datagram.destination)?;
                if datagram.packet.segments_left_at != 0 {
                    return Err(DropReason::RoutingHeader);
                }
                Decision::decap(policy)
            }
            next => Decision::keep(next),
        })
    }
}

#[inline(always)]
fn peer_was_heard_lately(contacts: &mut Contacts, place: Place, now: Instant) -> bool {
    contacts.get(place).was_heard(SILENT, now)
}

impl Build for TeredoConfig {
    type State = Teredo;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Teredo, Infallible> {
        let side = match &self.role {
            TeredoRole::Relay(relay) => Side::Relay(Relay::new(relay.clone())),
            TeredoRole::Client => Side::Client(Client::new(self.servers.clone())),
        };
        // The other workers have no peers.
        let most = if context.worker == WorkerId(0) { self.max_peers.max(1) } else { 1 };
        let contacts = Contacts::new(most, context.seed);
        Ok(Teredo { side, local: None, policy, contacts })
    }
}

impl Mechanism for Teredo {
    const KIND: Kind = Kind::Teredo;
    const COUNTS_HOP: bool = false;
    const APART: bool = true;
    type Probe = ();
    const NO_PROBE: () = ();

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        (): &(),
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match arrival.inner {
            Some(inner) => self.receive(Datagram::of(arrival, inner)?, now, effects),
            None => self.transmit(arrival, now, effects),
        }
    }

    #[inline(never)]
    fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        let Some(local) = self.local else { return };
        if let Side::Client(client) = &self.side {
            client.run_tests(&mut self.contacts, local, now, effects);
        }
        for _ in 0..budget {
            let Some(place) = self.contacts.due(now) else { return };
            if let Side::Client(client) = &self.side {
                client.keeps_mapping(&mut self.contacts, place, local, now, effects);
            }
            if self.contacts.look_again(place, now, effects) {
                self.greet(place, local, now, effects);
            }
        }
    }

    fn worker_of(&self, _packet: &Packet, _quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        Some(WorkerId(0))
    }
}
