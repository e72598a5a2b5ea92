//! Sessions of another process, restored with their state, counts and lifetime.

use super::binding_kind::BindingKind;
use super::inside_key::InsideKey;
use super::not_adopted::NotAdopted;
use super::protocol::NatProtocol;
use super::session::NewSession;
use super::session_state::SessionState;
use super::sides::{Inside, Outside};
use super::slab::NONE;
use super::state_tables::StateTables;
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::direction::Direction;
use crate::nat::offload::{FlowHandle, HalfUsage, Usage};
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_wire::{Endpoint4, Endpoint6};

/// A session, as one process hands it to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedSession<I = Endpoint6> {
    /// Protocol.
    pub protocol: NatProtocol,
    /// State.
    pub state: SessionState,
    /// The remote end of the softwire that the inside endpoint is behind.
    pub softwire: Option<Ipv6Addr>,
    /// The local end of that softwire.
    pub local: Option<Ipv6Addr>,
    /// Inside endpoint.
    pub inside: Inside<I>,
    /// Outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// Remote endpoint; the port is 0 for ICMP.
    pub remote: Endpoint4,
    /// Time since its lifetime last started, to the second.
    pub age: Duration,
    /// Time since the last packet, to the second.
    pub idle: Duration,
    /// Packets out and in.
    pub packets: [u64; 2],
    /// Octets out and in.
    pub octets: [u64; 2],
    /// Whether a packet from outside created it, and none from inside has answered it.
    pub from_outside: bool,
}

/// A session to be made again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revival<I> {
    /// What it was.
    pub(crate) saved: SavedSession<I>,
    /// Second at which its lifetime started.
    pub(crate) started: u32,
    /// Second of its last packet.
    pub(crate) last_packet: u32,
    /// Its entry in the fast path.
    pub(crate) flow: Option<FlowHandle>,
}

impl<I: InsideKey> StateTables<I> {
    /// Restores a session, and its binding if it does not exist.
    pub(crate) fn revive(
        &mut self,
        revival: &Revival<I>,
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        let SavedSession { protocol, inside, outside, remote, .. } = revival.saved;
        let (state, from_outside) = state_of(&revival.saved);
        let opened = if from_outside { Direction::In } else { Direction::Out };
        let is_known = self.sessions.find_inside(inside, remote, protocol).is_some()
            || self.sessions.find_outside(outside, remote, protocol).is_some();
        if is_known {
            return Err(NotAdopted::SessionExists);
        }
        if self.sessions.is_full() || from_outside && self.sessions.is_full_for_outside() {
            return Err(NotAdopted::TableFull);
        }
        let binding = self.binding_again(protocol, inside, outside, counters)?;
        let new = NewSession { inside: Some(inside), outside, remote, protocol, state, opened };
        let slot = self.sessions.insert(new, clock).ok_or(NotAdopted::TableFull)?;
        counters.sessions_made += 1;
        self.link(slot, binding, clock);
        self.end_unless_kept(binding);
        self.permits.add(protocol, outside, remote.address);
        self.sessions.absorb(slot, &counts(&revival.saved));
        self.sessions.resume(slot, revival.started, revival.last_packet);
        self.sessions.links_mut(slot).set_flow(revival.flow);
        Ok(())
    }

    /// The binding of both endpoints, which is made if neither has one.
    fn binding_again(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        outside: Outside<Endpoint4>,
        counters: &mut Counters,
    ) -> Result<u32, NotAdopted> {
        match (self.bindings.find_inside(protocol, inside), self.bindings.find_outside(protocol, outside)) {
            (Some(one), Some(other)) if one == other => Ok(one),
            (None, None) => {
                let binding = self.bindings.rebind(protocol, inside, outside)?;
                counters.bindings_made += 1;
                Ok(binding)
            }
            (Some(_) | None, Some(_) | None) => Err(NotAdopted::EndpointInUse),
        }
    }

    /// A session as another process is to have it. `None`: the slot holds none that could continue there, or the fast path has it, which
    /// then knows of its last packet.
    pub(crate) fn save(&mut self, slot: u32, clock: Clock) -> Option<SavedSession<I>> {
        self.take_back_half_open(slot);
        self.touch(slot);
        let present = self.present(slot);
        let (session, links) = (present.session, self.sessions.links(slot));
        let waits = matches!(session.state, SessionState::Free | SessionState::OutsideInitStored);
        if waits
            || links.binding == NONE
            || present.flow.is_some()
            || clock.floor >= self.sessions.closes(&session)
            || self.bindings.get(links.binding).kind() == BindingKind::Free
        {
            return None;
        }
        let since = |second: u32| Duration::from_secs(clock.floor.saturating_sub(second).into());
        Some(SavedSession {
            protocol: session.protocol,
            state: session.state.answered(),
            softwire: None,
            local: None,
            inside: session.inside,
            outside: session.outside,
            remote: session.remote,
            age: since(session.started),
            idle: since(session.last_packet),
            packets: present.packets,
            octets: present.octets,
            from_outside: links.from_outside,
        })
    }
}

/// The state, and whether no packet from inside has answered the session: between processes it is in the open state all the same.
const fn state_of<I>(saved: &SavedSession<I>) -> (SessionState, bool) {
    use SessionState as S;
    match (saved.from_outside, saved.state) {
        (true, S::Udp | S::UdpUnanswered) => (S::UdpUnanswered, true),
        (true, S::Icmp | S::IcmpUnanswered) => (S::IcmpUnanswered, true),
        (true, S::OutsideInit) => (S::OutsideInit, true),
        (_, state) => (state, false),
    }
}

/// What a session had, as if elsewhere.
fn counts<I>(saved: &SavedSession<I>) -> Usage {
    let half = |direction: usize| HalfUsage {
        packets: saved.packets[direction],
        octets: saved.octets[direction],
        last: None,
    };
    [half(0), half(1)]
}
