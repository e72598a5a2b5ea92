//! Sessions that another process had: made again with all that they were.

use super::binding::BindingKind;
use super::inside_key::InsideKey;
use super::protocol::NatProtocol;
use super::session::{NONE, NewSession};
use super::session_state::SessionState;
use super::sides::{Direction, Inside, Outside};
use super::state_tables::StateTables;
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::offload::{FlowHandle, HalfUsage, Usage};
use core::fmt;
use core::time::Duration;
use sixway_wire::{Endpoint4, Endpoint6};

/// A session as one process tells another of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedSession<I = Endpoint6> {
    /// Protocol.
    pub protocol: NatProtocol,
    /// State.
    pub state: SessionState,
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
    /// Whether a packet from outside made it.
    pub from_outside: bool,
}

/// Why a session of another process is not carried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdopted {
    /// There is no such translator.
    NoTranslator,
    /// A fast path does not carry this protocol, or a session in this state waits for what the other process has.
    NotCarried,
    /// Another worker owns one of its endpoints.
    OtherWorker,
    /// An address is not one of a host that this translator serves.
    AddressRefused,
    /// The outside address is not one of the pool's, or the port is not one that is given, or it belongs to another.
    PortNotGiven,
    /// One of the endpoints has another binding.
    EndpointInUse,
    /// There is such a session.
    SessionExists,
    /// A table is full.
    TableFull,
    /// Its subscriber has as many bindings as it may have.
    SubscriberLimit,
    /// Its lifetime is over.
    Expired,
}

impl fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTranslator => "there is no such translator",
            Self::NotCarried => "such a session cannot be carried on",
            Self::OtherWorker => "its endpoints belong to different workers, or to another one",
            Self::AddressRefused => "an address is refused by the configuration",
            Self::PortNotGiven => "the outside endpoint is not the pool's to give, or belongs to another",
            Self::EndpointInUse => "one of its endpoints has another binding",
            Self::SessionExists => "there is such a session",
            Self::TableFull => "a table is full",
            Self::SubscriberLimit => "its subscriber has as many bindings as it may have",
            Self::Expired => "its lifetime is over",
        })
    }
}

impl core::error::Error for NotAdopted {}

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
    /// Makes a session again, and its binding if there is none.
    pub(crate) fn revive(
        &mut self,
        revival: &Revival<I>,
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        let SavedSession { protocol, state, inside, outside, remote, from_outside, .. } = revival.saved;
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
        self.link(slot, binding);
        self.permits.add(protocol, outside, remote.address);
        self.sessions.absorb(slot, &counts(&revival.saved));
        self.sessions.resume(slot, revival.started, revival.last_packet);
        self.sessions.place_mut(slot).set_flow(revival.flow);
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

    /// A session as another process is to have it. `None`: the slot holds none that could go on there, or the fast path has it, which then
    /// knows of its last packet.
    pub(crate) fn save(&mut self, slot: u32, clock: Clock) -> Option<SavedSession<I>> {
        self.touch(slot);
        let present = self.present(slot);
        let (session, place) = (present.session, self.sessions.place(slot));
        let waits = matches!(session.state, SessionState::Free | SessionState::OutsideInitStored);
        if waits
            || place.binding == NONE
            || present.flow.is_some()
            || clock.floor >= self.sessions.closes(&session)
            || self.bindings.get(place.binding).kind == BindingKind::Free
        {
            return None;
        }
        let since = |second: u32| Duration::from_secs(clock.floor.saturating_sub(second).into());
        Some(SavedSession {
            protocol: session.protocol,
            state: session.state,
            inside: session.inside,
            outside: session.outside,
            remote: session.remote,
            age: since(session.started),
            idle: since(session.last_packet),
            packets: present.packets,
            octets: present.octets,
            from_outside: place.from_outside,
        })
    }
}

/// What a session had, as if elsewhere.
fn counts<I>(saved: &SavedSession<I>) -> Usage {
    let half = |way: usize| HalfUsage { packets: saved.packets[way], octets: saved.octets[way], last: None };
    [half(0), half(1)]
}
